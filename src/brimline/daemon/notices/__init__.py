"""Notices to the user: which signals are reported, and by which transport."""
