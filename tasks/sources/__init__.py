"""Loaders of data sources."""
