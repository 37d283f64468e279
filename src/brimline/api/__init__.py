"""The HTTP API: its routes and types, its client for programs and commands, and telemetry that comes in.

What runs beside it belongs to `daemon/`, what starts it to `server/`.
"""
