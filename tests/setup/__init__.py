"""Tests of setup: edits in place, safe replacement, what is installed and taken out again."""
