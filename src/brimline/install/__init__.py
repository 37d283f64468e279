"""Putting our hooks and extensions into the agents' settings, and taking them out again.

What is written for one agent is data in `agents/<name>/hooks.py`.
"""
