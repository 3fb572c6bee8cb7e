"""The lab: a generated world with exact verifiers."""
