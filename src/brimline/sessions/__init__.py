"""All sessions on a machine: found, read, totalled, and explained, without a daemon.

How one agent writes its files belongs to `agents/`, what a daemon stores to `store/`.
"""
