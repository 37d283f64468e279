"""Shipped for tests: a fake model API, the suites of stores and of agents, hook frames.

Helpers of our own tests alone belong to `tests/`; no other folder imports this one.
"""
