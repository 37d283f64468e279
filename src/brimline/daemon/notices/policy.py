"""Which signals become notices to the user, and what they say."""

import time
from collections.abc import Callable

from brimline.agents import display_name
from brimline.context.events import MAIN
from brimline.context.usage import context_line
from brimline.daemon.notices.notices import Notice, NoticeSender
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import Rules
from brimline.settings import Notify
from brimline.store.rows import SignalRow

MAX_SIGNAL_AGE_S = 600.0  # older signals are in the history only

KIND_TEXTS = {
    "compacting": "is being compacted",
    "compacted": "was compacted",
    "thrash": "is compacted again and again",
    "no data": "is running, but its hooks report nothing (run `brimline doctor`)",
    "no window": "has an unknown window, so no level can fire (set it under [windows])",
    "disagree": "has two sources that disagree about its context",
}


class NoticePolicy:
    """Reports the signals that the user asked for in the settings."""

    def __init__(
        self,
        settings: Notify,
        rules: Rules,
        sender: NoticeSender,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._rules, self._sender, self._clock = settings, rules, sender, clock

    def report_signal(self, signal: SignalRow, session: SessionState) -> None:
        """Send a notice about a signal if the user wants it."""
        if self._is_wanted(signal, session) and self._is_recent(signal, session):
            self._sender.send(_build_notice(signal, session))

    def _is_wanted(self, signal: SignalRow, session: SessionState) -> bool:
        wanted = self._settings.of
        if signal.kind != "level":
            return signal.kind in wanted
        levels = self._rules.levels_of(session.id, session.agent, session.model_of(signal.thread))
        is_last = signal.level == levels[-1] and signal.thread == MAIN
        return "any level" in wanted or ("level" in wanted and is_last)

    def _is_recent(self, signal: SignalRow, session: SessionState) -> bool:
        """A level is as old as the call that reached it; other signals have their own time."""
        at = session.last_readings[signal.thread].at if signal.kind == "level" else None
        return self._clock() - (at if at is not None else signal.at) < MAX_SIGNAL_AGE_S


def _build_notice(signal: SignalRow, session: SessionState) -> Notice:
    reading = session.last_readings[signal.thread]
    window = reading.window.tokens if reading.window else None
    subject = f"{display_name(session.agent)} {session.id[:8]}"
    if signal.thread != MAIN:
        subject = f"A subagent of {subject}"
    place = f" in {session.project}" if session.project else ""
    text = KIND_TEXTS.get(signal.kind, f"has reached level {signal.level:g}")
    if signal.kind == "level" and signal.text:
        text = f"reaches level {signal.level:g} with its next call: {signal.text}"
    return Notice(
        kind=signal.kind,
        session=session.id,
        agent=session.agent,
        project=session.project,
        text=f"{subject}{place} {text}. {context_line(signal.sent, window)}".strip(),
        at=signal.at,
        percent=signal.percent,
        sent=signal.sent,
        window=window,
        pane=session.pane,
    )
