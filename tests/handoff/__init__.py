"""Handoffs: read, drafted and re-injected."""
