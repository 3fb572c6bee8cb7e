"""Modifiers: one file each, composed with any method by ``--with``."""
