"""Shipped for tests: a fake model API, the suite that a store passes, frames of the hook socket."""
