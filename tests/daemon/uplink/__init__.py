"""The uplink of a daemon to a fleet's server."""
