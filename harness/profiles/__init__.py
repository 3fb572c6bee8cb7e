"""Profiles and recipes (YAML)."""
