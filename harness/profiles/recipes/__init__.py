"""Recipes: settings of methods that belong together; no table mixes them."""
