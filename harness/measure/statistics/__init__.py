"""Intervals and tests: over the items of a cell, over pairs of items, over seeds, over both; what they can detect."""
