"""Which sessions are live: what metrics show, and what is exported."""

from brimline.store.rows import SessionRow

LIVE_S = 3_600.0  # a session that was seen within this time is live


def is_live(row: SessionRow, now: float) -> bool:
    """Return whether a session was seen lately, has not ended and did not become another."""
    return not row.has_ended and row.continued_as is None and now - row.seen_at <= LIVE_S
