"""The lines of the overview: one for a session on a wide terminal, two on a narrow one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from brimline.terminal.text import count_of, format_age, strip_control, truncate
from brimline.tui import bars
from brimline.tui.api_types import Thread, View
from brimline.tui.styled_text import Line, Piece, field

LEAST = 60
"""How many columns there must be."""

ONE_LINE_FROM = 140
"""From so many columns on a session needs one line."""

SUBAGENTS = 4
"""How many subagents are shown below a session, the latest."""

NAME = 13
"""How much of a subagent's name is shown."""

HERE, NOT_HERE = "▸ ", "  "
LEFT = len(HERE)
"""How wide the mark of the chosen session is."""


class Column(msgspec.Struct, frozen=True):
    """A column by the name of what stands in it.

    One without a `width` has its share of what is left, `share` parts of it, up to `most`.
    """

    name: str
    width: int = 0
    title: str = ""
    right: bool = False
    keep_end: bool = False
    share: int = 1
    most: int = 1_000


BAR = "bar"
AGENT = Column("agent", 8, "agent")
PROJECT = Column("project", title="project", keep_end=True)
MODEL = Column("model", 14, "model")
CONTEXT = Column(BAR, title="context", share=2, most=72)
FIGURES = (
    Column("percent", 7, right=True),
    Column("word", 8),
    Column("tokens", 9, "tokens", right=True),
)
STATE = Column("state", 10, "state")
UNREAD = Column("unread", 6, "unread", right=True)
AGE = Column("age", 4, "age", right=True)

ONE = (AGENT, PROJECT, MODEL, CONTEXT, *FIGURES, Column("limit", 8, "to limit", right=True), STATE,
       Column("handoff", 7, "handoff"), UNREAD, AGE)  # fmt: skip
FIRST = (AGENT, PROJECT, MODEL, STATE, UNREAD, AGE)
SECOND = (CONTEXT, *FIGURES, Column("limited", 10, right=True), Column("handed", 13))
BELOW = (Column("project", share=2), CONTEXT, *FIGURES, AGE)
"""A session on one line, on two, and a subagent below the two."""


class Rows(msgspec.Struct, frozen=True):
    """Draws sessions for a terminal of a width, at a time; the home folder is shown as ~."""

    width: int
    now: float
    home: Path

    @property
    def wide(self) -> bool:
        """Whether a session fits on one line."""
        return self.width >= ONE_LINE_FROM

    def head(self) -> Line:
        """The titles of the columns."""
        columns = ONE if self.wide else FIRST
        titles = {column.name: Piece(column.title, "dim") for column in columns}
        return [Piece(NOT_HERE), *self._fields(columns, titles)]

    def height(self, view: View) -> int:
        """How many lines a session takes."""
        others = len(view.subagents)
        return (1 if self.wide else 2) + min(others, SUBAGENTS) + (others > SUBAGENTS)

    def lines(self, view: View, chosen: bool = False) -> list[Line]:
        """A session, its subagents below it."""
        texts = self._session(view, chosen)
        mark = Piece(HERE if chosen else NOT_HERE, "bold")
        own = [[mark, *self._fields(ONE if self.wide else FIRST, texts, view, view.main)]]
        if not self.wide:
            own.append([Piece(NOT_HERE), *self._fields(SECOND, texts, view, view.main)])
        return [*own, *self._below(view)]

    def _below(self, view: View) -> list[Line]:
        shown = view.subagents[:SUBAGENTS]
        columns = ONE if self.wide else BELOW
        lines: list[Line] = [
            [Piece(NOT_HERE), *self._fields(columns, self._subagent(view, one), view, one)]
            for one in shown
        ]
        if hidden := len(view.subagents) - len(shown):
            lines.append([Piece(f"{NOT_HERE}+ {count_of(hidden, 'other subagent')}", "dim")])
        return lines

    def _session(self, view: View, chosen: bool) -> dict[str, Piece]:
        main = view.main
        handoff = bars.handoff_text(view)
        fresh = handoff == "fresh"
        return self._figures(view, main) | {
            "agent": Piece(strip_control(view.session.agent)),
            "project": Piece(bars.place_text(view, self.home), "chosen" if chosen else "bold"),
            "model": Piece(bars.model_text((main and main.model) or view.session.model)),
            "unread": Piece(bars.unread_text(view), "bold" if view.unread else "dim"),
            "handoff": Piece(handoff, "none" if fresh else "dim"),
            "handed": Piece(f"handoff {handoff}", "none" if fresh else "dim"),
        }

    def _subagent(self, view: View, thread: Thread) -> dict[str, Piece]:
        return self._figures(view, thread) | {
            "project": Piece(f"└ {truncate(strip_control(thread.thread), NAME)}", "dim"),
            "model": Piece(bars.model_text(thread.model), "dim"),
        }

    def _figures(self, view: View, thread: Thread | None) -> dict[str, Piece]:
        """What every thread has; of one that was not heard of yet, its state and age."""
        about = {
            "state": Piece(bars.state_text(view, thread, self.now), "dim"),
            "age": Piece(format_age(self.now - bars.heard_at(view, thread)), "dim"),
        }
        if thread is None:
            return about
        shade, limit = bars.thread_shade(thread), bars.limit_text(thread)
        return about | {
            "percent": Piece(bars.percent_text(thread), shade),
            "word": Piece(bars.word_of(thread), shade),
            "tokens": Piece(bars.tokens_text(thread)),
            "limit": Piece(limit, "dim"),
            "limited": Piece(f"limit {limit}", "dim"),
        }

    def _fields(
        self,
        columns: Sequence[Column],
        texts: Mapping[str, Piece],
        view: View | None = None,
        thread: Thread | None = None,
    ) -> list[Piece]:
        """What stands in each column, a blank between two; nothing where there is no text."""
        line: list[Piece] = []
        for column, width in zip(columns, widths(columns, self.width - LEFT), strict=True):
            if column.name == BAR and view is not None and thread is not None:
                line += bars.drawn(view, thread, width)
            else:
                text = texts.get(column.name, Piece(""))
                line.append(field(text.text, width, text.shade, column.right, column.keep_end))
            line.append(Piece(" "))
        return line[:-1]


def widths(columns: Sequence[Column], width: int) -> list[int]:
    """How wide each column is, so that together they take the width."""
    rest = max(0, width - sum(column.width for column in columns) - len(columns) + 1)
    shares = sum(column.share for column in columns if not column.width)
    found: list[int] = []
    for column in reversed(columns):
        own = column.width
        if not own:
            own = min(column.most, rest * column.share // shares)
            rest, shares = rest - own, shares - column.share
        found.append(own)
    return found[::-1]
