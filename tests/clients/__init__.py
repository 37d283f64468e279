"""Runs the real clients against the fake model."""
