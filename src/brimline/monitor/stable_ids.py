"""Ids that are the same for the same parts: what is reported or written twice is stored once."""

import hashlib


def hash_id(*parts: str) -> str:
    """Return an id that is the same for the same parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def end_message_id(parent: str, session: str, ended_at: float) -> str:
    """Return the id of the message to a parent that a session has ended."""
    return hash_id(parent, session, "ended", repr(ended_at))
