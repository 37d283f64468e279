"""Otter, a made-up agent: all that a new agent needs is a folder like this one."""
