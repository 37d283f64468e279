"""Otter's package has tests of its own: `test_conformance.py` runs them where it is installed."""

collect_ignore = ["otter"]
