"""The daemon's connection to a fleet's server: what is sent, when, and what comes back."""
