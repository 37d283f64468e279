"""`brimline tools`: what a project's MCP servers, memory files, skills and agents cost."""

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap

from brimline.agents import display_name
from brimline.agents.fresh_session import baseline, can_be_asked
from brimline.cli.arguments import add_json
from brimline.cli.context import CommandContext, emit_json, print_problems
from brimline.cli.read_progress import draw_progress
from brimline.context.usage import format_tokens
from brimline.errors import BaselineFailed, InvalidSettings
from brimline.sessions.files import find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import summaries
from brimline.sessions.tool_report import (
    REPORTED_DAYS,
    CarriedPart,
    ToolReport,
    group_by_project,
    report_tools,
)
from brimline.terminal.text import (
    Cell,
    Column,
    colourize,
    count_of,
    format_age,
    format_dollars,
    format_table,
    join_facts,
    strip_control,
)

MAX_ROWS = 20
MAX_PROJECTS = 5  # that are named if none is meant

COLUMNS = (
    Column("what", min_width=12),
    Column("kind", drop_order=2),
    Column("tokens", right=True),
    Column("sessions", right=True),
    Column("called in", right=True),
    Column("calls", right=True, drop_order=1),
    Column("cost", right=True),
)


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "a project's folder, or a part of its path (default: this folder)"
    to.add_argument("project", nargs="?", metavar="PROJECT", help=help_text)
    add_json(to, "a table")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    transcripts = find_transcripts(context.places)
    index = TranscriptIndex.load(context.cache)
    index.update(transcripts, progress=draw_progress())
    index.dedupe_calls(transcripts, {each.agent for each in transcripts})
    index.save()
    print_problems(index.problems)
    by_project = group_by_project(summaries(index, transcripts))
    project = _choose(options.project, list(by_project))
    items = by_project[project]
    _ask_clients(context, project, {item.transcript.agent for item in items})
    report = report_tools(
        items, project, context.places, context.cache, time.time(), draw_progress()
    )
    if options.json:
        emit_json(report)
    else:
        print("\n".join(_text(context, report)))
    return 0


def _choose(named: str | None, projects: Sequence[str]) -> str:
    """Return the project that is meant: a folder or the nearest above it, or a part of a path."""
    folder = Path(named or ".").resolve()
    for each in (folder, *folder.parents) if named is None or folder.is_dir() else ():
        if str(each) in projects:
            return str(each)
    matches = [each for each in projects if named is not None and named in each]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join((matches or list(projects))[:MAX_PROJECTS]) or "none was found"
    raise InvalidSettings("argument", "PROJECT", f"expected a project with sessions: {listed}")


def _ask_clients(context: CommandContext, project: str, agents: Iterable[str]) -> None:
    """Have clients say what a fresh session holds, which is cached; what fails is printed."""
    for agent in filter(can_be_asked, agents if Path(project).is_dir() else ()):
        try:
            baseline(agent, cwd=project, settings=context.settings, places=context.places)
        except BaselineFailed as error:
            print_problems([f"{display_name(agent)} was not asked: {error.reason}"])


def _text(context: CommandContext, report: ToolReport) -> list[str]:
    sessions = count_of(report.sessions, "session")
    facts = [strip_control(report.project), f"{sessions} in {REPORTED_DAYS} days"]
    lines = [colourize(line, "bold", context.colour) for line in join_facts(facts, context.width)]
    if not report.parts:
        return [*lines, "No transcript names MCP servers, memory files, skills or agents."]
    shown = report.parts[:MAX_ROWS]
    rows = [_row(part, report.project) for part in shown]
    lines += format_table(COLUMNS, rows, context.width, context.colour)
    if others := report.parts[MAX_ROWS:]:
        lines.append(f"and {len(others)} more (--json lists all)")
    if any(part.is_estimated for part in shown):
        lines.append("~ estimated: divided as the client divides a fresh session")
    if report.answered_at is not None:
        age = format_age(context.now - report.answered_at)
        lines.append(f"{_clients(report)} was asked {age} ago what a fresh session has.")
    advice = [part.advice for part in report.parts if part.advice]
    if advice:
        lines += ["", colourize("What to do", "bold", context.colour)]
    for each in advice:
        text = strip_control(each)
        lines += wrap(text, context.width, initial_indent="  ", subsequent_indent="    ")
    return lines


def _clients(report: ToolReport) -> str:
    agents = sorted({part.agent for part in report.parts if can_be_asked(part.agent)})
    return ", ".join(map(display_name, agents))


def _row(part: CarriedPart, project: str) -> list[Cell]:
    tokens = "unknown" if part.tokens is None else format_tokens(part.tokens)
    is_called = part.kind != "memory file"
    return [
        Cell(strip_control(part.name.removeprefix(f"{project}/"))),
        Cell(part.kind),
        Cell(f"~{tokens}" if part.is_estimated else tokens),
        Cell(f"{part.sessions:,}"),
        Cell(f"{part.called_sessions:,}" if is_called else ""),
        Cell(f"{part.calls:,}" if is_called else ""),
        Cell(format_dollars(part.cost)),
    ]
