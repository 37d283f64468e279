"""Which session was cleared when a process begins a new one: clients give that one another id."""

from brimline.events import MAIN
from brimline.monitor.heard import Heard

INIT = 1
"""The process that takes in those whose parent is gone; it runs no agent, and there is no 0."""


class Cleared:
    """The sessions of each agent's process, and whether they have ended.

    Some clients tell the end of a session when it is cleared, others when they end themselves.
    """

    def __init__(self) -> None:
        self._of: dict[int, dict[str, bool]] = {}

    def before(self, pid: int, heard: Heard) -> str | None:
        """What a session was before this clear; None where its process has had several."""
        if heard.what != "cleared" or pid <= INIT:
            return None
        others = [session for session in self._of.get(pid, ()) if session != heard.session]
        return others[0] if len(others) == 1 else None

    def hear(self, pid: int, heard: Heard) -> None:
        """Take in what a hook of a process tells."""
        if heard.thread != MAIN or pid <= INIT:
            return
        sessions = self._of.setdefault(pid, {})
        if self.before(pid, heard) is not None:
            sessions.clear()
        if heard.what in ("started", "cleared"):
            for session in [id for id, ended in sessions.items() if ended]:
                del sessions[session]
        sessions[heard.session] = heard.what == "ended"
