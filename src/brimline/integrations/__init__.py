"""Callbacks, hooks and wrappers that observe the calls of a framework, in a module for each.

A module imports its framework, and nothing imports the modules: import the one that you need. How
an SDK's objects are read belongs to `sdk/`.
"""
