"""Reports sessions to a daemon, as programs and clients do."""

from __future__ import annotations

import itertools
import time
from typing import Any

from server.running import Running

Json = dict[str, Any]
MODEL = "claude-sonnet-4-5"
WINDOW_TOKENS = 200_000  # from the daemon's settings, so that a session can exceed it

SETTINGS = f'[windows]\n"*" = {WINDOW_TOKENS}\n'


def call(id: str, sent: int, **more: Any) -> Json:
    """A call that sent a number of tokens, some of each kind."""
    fresh, cache_write = min(sent, 12), min(sent // 10, 3_000)
    usage = {
        "input": fresh,
        "cache_read": max(sent - fresh - cache_write, 0),
        "cache_write": min(cache_write, max(sent - fresh, 0)),
        "output": 7,
    }
    return {"type": "Call", "id": id, "usage": usage, "model": MODEL, **more}


def full(percent: float) -> Json:
    """A call that sends this percentage of the window."""
    return call("c", round(percent * WINDOW_TOKENS / 100))


class Story:
    """Reports events to a daemon, each once."""

    def __init__(self, daemon: Running) -> None:
        self.daemon = daemon
        self._numbers = itertools.count()

    def event(self, session: str, event: Json, agent: str = "loop", **more: Any) -> Json:
        timed = {"at": time.time(), **event}
        id = f"e{next(self._numbers)}"
        return {"id": id, "session": session, "agent": agent, "event": timed, **more}

    def report(self, session: str, *events: Json, **more: Any) -> None:
        """Report events of one session in order."""
        self.report_all([self.event(session, each, **more) for each in events])

    def report_all(self, events: list[Json]) -> None:
        accepted = self.daemon.post("/v1/events", {"events": events})
        assert accepted == {"taken": len(events), "known": 0}

    def view(self, session: str) -> Any:
        return self.daemon.get(f"/v1/sessions/{session}")

    def timeline(self, session: str) -> Any:
        return self.daemon.get(f"/v1/sessions/{session}/timeline")
