"""The lines of the overview: one per session on a wide terminal, two on a narrower one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from brimline.terminal.text import count_of, format_age, strip_control, truncate
from brimline.tui import bars
from brimline.tui.api_types import WatchedSession, WatchedThread
from brimline.tui.styled_text import Line, StyledText, pad

MIN_COLUMNS = 40
TWO_LINES_MIN_COLUMNS, ONE_LINE_MIN_COLUMNS = 70, 160
MAX_SUBAGENTS = 4  # below a session, the latest
SUBAGENT_NAME_COLUMNS = 13

CURSOR, NO_CURSOR = "▸ ", "  "


class OverviewColumn(msgspec.Struct, frozen=True):
    """A column; `name` is the key of its text.

    A column without `width` gets `share` parts of the remaining width, at most `max_width`.
    """

    name: str
    width: int = 0
    title: str = ""
    right: bool = False
    keep_end: bool = False
    share: int = 1
    max_width: int = 1_000


BAR = "bar"
TITLE = OverviewColumn("title", title="session", share=3)
AGENT = OverviewColumn("agent", 8, "agent")
PROJECT = OverviewColumn("project", title="project", keep_end=True, share=2)
MODEL = OverviewColumn("model", 14, "model")
CONTEXT = OverviewColumn(BAR, title="context", share=3, max_width=72)
PERCENT = OverviewColumn("percent", 7, right=True)
TOKENS = OverviewColumn("tokens", 9, "tokens", right=True)
FIGURES = (PERCENT, OverviewColumn("word", 8), TOKENS)
STATE = OverviewColumn("state", 10, "state")
UNREAD = OverviewColumn("unread", 6, "unread", right=True)
AGE = OverviewColumn("age", 4, "age", right=True)
COST = OverviewColumn("cost", 8, "cost", right=True)
END = (
    *(MODEL, CONTEXT, *FIGURES, OverviewColumn("limit", 8, "of limit", right=True), STATE),
    *(OverviewColumn("handoff", 7, "handoff"), UNREAD, COST, AGE),
)


class Layout(msgspec.Struct, frozen=True):
    """The columns of each line of a session, and of a subagent's line."""

    session: tuple[tuple[OverviewColumn, ...], ...]
    subagent: tuple[OverviewColumn, ...]


ONE_LINE = Layout(((TITLE, PROJECT, AGENT, *END),), (TITLE, PROJECT, AGENT, *END))


def _two_lines(last: OverviewColumn) -> Layout:
    head = TITLE, PROJECT, AGENT, MODEL, OverviewColumn("news", 10, "state"), AGE
    figures = CONTEXT, *FIGURES, OverviewColumn("limited", 15, right=True), last
    return Layout((head, figures), (TITLE, CONTEXT, *FIGURES, AGE))


def _small(middle: OverviewColumn) -> Layout:
    return Layout(
        ((TITLE, middle, AGE), (CONTEXT, PERCENT, TOKENS)),
        (TITLE, CONTEXT, PERCENT),
    )


TWO_LINES, TWO_LINES_BY_COST = map(
    _two_lines, (OverviewColumn("handed", 13), OverviewColumn("costs", 13))
)
SMALL, SMALL_BY_COST = _small(AGENT), _small(COST)


def layout_for(width: int, by_cost: bool = False) -> Layout:
    """The layout that shows most on a terminal of this width, with the cost if it is the order."""
    if width >= ONE_LINE_MIN_COLUMNS:
        return ONE_LINE
    if width >= TWO_LINES_MIN_COLUMNS:
        return TWO_LINES_BY_COST if by_cost else TWO_LINES
    return SMALL_BY_COST if by_cost else SMALL


class OverviewRows(msgspec.Struct, frozen=True):
    """Formats sessions for a terminal of a given width; the home folder is shown as ~.

    Above the sessions with a key in `group_starts` is a blank line. `by_cost`: they are sorted by
    their cost.
    """

    width: int
    now: float
    home: Path
    group_starts: frozenset[str] = frozenset()
    by_cost: bool = False

    @property
    def layout(self) -> Layout:
        return layout_for(self.width, self.by_cost)

    def header(self) -> Line:
        columns = self.layout.session[0]
        titles = {column.name: StyledText(column.title, "dim") for column in columns}
        return self._format_columns(columns, titles)

    def height(self, view: WatchedSession) -> int:
        others = len(view.subagents)
        own = len(self.layout.session) + (view.need is not None) + (view.key in self.group_starts)
        return own + min(others, MAX_SUBAGENTS) + (others > MAX_SUBAGENTS)

    def lines(self, view: WatchedSession, selected: bool = False) -> list[Line]:
        texts = self._session_texts(view, selected)
        parts = self.layout.session
        own = [self._format_columns(columns, texts, view, view.main) for columns in parts]
        if selected:
            own[0][0] = StyledText(CURSOR, "bold")
        above: list[Line] = [()] if view.key in self.group_starts else []
        return [*above, *own, *self._need_lines(view), *self._subagent_lines(view)]

    def _need_lines(self, view: WatchedSession) -> list[Line]:
        if view.need is None:
            return []
        text = truncate(f"{NO_CURSOR}{strip_control(view.need.text)}", self.width)
        return [[StyledText(text, bars.thread_shade(view.main) if view.main else "none")]]

    def _subagent_lines(self, view: WatchedSession) -> list[Line]:
        subagents = view.subagents[:MAX_SUBAGENTS]
        lines: list[Line] = [
            self._format_columns(
                self.layout.subagent, self._subagent_texts(view, thread), view, thread
            )
            for thread in subagents
        ]
        if hidden := len(view.subagents) - len(subagents):
            lines.append([StyledText(f"{NO_CURSOR}+ {count_of(hidden, 'other subagent')}", "dim")])
        return lines

    def _session_texts(self, view: WatchedSession, selected: bool) -> dict[str, StyledText]:
        main = view.main
        handoff = bars.handoff_text(view)
        fresh = handoff == "fresh"
        return self._thread_texts(view, main) | {
            "agent": StyledText(strip_control(view.session.agent)),
            "title": StyledText(bars.headline_text(view), "selected" if selected else "bold"),
            "project": StyledText(bars.project_text(view, self.home), "dim"),
            "model": StyledText(bars.model_text((main and main.model) or view.session.model)),
            "cost": StyledText(bars.cost_text(view)),
            "costs": StyledText(f"cost {bars.cost_text(view)}"),
            "news": StyledText(self._news_text(view), "bold" if view.unread else "dim"),
            "unread": StyledText(bars.unread_text(view), "bold" if view.unread else "dim"),
            "handoff": StyledText(handoff, "none" if fresh else "dim"),
            "handed": StyledText(f"handoff {handoff}", "none" if fresh else "dim"),
        }

    def _news_text(self, view: WatchedSession) -> str:
        """The state; for a measured session the unread messages, if there are any."""
        state = bars.state_text(view, view.main, self.now)
        return state or (f"{view.unread} unread" if view.unread else "")

    def _subagent_texts(self, view: WatchedSession, thread: WatchedThread) -> dict[str, StyledText]:
        name = thread.title or truncate(thread.thread, SUBAGENT_NAME_COLUMNS)
        return self._thread_texts(view, thread) | {
            "title": StyledText(strip_control(f"└ {name}"), "dim"),
            "model": StyledText(bars.model_text(thread.model), "dim"),
        }

    def _thread_texts(
        self, view: WatchedSession, thread: WatchedThread | None
    ) -> dict[str, StyledText]:
        """The texts of a thread; without one only state and age."""
        about = {
            "state": StyledText(bars.state_text(view, thread, self.now), "dim"),
            "age": StyledText(format_age(self.now - bars.last_seen_at(view, thread)), "dim"),
        }
        if thread is None:
            return about
        shade, limit = bars.thread_shade(thread), bars.limit_text(thread)
        return about | {
            "percent": StyledText(bars.percent_text(thread), shade),
            "word": StyledText(bars.shade_word(thread), shade),
            "tokens": StyledText(bars.tokens_text(thread)),
            "limit": StyledText(limit, "dim"),
            "limited": StyledText(f"of limit {limit}", "dim"),
        }

    def _format_columns(
        self,
        columns: Sequence[OverviewColumn],
        texts: Mapping[str, StyledText],
        view: WatchedSession | None = None,
        thread: WatchedThread | None = None,
    ) -> list[StyledText]:
        """Return the texts padded to their columns, behind the place of the cursor."""
        line = [StyledText(NO_CURSOR)]
        widths = column_widths(columns, self.width - len(NO_CURSOR))
        for column, width in zip(columns, widths, strict=True):
            if column.name == BAR and view is not None and thread is not None:
                line += bars.draw_thread_bar(view, thread, width)
            else:
                text = texts.get(column.name, StyledText(""))
                line.append(pad(text.text, width, text.shade, column.right, column.keep_end))
            line.append(StyledText(" "))
        return line[:-1]


def column_widths(columns: Sequence[OverviewColumn], width: int) -> list[int]:
    """The width of each column; together with the blanks they fill the given width."""
    rest = max(0, width - sum(column.width for column in columns) - len(columns) + 1)
    shares = sum(column.share for column in columns if not column.width)
    result: list[int] = []
    for column in reversed(columns):
        own = column.width
        if not own:
            own = min(column.max_width, rest * column.share // shares)
            rest, shares = rest - own, shares - column.share
        result.append(own)
    return result[::-1]
