"""The agents' files and streams."""
