"""Tests of the daemon's clients."""
