"""Tasks: examples and scorers."""
