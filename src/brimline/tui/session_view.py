"""The lines of the session screen: reading, chart, marks and messages, or what fills a thread."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from brimline.agents import display_name
from brimline.context.events import MAIN
from brimline.context.forecast import CallsLeft
from brimline.context.inbox import Message
from brimline.context.usage import format_percent, format_tokens, percent_raw
from brimline.sessions.ledger.explain import ExplainedCategory, ExplainedThread, Explanation
from brimline.terminal.chart import (
    BLOCK,
    UNEXPLAINED,
    Segment,
    category_segment,
    chart,
    count_cells,
)
from brimline.terminal.report_text import describe_end
from brimline.terminal.text import (
    cell_width,
    count_of,
    format_age,
    shorten_home,
    strip_control,
    truncate,
)
from brimline.tui import bars
from brimline.tui.api_types import SessionDetail, WatchedSession, WatchedThread
from brimline.tui.chart_marks import SYMBOLS, ChartMark, find_marks, symbol_line
from brimline.tui.styled_text import Line, StyledText, parse_ansi, wrap_text

MAX_MARKS, MAX_MESSAGES = 12, 30

MAX_BAR_COLUMNS = 100
FACT_COLUMNS = 18  # a name and its figure

BLANK_LINE: Line = []

MAX_PIECES, MAX_FINDINGS = 10, 5
NAME_COLUMNS = 20  # of the longest category and a blank
TOKENS_COLUMNS = 6  # of a rounded figure


class SessionPage(msgspec.Struct, frozen=True):
    width: int
    now: float
    home: Path
    colour: bool = True

    def lines(self, detail: SessionDetail, thread: str = MAIN) -> list[Line]:
        """The lines of a session, with the reading and chart of one of its threads."""
        view = detail.view
        thread_view = next((row for row in view.threads if row.thread == thread), None)
        lines = [*self._header_lines(view, thread), *self._end_lines(view)]
        if thread_view is not None:
            lines += self._reading_lines(view, thread_view)
        if detail.timeline.cost is not None:
            lines += self._fact_lines("cost", f"${detail.timeline.cost:,.2f}", None)
        lines += self._handoff_lines(view)
        if detail.reason:
            lines += [BLANK_LINE, [StyledText(strip_control(detail.reason), "bold")]]
        lines += self._chart_lines(detail, thread_view, thread)
        return [*lines, *self._messages_lines(detail.timeline.messages)]

    def explanation_lines(
        self, view: WatchedSession, explanation: Explanation | None, thread: str = MAIN
    ) -> list[Line]:
        """The lines of a session with what fills one of its threads."""
        filled = FillingLines(self.width, view.session.project, self.colour)
        return [*self._header_lines(view, thread), *filled.lines(explanation, thread)]

    def _header_lines(self, view: WatchedSession, thread: str) -> list[Line]:
        session, main = view.session, view.main
        project = session.project and shorten_home(session.project, self.home)
        model = bars.model_text((main and main.model) or session.model)
        client = f"{display_name(session.agent)} {session.version or ''}".rstrip()
        return [
            *self._name_lines(bars.headline_text(view), bars.state_text(view, main, self.now)),
            *self._about_lines(project, client, model),
            *self._about_lines(f"session {session.id}", session.host),
            *self._problem_lines(session.problem),
            *self._threads_lines(view, thread),
            BLANK_LINE,
        ]

    def _name_lines(self, name: str, state: str) -> list[Line]:
        """The name and the state on one line, or on two if the terminal is narrow."""
        if state and cell_width(f"{name}  {state}") <= self.width:
            return [[StyledText(name, "bold"), StyledText(f"  {state}")]]
        lines: list[Line] = [[StyledText(truncate(name, self.width), "bold")]]
        return [*lines, [StyledText(truncate(state, self.width))]] if state else lines

    def _about_lines(self, *facts: str | None) -> list[Line]:
        text = " · ".join(strip_control(fact) for fact in facts if fact)
        return [[StyledText(part, "dim")] for part in wrap_text(text, self.width)]

    def _problem_lines(self, problem: str | None) -> list[Line]:
        return [
            [StyledText(part, "bold")]
            for part in wrap_text(strip_control(problem or ""), self.width)
        ]

    def _end_lines(self, view: WatchedSession) -> list[Line]:
        """What the session needs, and what stops it first."""
        ends = (f"{end.kind}: {describe_end(end, self.now)}" for end in view.ends)
        shade = bars.thread_shade(view.main) if view.main else "none"
        need = wrap_text(strip_control(view.need.text) if view.need else "", self.width)
        strip = wrap_text(strip_control(" · ".join(ends)), self.width)
        return [
            *([StyledText(part, shade)] for part in need),
            *([StyledText(part)] for part in strip),
        ]

    def _threads_lines(self, view: WatchedSession, thread: str) -> list[Line]:
        if len(view.threads) < 2:
            return []
        names = [
            StyledText(f"[{strip_control(row.thread)}] ", "bold")
            if row.thread == thread
            else StyledText(f"{strip_control(row.thread)} ", "dim")
            for row in view.threads
        ]
        title = next((row.title for row in view.threads if row.thread == thread), None)
        return [[StyledText("threads (t): ", "dim"), *names], *self._about_lines(title)]

    def _reading_lines(self, view: WatchedSession, thread: WatchedThread) -> list[Line]:
        shade = bars.thread_shade(thread)
        figures = [bars.percent_text(thread), bars.shade_word(thread)]
        ago = format_age(self.now - bars.last_seen_at(view, thread))
        source = f"{strip_control(thread.source)}, {strip_control(thread.state)}, {ago} ago"
        bar = bars.draw_thread_bar(view, thread, max(10, min(MAX_BAR_COLUMNS, self.width - 18)))
        return [
            [*bar, StyledText(f" {' '.join(word for word in figures if word)}", shade)],
            *self._fact_lines(
                "sent", _format_count(thread.sent), f"held {_format_count(thread.held)}; {source}"
            ),
            *self._pending_lines(thread),
            *self._fact_lines("window", _format_count(thread.window), thread.window_why),
            *self._fact_lines("limit", _format_count(thread.limit), self._limit_note(thread)),
            *self._fact_lines("calls", _format_count(thread.calls), self._calls_note(view, thread)),
        ]

    def _pending_lines(self, thread: WatchedThread) -> list[Line]:
        """What came in since the last call, apart from what was measured."""
        if not thread.pending:
            return []
        note = "about so much came in since the last call"
        return self._fact_lines("pending", format_tokens(thread.pending), note)

    def _limit_note(self, thread: WatchedThread) -> str | None:
        near = thread.percent_of_limit
        parts = [
            None if near is None else f"of limit {format_percent(near)}",
            thread.limit_why,
        ]
        return "; ".join(part for part in parts if part) or None

    def _calls_note(self, view: WatchedSession, thread: WatchedThread) -> str:
        parts = [f"cycle {_format_count(thread.cycle)}", f"peak {_format_count(thread.peak_sent)}"]
        if thread.thread != MAIN:
            parts.append(bars.model_text(thread.model))
        if view.calls_left and view.calls_left_range and thread.thread == MAIN:
            ends = view.calls_left_range
            left = CallsLeft(round(view.calls_left), round(ends[0]), round(ends[-1]))
            parts.insert(0, f"about {left}")
        return "; ".join(parts)

    def _fact_lines(self, name: str, figure: str, note: str | None) -> list[Line]:
        """A figure with a note on its origin, which is wrapped."""
        first, *more = wrap_text(strip_control(note or ""), self.width - FACT_COLUMNS) or [""]
        known = [StyledText(f"{name:<7}", "dim"), StyledText(f"{figure:>9}  ")]
        below: list[Line] = [[StyledText(" " * FACT_COLUMNS + part, "dim")] for part in more]
        return [[*known, StyledText(first, "dim")], *below]

    def _handoff_lines(self, view: WatchedSession) -> list[Line]:
        handoff = view.handoff
        if handoff is None:
            return self._fact_lines("handoff", "unknown", None)
        since = handoff.calls_since
        parts = [
            None if handoff.path is None else shorten_home(handoff.path, self.home),
            None if handoff.at is None else f"{format_age(self.now - handoff.at)} ago",
            None if since is None else f"{count_of(since, 'call')} since",
        ]
        why = "; ".join(part for part in parts if part)
        return self._fact_lines("handoff", strip_control(handoff.state), why or None)

    def _chart_lines(
        self, detail: SessionDetail, thread_view: WatchedThread | None, thread: str
    ) -> list[Line]:
        calls = [call for call in detail.timeline.calls if call.thread == thread]
        marks = find_marks(detail.timeline, thread)
        if not calls:
            return [] if detail.reason else [BLANK_LINE, [StyledText("no calls yet", "dim")]]
        drawn = chart(
            [call.usage.sent for call in calls],
            [mark.calls_before for mark in marks if mark.kind == "compaction"],
            thread_view.window if thread_view else None,
            thread_view.limit if thread_view else None,
            thread_view.levels if thread_view else (),
            self.width,
            self.colour,
        )
        lines = [parse_ansi(text) for text in drawn]
        below = _symbol_lines(drawn, marks, len(calls))
        return [
            BLANK_LINE,
            *lines[:-1],
            *below,
            lines[-1],
            *self._marks_lines(marks),
            *_unreadable_lines(detail),
        ]

    def _marks_lines(self, marks: Sequence[ChartMark]) -> list[Line]:
        if not marks:
            return []
        last = list(reversed(marks[-MAX_MARKS:]))
        hidden = len(marks) - len(last)
        title = f"marks, latest first{f'; {hidden} older' if hidden else ''}"
        return [BLANK_LINE, [StyledText(title, "dim")], *(self._mark_line(mark) for mark in last)]

    def _mark_line(self, mark: ChartMark) -> Line:
        ago = "" if mark.at is None else format_age(self.now - mark.at)
        after = f"{SYMBOLS[mark.kind]} after call {mark.calls_before:<5}"
        before = f"{ago:>4}  "
        text = truncate(mark.text, self.width - len(after) - len(before))
        return [StyledText(after), StyledText(before, "dim"), StyledText(text)]

    def _messages_lines(self, messages: Sequence[Message] | None) -> list[Line]:
        if messages is None:
            return [BLANK_LINE, [StyledText("messages: unknown without the daemon", "dim")]]
        if not messages:
            return [BLANK_LINE, [StyledText("no messages", "dim")]]
        lines: list[Line] = [BLANK_LINE, [StyledText("messages, latest first", "dim")]]
        for message in list(reversed(messages))[:MAX_MESSAGES]:
            lines += self._message_lines(message)
        return lines

    def _message_lines(self, message: Message) -> list[Line]:
        ago = format_age(self.now - message.at)
        title = (
            f"{message.state} {message.urgency}, from {strip_control(message.sender)}, {ago} ago"
        )
        text = [strip_control(line) for line in message.text.splitlines()]
        body = [part for line in text for part in wrap_text(line, self.width - 2)]
        return [[StyledText(title, "bold")], *([StyledText(f"  {part}")] for part in body)]


def _format_count(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"


def _symbol_lines(drawn: Sequence[str], marks: Sequence[ChartMark], calls: int) -> list[Line]:
    """The symbols of the marks below the chart's axis, and their legend."""
    axis = drawn[-2]
    start = axis.index("└") + 1
    symbols = symbol_line(marks, calls, len(axis) - start)
    if not symbols.strip():
        return []
    kinds = dict.fromkeys(mark.kind for mark in marks if mark.kind != "compaction")
    legend = "  ".join(f"{SYMBOLS[kind]} {kind}" for kind in kinds)
    return [[StyledText(" " * start + symbols, "bold")], [StyledText(" " * start + legend, "dim")]]


def _unreadable_lines(detail: SessionDetail) -> list[Line]:
    lost = detail.timeline.unreadable
    return [[StyledText(f"{count_of(lost, 'record')} could not be read", "dim")]] if lost else []


class FillingLines(msgspec.Struct, frozen=True):
    """What fills a thread: a bar by category, the largest pieces, waste.

    Paths in the project are relative to it.
    """

    width: int
    project: str | None
    colour: bool = True

    def lines(self, explanation: Explanation | None, thread: str) -> Iterator[Line]:
        """Yield the lines of one thread; None is an explanation that is being read."""
        if explanation is None:
            yield [StyledText("Reading the transcript ...", "dim")]
            return
        filled = next((each for each in explanation.threads if each.thread == thread), None)
        if filled is None:
            reason = explanation.problem or "this thread has no call yet"
            yield from self._wrapped(f"What fills it is unknown: {strip_control(reason)}.")
        else:
            yield from self._thread_lines(filled)

    def _thread_lines(self, thread: ExplainedThread) -> Iterator[Line]:
        if thread.sent is None:
            yield from self._wrapped("What fills it is unknown until the next reply.")
        else:
            yield [
                StyledText("What fills it", "bold"),
                StyledText(f"  {thread.sent:,} tokens sent", "dim"),
            ]
            yield from self._category_lines(thread, thread.sent)
        if thread.pending:
            more = f"About {format_tokens(thread.pending)} tokens more came in since the last call."
            yield from self._wrapped(more)
        yield from self._piece_lines(thread)
        yield from self._waste_lines(thread)

    def _category_lines(self, thread: ExplainedThread, sent: int) -> Iterator[Line]:
        categories = [each for each in thread.categories if each.tokens or not each.note]
        if thread.unexplained:
            categories.append(ExplainedCategory(UNEXPLAINED, thread.unexplained, []))
        segments = [category_segment(each.name, each.tokens) for each in categories]
        cells = count_cells(segments, sent, min(self.width, MAX_BAR_COLUMNS))
        yield [self._paint(*pair) for pair in zip(segments, cells, strict=True)]
        for category, segment in zip(categories, segments, strict=True):
            name = truncate(strip_control(category.name), NAME_COLUMNS)
            share = format_percent(percent_raw(category.tokens, sent) or 0.0)
            figures = f" {name:<{NAME_COLUMNS}}{category.tokens:>9,}{share:>7}"
            yield [self._paint(segment, 1), StyledText(figures)]
        for category in thread.categories:
            if category.note:
                yield from self._wrapped(strip_control(f"{category.name}: {category.note}"))

    def _paint(self, segment: Segment, cells: int) -> StyledText:
        """A part of the bar: its colour, or its letter on a terminal without colours."""
        if not self.colour:
            return StyledText(segment.letter * cells)
        return StyledText(BLOCK * cells, colour=int(segment.colour))

    def _piece_lines(self, thread: ExplainedThread) -> Iterator[Line]:
        pieces = [(piece, each) for each in thread.categories for piece in each.pieces]
        pieces.sort(key=lambda pair: pair[0].tokens, reverse=True)
        if pieces:
            yield from (BLANK_LINE, [StyledText("largest pieces", "dim")])
        for piece, category in pieces[:MAX_PIECES]:
            mark = self._paint(category_segment(category.name, 1), 1)
            figure = f" {format_tokens(piece.tokens):>{TOKENS_COLUMNS}}  "
            name = truncate(self._clean(piece.what or category.name), self.width - 1 - len(figure))
            yield [mark, StyledText(figure), StyledText(name)]

    def _waste_lines(self, thread: ExplainedThread) -> Iterator[Line]:
        total = thread.waste_total
        if total:
            title = f"waste {format_tokens(total.tokens)}"
            yield from (BLANK_LINE, [StyledText(title, "dim")])
        for finding in thread.waste[:MAX_FINDINGS]:
            cost = "" if finding.cost is None else f" ${finding.cost:,.2f} so far."
            yield from self._wrapped(self._clean(finding.advice) + cost)
        if len(thread.waste) > MAX_FINDINGS:
            yield [StyledText(f"and {len(thread.waste) - MAX_FINDINGS} more", "dim")]
        if total and total.small_text:
            yield [StyledText(total.small_text, "dim")]

    def _clean(self, text: str) -> str:
        return strip_control(text.replace(f"{self.project}/", "") if self.project else text)

    def _wrapped(self, text: str) -> Iterator[Line]:
        return ([StyledText(part)] for part in wrap_text(text, self.width))
