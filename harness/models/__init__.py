"""Loading, fingerprints, vocabularies and the lab's weights."""
