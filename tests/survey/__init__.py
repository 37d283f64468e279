"""All sessions of a machine."""
