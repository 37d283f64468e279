"""What the daemon does apart from its API: hooks, watched files, tmux, notices, uplink, export.

Each part can be built and tested alone; `server/` puts them together.
"""
