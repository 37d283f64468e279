"""The lines of one session: its figures and their source, its chart, its marks, its messages."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from brimline.chart import chart
from brimline.events import MAIN
from brimline.inbox import Message
from brimline.sources import AGENTS
from brimline.store.rows import CallRow
from brimline.terminal.text import count_of, format_age, shorten_home, strip_control
from brimline.tui import bars
from brimline.tui.api_types import Detail, Thread, View
from brimline.tui.chart_marks import SIGNS, Mark, line, marks
from brimline.tui.styled_text import Line, Piece, from_painted, wrapped
from brimline.usage import Usage

MARKS_SHOWN, MESSAGES_SHOWN = 12, 30
"""How many of the last are listed."""

BAR_MOST = 100
FACT = 18
"""How wide a figure with its name is."""

NOTHING: Line = []


class Page(msgspec.Struct, frozen=True):
    """Draws a session for a terminal of a width, at a time."""

    width: int
    now: float
    home: Path
    colour: bool = True

    def lines(self, detail: Detail, thread: str = MAIN) -> list[Line]:
        """All of it, one thread's chart and figures at a time."""
        view = detail.view
        shown = next((one for one in view.threads if one.thread == thread), None)
        lines = self._head(view, thread)
        if shown is not None:
            lines += self._figures(view, shown)
        lines += self._handoff(view)
        if detail.problem:
            lines += [NOTHING, [Piece(strip_control(detail.problem), "bold")]]
        lines += self._chart(detail, shown, thread)
        return [*lines, *self._messages(detail.timeline.messages)]

    def _head(self, view: View, thread: str) -> list[Line]:
        session, main = view.session, view.main
        name = AGENTS.get(session.agent, session.agent)
        model = bars.model_text((main and main.model) or session.model)
        state = bars.state_text(view, main, self.now)
        facts = [f"session {session.id}", session.host, session.version, session.title]
        return [
            [
                Piece(f"{strip_control(name)}  {bars.place_text(view, self.home)}", "bold"),
                Piece(f"  {model}  {state}"),
            ],
            [Piece("  ".join(strip_control(fact) for fact in facts if fact), "dim")],
            *self._threads(view, thread),
            NOTHING,
        ]

    def _threads(self, view: View, thread: str) -> list[Line]:
        if len(view.threads) < 2:
            return []
        names = [
            Piece(f"[{strip_control(one.thread)}] ", "bold")
            if one.thread == thread
            else Piece(f"{strip_control(one.thread)} ", "dim")
            for one in view.threads
        ]
        return [[Piece("threads (t): ", "dim"), *names]]

    def _figures(self, view: View, thread: Thread) -> list[Line]:
        shade = bars.thread_shade(thread)
        said = [bars.percent_text(thread), bars.word_of(thread)]
        ago = format_age(self.now - bars.heard_at(view, thread))
        source = f"{strip_control(thread.source)}, {strip_control(thread.state)}, {ago} ago"
        bar = bars.drawn(view, thread, max(10, min(BAR_MOST, self.width - 18)))
        return [
            [*bar, Piece(f" {' '.join(word for word in said if word)}", shade)],
            *self._fact("sent", _count(thread.sent), f"held {_count(thread.held)}; {source}"),
            *self._fact("window", _count(thread.window), thread.window_why),
            *self._fact("limit", _count(thread.limit), self._limit_why(thread)),
            *self._fact("calls", _count(thread.calls), self._calls_why(view, thread)),
        ]

    def _limit_why(self, thread: Thread) -> str | None:
        near = thread.percent_of_limit
        parts = [None if near is None else f"{near}% of it held", thread.limit_why]
        return "; ".join(part for part in parts if part) or None

    def _calls_why(self, view: View, thread: Thread) -> str:
        parts = [f"cycle {_count(thread.cycle)}", f"peak {_count(thread.peak_sent)}"]
        if thread.thread != MAIN:
            parts.append(bars.model_text(thread.model))
        if view.calls_left is not None and thread.thread == MAIN:
            parts.insert(0, f"about {view.calls_left:.0f} left until the limit")
        return "; ".join(parts)

    def _fact(self, name: str, figure: str, why: str | None) -> list[Line]:
        """A figure and where it is from, which may take several lines."""
        first, *more = wrapped(strip_control(why or ""), self.width - FACT) or [""]
        known = [Piece(f"{name:<7}", "dim"), Piece(f"{figure:>9}  ")]
        below: list[Line] = [[Piece(" " * FACT + part, "dim")] for part in more]
        return [[*known, Piece(first, "dim")], *below]

    def _handoff(self, view: View) -> list[Line]:
        handoff = view.handoff
        if handoff is None:
            return self._fact("handoff", "unknown", None)
        since = handoff.calls_since
        parts = [
            None if handoff.path is None else shorten_home(handoff.path, self.home),
            None if handoff.at is None else f"{format_age(self.now - handoff.at)} ago",
            None if since is None else f"{count_of(since, 'call')} since",
        ]
        why = "; ".join(part for part in parts if part)
        return self._fact("handoff", strip_control(handoff.state), why or None)

    def _chart(self, detail: Detail, shown: Thread | None, thread: str) -> list[Line]:
        calls = [call for call in detail.timeline.calls if call.thread == thread]
        found = marks(detail.timeline, thread)
        if not calls:
            return [] if detail.problem else [NOTHING, [Piece("no call yet", "dim")]]
        drawn = chart(
            [_sent(call) for call in calls],
            [mark.after for mark in found if mark.kind == "compaction"],
            shown.window if shown else None,
            shown.limit if shown else None,
            self.width,
            self.colour,
        )
        lines = [from_painted(text) for text in drawn]
        below = _below(drawn, found, len(calls))
        return [NOTHING, *lines[:-1], *below, lines[-1], *self._listed(found), *_lost(detail)]

    def _listed(self, found: Sequence[Mark]) -> list[Line]:
        if not found:
            return []
        last = list(reversed(found[-MARKS_SHOWN:]))
        hidden = len(found) - len(last)
        title = f"marks, the last first{f'; {hidden} older' if hidden else ''}"
        return [NOTHING, [Piece(title, "dim")], *(self._mark(mark) for mark in last)]

    def _mark(self, mark: Mark) -> Line:
        ago = "" if mark.at is None else format_age(self.now - mark.at)
        after = f"{SIGNS[mark.kind]} after call {mark.after:<5}"
        return [Piece(after), Piece(f"{ago:>4}  ", "dim"), Piece(mark.text)]

    def _messages(self, messages: Sequence[Message] | None) -> list[Line]:
        if messages is None:
            return [NOTHING, [Piece("messages are unknown without a daemon", "dim")]]
        if not messages:
            return [NOTHING, [Piece("no messages", "dim")]]
        lines: list[Line] = [NOTHING, [Piece("messages, the last first", "dim")]]
        for message in list(reversed(messages))[:MESSAGES_SHOWN]:
            lines += self._message(message)
        return lines

    def _message(self, message: Message) -> list[Line]:
        ago = format_age(self.now - message.at)
        said = f"{message.state} {message.urgency}, from {strip_control(message.sender)}, {ago} ago"
        text = [strip_control(line) for line in message.text.splitlines()]
        body = [part for line in text for part in wrapped(line, self.width - 2)]
        return [[Piece(said, "bold")], *([Piece(f"  {part}")] for part in body)]


def _sent(call: CallRow) -> int:
    return Usage(call.input, call.cache_read, call.cache_write, call.output).sent


def _count(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"


def _below(drawn: Sequence[str], found: Sequence[Mark], calls: int) -> list[Line]:
    """The marks below the chart's axis, which tells where its columns begin and end."""
    axis = drawn[-2]
    start = axis.index("└") + 1
    signs = line(found, calls, len(axis) - start)
    if not signs.strip():
        return []
    kinds = dict.fromkeys(mark.kind for mark in found if mark.kind != "compaction")
    legend = "  ".join(f"{SIGNS[kind]} {kind}" for kind in kinds)
    return [[Piece(" " * start + signs, "bold")], [Piece(" " * start + legend, "dim")]]


def _lost(detail: Detail) -> list[Line]:
    lost = detail.timeline.unreadable
    return [[Piece(f"{count_of(lost, 'record')} could not be read", "dim")]] if lost else []
