"""Versioned JSON schemas of the documents in a run directory (``harness/documents.py`` checks against them)."""
