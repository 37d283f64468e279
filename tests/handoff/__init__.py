"""Handoffs: taken, drafted, and brought back."""
