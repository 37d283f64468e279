"""Monitoring of sessions: observation -> fold -> decide -> store -> messages.

Figures and rules without state belong to `context/`; what brings observations in and carries
messages out belongs to `daemon/` and `api/`.
"""
