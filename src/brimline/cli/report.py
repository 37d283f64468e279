"""`brimline report`: sessions, calls, peaks, compactions, tokens and cost."""

import argparse
import sys
import time
from contextlib import suppress
from datetime import date
from typing import get_args

import msgspec

from brimline.agents import agent_names, display_name
from brimline.cli.arguments import add_agent, chosen_agents
from brimline.cli.context import CommandContext, as_json, print_problems
from brimline.cli.daemon_sessions import AnswerSource, DaemonQuestion
from brimline.cli.progress_bar import clock
from brimline.context.prices import day_of
from brimline.context.usage import format_tokens
from brimline.sessions.files import find_transcripts
from brimline.sessions.index import Progress, TranscriptIndex
from brimline.sessions.report import (
    GroupBy,
    MissTotal,
    Report,
    ReportFilter,
    ReportLine,
    SortBy,
    TranscriptSummary,
    build_report,
    summaries,
)
from brimline.settings import seconds
from brimline.terminal.text import (
    Cell,
    Column,
    count_of,
    draw_bar,
    format_dollars,
    format_table,
    shorten_home,
    strip_control,
)

BAR_COLUMNS = 30
FIRST_DRAWING_S = 1.0  # shorter work needs no bar
FIELDS = (
    *("key", "agents", "sessions", "calls", "peak_sent", "end_sent", "compactions"),
    *("input", "cache_read", "cache_write", "output", "cost"),
)

LONG_KEYS = ("session", "project", "branch")  # they differ at their ends

MISS_FIELDS = ("key", "agents", "cause", "misses", "tokens", "cost")


class PrintedReport(Report, frozen=True, kw_only=True):
    """What `report --json` prints; `source` is `daemon` if it has the sessions without files."""

    source: AnswerSource


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_agent(to)
    help_text = "the first day: a date such as 2026-11-01, or how long ago: 24h, 7d, 2w"
    to.add_argument("--since", dest="first_day", metavar="DAY", help=help_text)
    help_text = "the last day: a date, or how long ago"
    to.add_argument("--until", dest="last_day", metavar="DAY", help=help_text)
    to.add_argument("--project", metavar="TEXT", help="only projects whose path contains TEXT")
    to.add_argument("--branch", metavar="NAME", help="only calls on this git branch")
    groups = get_args(GroupBy)
    help_text = f"group by this: {', '.join(groups)} (default: day)"
    to.add_argument("--by", choices=groups, metavar="KEY", default="day", help=help_text)
    figures = get_args(SortBy)
    help_text = f"sort by this, the largest figure first: {', '.join(figures)} (default: key)"
    to.add_argument("--sort", choices=figures, metavar="BY", default="key", help=help_text)
    help_text = (
        "show cache misses instead: calls that paid again for what was in the cache, and why"
    )
    to.add_argument("--misses", action="store_true", help=help_text)
    form = to.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON instead of a table")
    form.add_argument("--csv", action="store_true", help="print CSV instead of a table")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    agents = chosen_agents(options)
    selection = ReportFilter(
        first_day=_day(context, "since", options.first_day),
        last_day=_day(context, "until", options.last_day),
        project=options.project,
        branch=options.branch,
    )
    question = DaemonQuestion(context, "/v1/history/stored")
    transcripts = find_transcripts(context.places, agents)
    index = TranscriptIndex.load(context.cache)
    index.update(transcripts, progress=_progress())
    index.dedupe_calls(transcripts, agents)
    index.save()
    print_problems(index.problems)
    recorded = summaries(index, transcripts)
    # Sessions of telemetry and of programs have no transcript: only the store has them.
    stored = question.read_items(TranscriptSummary)
    known = {item.session for item in recorded}
    others = [item for item in stored or () if item.session not in known]
    if options.agent:
        others = [item for item in others if item.transcript.agent in agents]
    report = build_report([*recorded, *others], options.by, selection, options.sort)
    printed = PrintedReport(
        report.by, report.lines, report.total, source="files" if stored is None else "daemon"
    )
    sys.stdout.write(_rendered(context, options, printed, bool(transcripts)))
    return 0


def _day(context: CommandContext, field: str, text: str | None) -> str | None:
    """The day of a date or of a span before now; raises InvalidSettings."""
    if text is None:
        return None
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat()
    expected = "a date such as 2026-11-01, or a span such as 90m, 24h, 7d, 2w"
    return day_of(context.now - seconds(text, field, expected=expected))


def _rendered(
    context: CommandContext, options: argparse.Namespace, report: Report, files: bool
) -> str:
    if options.json:
        return as_json(report)
    if options.csv:
        return _csv(report, options.misses)
    if report.lines:
        lines = (_miss_table if options.misses else _table)(context, report)
        return "\n".join(lines) + "\n"
    if files:
        return "No calls found.\n"
    return f"No transcripts found ({', '.join(map(display_name, agent_names()))}).\n"


def _csv(report: Report, is_about_misses: bool) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = MISS_FIELDS if is_about_misses else FIELDS
    writer.writerow((report.by, *fields[1:]))
    for line in report.lines:
        for flat in _miss_records(line) if is_about_misses else [_record(line)]:
            writer.writerow([_csv_value(flat[name]) for name in fields])
    return out.getvalue()


def _csv_value(value: object) -> object:
    """Return a value for a CSV cell, which a terminal or a spreadsheet shows as it is."""
    if not isinstance(value, str):
        return "" if value is None else value
    # A spreadsheet would compute a text that begins like a formula.
    return strip_control(f"'{value}" if value.startswith(("=", "+", "-", "@")) else value)


def _record(line: ReportLine) -> dict[str, object]:
    agents = " ".join(line.agents)
    return {**msgspec.structs.asdict(line), **msgspec.structs.asdict(line.usage), "agents": agents}


def _miss_records(line: ReportLine) -> list[dict[str, object]]:
    known = {"key": line.key, "agents": " ".join(line.agents)}
    return [
        {**known, "cause": cause, "misses": total.calls, "tokens": total.tokens, "cost": total.cost}
        for cause, total in line.miss_causes.items()
    ]


def _miss_table(context: CommandContext, report: Report) -> list[str]:
    """Return a row for each line with misses; if these have several causes, one for each below."""
    columns = [
        _key_column(report),
        Column("cause", min_width=12),
        Column("calls", right=True, drop_order=1),
        Column("misses", right=True),
        Column("tokens", right=True),
        Column("cost", right=True),
    ]
    lines = [line for line in report.lines if line.misses.calls]
    if not lines:
        return ["No cache misses found."]
    rows = [row for line in lines for row in _miss_rows(context, report, line)]
    total = _miss_rows(context, report, report.total)
    rows += [[Cell(cell.text, "bold") for cell in row] for row in total]
    return format_table(columns, rows, context.width, context.colour)


def _key_column(report: Report) -> Column:
    width = 32 if report.by == "branch" else 16  # a branch has its project before it
    return Column(report.by, min_width=width, keep_end=report.by in LONG_KEYS)


def _miss_rows(context: CommandContext, report: Report, line: ReportLine) -> list[list[Cell]]:
    key, *_ = _row(context, report, line)
    causes = line.miss_causes
    only = next(iter(causes)) if len(causes) == 1 else ""
    calls = Cell(f"{line.calls:,}")
    first = [key, Cell(only), calls, *_miss_cells(line.misses)]
    if only:
        return [first]
    blank = Cell("")
    return [
        first,
        *([blank, Cell(cause), blank, *_miss_cells(causes[cause])] for cause in causes),
    ]


def _miss_cells(total: MissTotal) -> list[Cell]:
    return [
        Cell(f"{total.calls:,}"),
        Cell(format_tokens(total.tokens)),
        Cell(format_dollars(total.cost)),
    ]


def _table(context: CommandContext, report: Report) -> list[str]:
    columns = [
        _key_column(report),
        Column("agents", drop_order=5, min_width=6),
        Column("sessions", right=True, drop_order=3),
        Column("calls", right=True),
        Column("peak", right=True),
        Column("end", right=True, drop_order=7),
        Column("compactions", right=True, drop_order=2),
        Column("input", right=True, drop_order=6),
        Column("cache read", right=True, drop_order=8),
        Column("cache write", right=True, drop_order=9),
        Column("output", right=True, drop_order=4),
        Column("cost", right=True),
    ]
    rows = [_row(context, report, line) for line in report.lines]
    rows.append([Cell(cell.text, "bold") for cell in _row(context, report, report.total)])
    if report.by != "session":
        end = [column.title for column in columns].index("end")
        for line in (columns, *rows):
            del line[end]
    lines = format_table(columns, rows, context.width, context.colour)
    if report.total.unpriced:
        unpriced = count_of(report.total.unpriced, "call")
        lines.append(f"Not in the cost: {unpriced} on models without a known price.")
    if report.total.client_cost is not None:
        dollars = f"${report.total.client_cost:,.2f}"
        lines.append(f"{dollars} of the cost are the clients' own figures: no price is known.")
    return lines


def _row(context: CommandContext, report: Report, line: ReportLine) -> list[Cell]:
    usage = line.usage
    has_path = report.by in ("project", "branch")
    key = shorten_home(line.key, context.places.home) if has_path else line.key
    return [
        Cell(strip_control(key)),
        Cell(" ".join(line.agents)),
        Cell(f"{line.sessions:,}"),
        Cell(f"{line.calls:,}"),
        Cell(_tokens(line.peak_sent)),
        Cell(_tokens(line.end_sent)),
        Cell(f"{line.compactions:,}"),
        Cell(format_tokens(usage.input)),
        Cell(format_tokens(usage.cache_read)),
        Cell(format_tokens(usage.cache_write)),
        Cell(format_tokens(usage.output)),
        Cell(format_dollars(line.cost)),
    ]


def _tokens(count: int | None) -> str:
    return "" if count is None else format_tokens(count)


def _progress() -> Progress | None:
    """Return a progress bar on standard error, which is drawn once the work has taken a second."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()
    is_drawn = False

    def draw(done: int, whole: int) -> None:
        nonlocal is_drawn
        elapsed = time.monotonic() - start
        if is_drawn or elapsed >= FIRST_DRAWING_S:
            is_drawn = True
            bar = draw_bar(100 * done / max(1, whole), BAR_COLUMNS, whole_cells=True)
            end = "\r\x1b[K" if done >= whole else ""
            sys.stderr.write(f"\r{bar} {describe_progress(done, whole, elapsed)}\x1b[K{end}")
            sys.stderr.flush()

    return draw


def describe_progress(done: int, whole: int, elapsed: float) -> str:
    """What was read in so many seconds, how fast, and how long the rest will take."""
    amount = f"{done >> 20:,} of {whole >> 20:,} MB"
    if not done or not elapsed:
        return amount
    rate = done / elapsed
    return f"{amount}, {rate / (1 << 20):,.0f} MB/s, {clock((whole - done) / rate)} left"
