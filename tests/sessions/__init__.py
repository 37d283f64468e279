"""Surveys of all sessions of a machine."""
