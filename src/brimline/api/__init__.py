"""The HTTP API: its routes and types, its client, and telemetry that comes in.

What the daemon does apart from it belongs to `daemon/`, what starts it to `server/`.
"""
