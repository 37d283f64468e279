"""Reports sessions to a daemon, as programs and clients do."""

from __future__ import annotations

import itertools
import time
from typing import Any

from server.running import Running

Json = dict[str, Any]
MODEL = "claude-sonnet-4-5"
WINDOW = 200_000  # from the daemon's settings, so that a session can exceed it

SETTINGS = f'[windows]\n"*" = {WINDOW}\n'


def call(id: str, sent: int, **more: Any) -> Json:
    """A call that sent a number of tokens, some of each kind."""
    fresh, written = min(sent, 12), min(sent // 10, 3_000)
    usage = {
        "input": fresh,
        "cache_read": max(sent - fresh - written, 0),
        "cache_write": min(written, max(sent - fresh, 0)),
        "output": 7,
    }
    return {"type": "Call", "id": id, "usage": usage, "model": MODEL, **more}


def full(percent: float) -> Json:
    """A call by which so much of the window is sent."""
    return call("c", round(percent * WINDOW / 100))


class Story:
    """Tells a daemon what happens, each thing once."""

    def __init__(self, daemon: Running) -> None:
        self.daemon = daemon
        self._numbers = itertools.count()

    def event(self, session: str, event: Json, agent: str = "loop", **more: Any) -> Json:
        """One event as the API takes it."""
        timed = {"at": time.time(), **event}
        id = f"e{next(self._numbers)}"
        return {"id": id, "session": session, "agent": agent, "event": timed, **more}

    def tell(self, session: str, *events: Json, **more: Any) -> None:
        """Events of one session, in their order."""
        self.tell_all([self.event(session, each, **more) for each in events])

    def tell_all(self, events: list[Json]) -> None:
        """Events of any sessions."""
        taken = self.daemon.post("/v1/events", {"events": events})
        assert taken == {"taken": len(events), "known": 0}

    def view(self, session: str) -> Any:
        """A session as the API has it."""
        return self.daemon.get(f"/v1/sessions/{session}")

    def timeline(self, session: str) -> Any:
        """What happened in it, as the API has it."""
        return self.daemon.get(f"/v1/sessions/{session}/timeline")
