"""The daemon, run for real."""
