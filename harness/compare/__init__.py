"""Comparing runs: which may be compared, methods over seeds, paired differences, shift against forgetting."""
