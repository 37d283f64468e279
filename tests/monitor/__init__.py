"""The monitor: what is heard, kept, said."""
