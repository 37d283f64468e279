"""The redaction of what leaves a transcript's content."""
