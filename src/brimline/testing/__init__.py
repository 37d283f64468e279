"""Shipped for tests: a fake model API, the suite that a store passes, frames of the hook socket.

Helpers of our own tests alone belong to `tests/`; no other folder imports this one.
"""
