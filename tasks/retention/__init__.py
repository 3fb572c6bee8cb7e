"""Retention suites (YAML)."""
