"""The tables of `brimline report`."""

import time
from collections.abc import Collection, Sequence

from brimline.cli.context import CommandContext
from brimline.context.usage import format_tokens
from brimline.sessions.files import shorten_paths
from brimline.sessions.report import MissTotal, ModelTotal, Report, ReportLine, SessionFacts
from brimline.terminal.text import (
    Cell,
    Column,
    cell_width,
    count_of,
    format_age,
    format_dollars,
    format_table,
    shorten_home,
    strip_control,
)

COST_COLUMNS = 12  # they stay for the cost beside a long name
MIN_NAME_COLUMNS = {"session": 12, "branch": 32}  # a branch has its project before it
DEFAULT_NAME_COLUMNS = 16
PATH_KEYS = ("project", "branch")
SEPARATE_CACHE, MERGED_CACHE = ("cache read", "cache write"), ("cache",)

FIGURES = (
    Column("calls", right=True, drop_order=1),
    Column("peak", right=True, drop_order=6),
    Column("end", right=True, drop_order=12),
    Column("compactions", right=True, drop_order=7),
    Column("input", right=True, drop_order=11),
    Column("cache read", right=True, drop_order=13),
    Column("cache write", right=True, drop_order=14),
    Column("cache", right=True, drop_order=4),
    Column("output", right=True, drop_order=8),
    Column("cost", right=True),
)
MISSES = (
    Column("cause", min_width=12),
    Column("calls", right=True, drop_order=1),
    Column("misses", right=True),
    Column("tokens", right=True),
    Column("cost", right=True),
)
BLANK = Cell("")


class ReportTable:
    """The lines of a report for a terminal, with their models below them if `has_models`."""

    def __init__(self, context: CommandContext, report: Report, has_models: bool = False) -> None:
        self._context, self._report, self._has_models = context, report, has_models
        self._is_by_session = report.by == "session"
        sessions = [line.session for line in report.lines if line.session]
        self._projects = shorten_paths(each.project for each in sessions if each.project)

    def format(self) -> list[str]:
        columns = [*self._name_columns(), *self._detail_columns(), *FIGURES]
        total = self._report.total
        rows = [row for line in self._report.lines for row in self._rows(line)]
        rows += _in_bold(self._rows(total))
        lines = self._format(columns, rows, MERGED_CACHE)
        if SEPARATE_CACHE[-1] not in lines[0]:
            lines = self._format(columns, rows, SEPARATE_CACHE)
        if total.unpriced:
            unpriced = count_of(total.unpriced, "call")
            lines.append(f"Not in the cost: {unpriced} on models without a known price.")
        if total.client_cost is not None:
            dollars = f"${total.client_cost:,.2f}"
            lines.append(f"{dollars} of the cost are the clients' own figures: no price is known.")
        return lines

    def format_misses(self) -> list[str]:
        """Return a row for each line with misses; if these have several causes, one for each."""
        lines = [line for line in self._report.lines if line.misses.calls]
        if not lines:
            return ["No cache misses found."]
        rows = [row for line in lines for row in self._miss_rows(line)]
        rows += _in_bold(self._miss_rows(self._report.total))
        return self._format([*self._name_columns(), *MISSES], rows)

    def _format(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Cell]],
        hidden: Collection[str] = (),
    ) -> list[str]:
        """Format a table without the hidden columns and those that are empty."""
        places = [
            place
            for place, column in enumerate(columns)
            if column.title not in hidden and any(row[place].text for row in rows)
        ]
        shown = [[row[place] for place in places] for row in rows]
        width, colour = self._context.width, self._context.colour
        return format_table([columns[place] for place in places], shown, width, colour)

    def _name_columns(self) -> list[Column]:
        by, width = self._report.by, self._context.width
        share = width // (4 if self._has_models else 6)
        least = max(share, MIN_NAME_COLUMNS.get(by, DEFAULT_NAME_COLUMNS))
        if self._is_by_session:
            return [Column(by), Column("title", min_width=least)]
        if by in PATH_KEYS:
            # Two folders of one name have as much of their paths as tells them apart.
            ends = shorten_paths(self._place(line.key) for line in self._report.lines).values()
            least = max([least, *(cell_width(f"…/{end}") for end in ends)])
        return [Column(by, min_width=min(least, width - COST_COLUMNS), keep_end=by in PATH_KEYS)]

    def _name_cells(self, line: ReportLine) -> list[Cell]:
        if line.session:
            title = line.session.title
            named = Cell(strip_control(title)) if title else self._project(line.session)
            return [Cell(strip_control(line.session.short_id)), named]
        if self._is_by_session:
            return [Cell(line.key), Cell(count_of(line.sessions, "session"))]
        has_path = self._report.by in PATH_KEYS
        return [Cell(self._place(line.key) if has_path else strip_control(line.key))]

    def _place(self, path: str) -> str:
        return strip_control(shorten_home(path, self._context.places.home))

    def _project(self, session: SessionFacts) -> Cell:
        return Cell(strip_control(self._projects.get(session.project or "", "")), "dim")

    def _detail_columns(self) -> list[Column]:
        agents = Column("agents", drop_order=10, min_width=6)
        if not self._is_by_session:
            sessions = Column("sessions", right=True, drop_order=9)
            return [sessions] if self._report.by == "agent" else [agents, sessions]
        project = Column("project", min_width=8, keep_end=True, drop_order=3)
        start, lasted = Column("start", drop_order=2), Column("lasted", right=True, drop_order=5)
        return [project, start, lasted, agents]

    def _detail_cells(self, line: ReportLine) -> list[Cell]:
        agents, session = Cell(" ".join(line.agents)), line.session
        if not self._is_by_session:
            sessions = Cell(f"{line.sessions:,}")
            return [sessions] if self._report.by == "agent" else [agents, sessions]
        if session is None:
            return [BLANK, BLANK, BLANK, agents]
        first, last = session.first, session.last
        start = "" if first is None else time.strftime("%m-%d %H:%M", time.localtime(first))
        lasted = "" if first is None or last is None else format_age(last - first)
        return [self._project(session), Cell(start), Cell(lasted), agents]

    def _rows(self, line: ReportLine) -> list[list[Cell]]:
        names, details = self._name_cells(line), self._detail_cells(line)
        rows = [[*names, *details, *_figure_cells(line)]]
        if self._has_models:
            before, after = [BLANK] * (len(names) - 1), [BLANK] * len(details)
            for model in line.models:
                name = Cell(f"  {strip_control(model.model)}")
                rows.append([*before, name, *after, *_figure_cells(model)])
        return rows

    def _miss_rows(self, line: ReportLine) -> list[list[Cell]]:
        names, causes = self._name_cells(line), line.miss_causes
        only = next(iter(causes)) if len(causes) == 1 else ""
        rows = [[*names, Cell(only), Cell(f"{line.calls:,}"), *_miss_cells(line.misses)]]
        if not only:
            blank = [BLANK] * len(names)
            rows += [[*blank, Cell(each), BLANK, *_miss_cells(causes[each])] for each in causes]
        return rows


def _in_bold(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    return [[Cell(cell.text, "bold") for cell in row] for row in rows]


def _figure_cells(total: ReportLine | ModelTotal) -> list[Cell]:
    usage = total.usage
    contexts = [BLANK, BLANK, BLANK]
    if isinstance(total, ReportLine):
        contexts = [
            Cell(_tokens(total.peak_sent)),
            Cell(_tokens(total.end_sent)),
            Cell(f"{total.compactions:,}"),
        ]
    return [
        Cell(f"{total.calls:,}"),
        *contexts,
        Cell(format_tokens(usage.input)),
        Cell(format_tokens(usage.cache_read)),
        Cell(format_tokens(usage.cache_write)),
        Cell(format_tokens(usage.cache_read + usage.cache_write)),
        Cell(format_tokens(usage.output)),
        Cell(format_dollars(total.cost)),
    ]


def _tokens(count: int | None) -> str:
    return "" if count is None else format_tokens(count)


def _miss_cells(total: MissTotal) -> list[Cell]:
    return [
        Cell(f"{total.calls:,}"),
        Cell(format_tokens(total.tokens)),
        Cell(format_dollars(total.cost)),
    ]
