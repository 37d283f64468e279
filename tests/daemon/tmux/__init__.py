"""Ways to a user and to an agent beside its hooks."""
