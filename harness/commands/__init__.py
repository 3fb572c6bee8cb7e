"""One file per group of commands of the command line."""
