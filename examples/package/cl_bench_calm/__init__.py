"""A method and a modifier for cl-bench, found by their entry points."""
