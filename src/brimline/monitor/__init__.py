"""Monitoring of sessions: observation -> fold -> decide -> store -> messages."""
