"""A replica of a fleet's server, on PostgreSQL."""
