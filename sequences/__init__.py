"""Task sequences (YAML) and their loader."""
