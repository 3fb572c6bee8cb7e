"""One sampler interface; the local implementation."""
