"""Tells the user of signals, beside the agents."""

import time
from collections.abc import Callable
from pathlib import Path

from brimline.agents import AGENTS
from brimline.events import MAIN
from brimline.monitor.rules import Rules
from brimline.monitor.session_state import SessionState
from brimline.notify.notices import Notice, Notices
from brimline.settings import Notify
from brimline.store.rows import SignalRow
from brimline.usage import context_line

RECENT = 600.0
"""What happened more than so many seconds ago is in the history, and nobody is roused for it."""

SAID = {
    "compacting": "is being compacted",
    "compacted": "was compacted",
    "thrash": "is compacted again and again",
    "no data": "runs, but its hooks tell nothing (`brimline doctor` says why)",
    "disagree": "has two sources that do not agree on how full it is",
}


class NoticePolicy:
    """Decides which signals a user is told of, and tells them beside everything else."""

    def __init__(
        self, wanted: Notify, rules: Rules, state: Path, clock: Callable[[], float] = time.time
    ) -> None:
        self._wanted = wanted
        self._rules = rules
        self._clock = clock
        self._notices = Notices(wanted, state)

    def tell(self, signal: SignalRow, watched: SessionState) -> None:
        """Tell the user, where they want to know."""
        if self._is_wanted(signal, watched) and self._is_recent(signal, watched):
            self._notices.tell(self.notice(signal, watched))

    def say(self, notice: Notice) -> None:
        """Tell the user something else that they asked for."""
        self._notices.tell(notice)

    async def close(self) -> None:
        """Let what is under way come to its end."""
        await self._notices.close()

    def _is_wanted(self, signal: SignalRow, watched: SessionState) -> bool:
        wanted = self._wanted.of
        if signal.kind != "level":
            return signal.kind in wanted
        levels = self._rules.levels_of(watched.id, watched.agent, watched.model_of(signal.thread))
        last = signal.level == levels[-1] and signal.thread == MAIN
        return "any level" in wanted or ("level" in wanted and last)

    def _is_recent(self, signal: SignalRow, watched: SessionState) -> bool:
        """A level is as old as the call that reached it, all else as what told of it."""
        at = watched.last[signal.thread].at if signal.kind == "level" else None
        return self._clock() - (at if at is not None else signal.at) < RECENT

    def notice(self, signal: SignalRow, watched: SessionState) -> Notice:
        """What the user is told."""
        reading = watched.last[signal.thread]
        window = reading.window.tokens if reading.window else None
        figure = context_line(signal.sent, window)
        said = SAID.get(signal.kind, f"has reached {signal.level:g}")
        who = f"{AGENTS.get(watched.agent, watched.agent)} {watched.id[:8]}"
        if signal.thread != MAIN:
            who = f"A subagent of {who}"
        place = f" in {watched.project}" if watched.project else ""
        return Notice(
            kind=signal.kind,
            session=watched.id,
            agent=watched.agent,
            project=watched.project,
            text=f"{who}{place} {said}. {figure}".strip(),
            at=signal.at,
            percent=signal.percent,
            sent=signal.sent,
            window=window,
            pane=watched.pane,
        )
