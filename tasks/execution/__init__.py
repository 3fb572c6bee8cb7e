"""The process that runs one untrusted program: it starts alone, without the rest of the package."""
