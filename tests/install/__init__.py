"""Tests of setup: edits in place, safe replacement, installation and removal."""
