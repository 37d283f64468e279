"""Hooks and status lines of agents: the client that they run, and the daemon's side of it."""
