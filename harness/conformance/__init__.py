"""Checks that validate plug-ins."""
