"""Modifiers that compose with any method."""
