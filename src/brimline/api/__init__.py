"""The HTTP API: its routes and types, its client, and telemetry that comes in.

What runs beside it belongs to `daemon/`, what starts it to `server/`.
"""
