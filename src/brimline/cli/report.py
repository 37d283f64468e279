"""`brimline report`: sessions, calls, peaks, compactions, tokens and cost."""

import argparse
import sys
import time
from pathlib import Path

import msgspec

from brimline.agents import AGENTS, SIGNS, known, present, source
from brimline.cli import again, uncollected
from brimline.cli.context import Context, as_json
from brimline.settings import project_files, seconds, user_file
from brimline.survey.files import transcripts
from brimline.survey.index import Knowledge
from brimline.survey.report import Filter, Line, Report, items, report
from brimline.survey.summary import day_of
from brimline.terminal.text import Cell, Column, count_of, format_table, shorten_home, strip_control
from brimline.usage import format_tokens

FIELDS = (
    "key",
    "agents",
    "sessions",
    "calls",
    "peak_sent",
    "end_sent",
    "compactions",
    "input",
    "cache_read",
    "cache_write",
    "output",
    "cost",
)


def run(context: Context, options: argparse.Namespace) -> int:
    """Show the report, and keep it for when it is asked for again with nothing changed."""
    with uncollected():
        return _run(context, options)


def _run(context: Context, options: argparse.Namespace) -> int:
    agents = [known(options.agent)] if options.agent else list(AGENTS)
    folders = _witnesses(context)
    found = transcripts(context.places, agents)
    knowledge = Knowledge.of(context.cache)
    knowledge.learn(found, progress=_progress())
    knowledge.settle(found, agents)
    knowledge.save()
    for problem in knowledge.problems:
        print(f"brimline: {strip_control(problem)}", file=sys.stderr)
    since = day_of(context.now - seconds(options.since)) if options.since else None
    made = report(items(knowledge, found), options.by, Filter(since, options.project))
    output = _rendered(context, options, made, bool(found))
    sys.stdout.write(output)
    if since is None and not knowledge.problems:
        files = [(t.path, t.size, t.modified, knowledge.end(t, again.TAIL)) for t in found]
        again.keep(context.arguments, output.encode(), files, folders)
    return 0


def _witnesses(context: Context) -> list[str]:
    """What the list of transcripts and the settings depend on, as it was before they were read."""
    places = context.places
    below = [str(path) for agent in present(places) for path in source(agent).folders(places)]
    signs = [str(places.home / folder) for _, folders in SIGNS.values() for folder in folders]
    settings = map(str, (user_file(places.env, places.home), *project_files(Path.cwd())))
    return [
        *(line for folder in below for line in again.folders_below(folder)),
        *(again.witness(path) for path in (*signs, *settings)),
    ]


def _rendered(context: Context, options: argparse.Namespace, made: Report, files: bool) -> str:
    if options.json:
        return as_json(made)
    if options.csv:
        return _csv(made)
    if made.lines:
        return "\n".join(_table(context, made)) + "\n"
    return "No calls found.\n" if files else f"No agent's files ({', '.join(AGENTS.values())}).\n"


def _csv(made: Report) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((made.by, *FIELDS[1:]))
    for line in made.lines:
        flat = {**msgspec.structs.asdict(line), **msgspec.structs.asdict(line.usage)}
        flat["agents"] = " ".join(line.agents)
        writer.writerow(["" if flat[name] is None else flat[name] for name in FIELDS])
    return out.getvalue()


def _table(context: Context, made: Report) -> list[str]:
    columns = [
        Column(made.by, min_width=16, keep_end=made.by in ("project", "session")),
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
    rows = [_row(context, made, line) for line in made.lines]
    rows.append([Cell(cell.text, "bold") for cell in _row(context, made, made.total)])
    if made.by != "session":
        end = [column.title for column in columns].index("end")
        for line in (columns, *rows):
            del line[end]
    lines = format_table(columns, rows, context.width, context.colour)
    if made.total.unpriced:
        unpriced = count_of(made.total.unpriced, "call")
        lines.append(f"Not in the cost: {unpriced} on models whose price is not known.")
    return lines


def _row(context: Context, made: Report, line: Line) -> list[Cell]:
    usage = line.usage
    key = shorten_home(line.key, context.places.home) if made.by == "project" else line.key
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
        Cell("unknown" if line.cost is None else f"${line.cost:,.2f}"),
    ]


def _tokens(count: int | None) -> str:
    return "" if count is None else format_tokens(count)


class _Bar:
    """A progress bar on standard error, once the work has taken a second."""

    WIDTH = 30

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._drawn = False

    def __call__(self, done: int, whole: int) -> None:
        if time.monotonic() - self._begun < 1 and not self._drawn:
            return
        self._drawn = True
        full = self.WIDTH * done // max(1, whole)
        bar = "█" * full + "░" * (self.WIDTH - full)
        end = "\r\x1b[K" if done >= whole else ""
        sys.stderr.write(f"\r{bar} {done >> 20:,} of {whole >> 20:,} MB{end}")
        sys.stderr.flush()


def _progress() -> _Bar | None:
    return _Bar() if sys.stderr.isatty() else None
