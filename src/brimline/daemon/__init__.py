"""What the daemon does beside its API: hooks, watched files, tmux, notices, uplink, telemetry out.

Each part can be built and tested alone; `server/` puts them together.
"""
