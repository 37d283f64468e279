"""`brimline report`: sessions, calls, peaks, compactions, tokens and cost."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import get_args

from msgspec.structs import asdict

from brimline.agents import agent_names, display_name
from brimline.cli import rotations
from brimline.cli.arguments import add_agent, chosen_agents
from brimline.cli.compactions import CSV_FIELDS, csv_record, format_report
from brimline.cli.context import CommandContext, as_json, emit_json, print_problems
from brimline.cli.daemon_sessions import AnswerSource, DaemonQuestion
from brimline.cli.read_progress import draw_progress
from brimline.cli.report_table import ReportTable
from brimline.context.prices import day_of
from brimline.sessions.compaction_report import CompactionReport, report_compactions
from brimline.sessions.files import find_transcripts, group_by_session
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import (
    GroupBy,
    Report,
    ReportFilter,
    ReportLine,
    SessionFacts,
    SortBy,
    TranscriptSummary,
    build_report,
    summaries,
)
from brimline.sessions.rotation_report import read_rotations, report_rotations
from brimline.settings import seconds
from brimline.terminal.text import spreadsheet_value

USAGE = """brimline report [--by KEY] [--since DAY] [--until DAY] [--project TEXT] [--branch NAME]
    [--agent A] [--sort BY] [--models | --misses | --compactions | --rotations]
    [--json | --csv]"""
FIELDS = (
    *("key", "agents", "sessions", "calls", "peak_sent", "end_sent", "compactions"),
    *("input", "cache_read", "cache_write", "output", "cost"),
)

MODEL_FIELDS = ("key", "model", "calls", "input", "cache_read", "cache_write", "output", "cost")
MISS_FIELDS = ("key", "agents", "cause", "misses", "tokens", "cost")


class PrintedReport(Report, frozen=True, kw_only=True):
    """What `report --json` prints; `source` is `daemon` if it has the sessions without files."""

    source: AnswerSource


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = " ".join(USAGE.split())
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
    shown = to.add_mutually_exclusive_group()
    shown.add_argument("--misses", action="store_true", help=help_text)
    help_text = "show the models of each line below it: calls, tokens and cost"
    shown.add_argument("--models", action="store_true", help=help_text)
    help_text = (
        "show each compaction instead: tokens before and after, which facts are kept, and the "
        "averages of each version of a client"
    )
    shown.add_argument("--compactions", action="store_true", help=help_text)
    help_text = (
        "show each chain of sessions instead that were continued from a handoff: compactions "
        "avoided, tokens read again, cache writes"
    )
    shown.add_argument("--rotations", action="store_true", help=help_text)
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
    if options.rotations:
        _print_rotations(context, options, selection, agents)
        return 0
    question = DaemonQuestion(context, "/v1/history/stored")
    transcripts = find_transcripts(context.places, agents)
    index = TranscriptIndex.load(context.cache)
    index.update(transcripts, progress=draw_progress())
    index.dedupe_calls(transcripts, agents)
    index.save()
    print_problems(index.problems)
    recorded = summaries(index, transcripts)
    if options.compactions:
        _print_compactions(
            context,
            options,
            report_compactions(index, recorded, selection, progress=draw_progress()),
        )
        return 0
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


def _print_rotations(
    context: CommandContext,
    options: argparse.Namespace,
    selection: ReportFilter,
    agents: Sequence[str],
) -> None:
    entries = [each for each in read_rotations(context.state) if each.agent in agents]
    files = group_by_session(find_transcripts(context.places, agents))
    chains = [
        chain
        for chain in report_rotations(entries, files)
        if selection.has_project(chain.project or "")
        and selection.has_day_and_branch(chain.first_day, selection.branch)
    ]
    if options.json:
        emit_json(chains)
    elif options.csv:
        sys.stdout.write(_write_csv(rotations.CSV_FIELDS, map(rotations.csv_record, chains)))
    else:
        print("\n".join(rotations.format_rotations(context, chains)))


def _print_compactions(
    context: CommandContext, options: argparse.Namespace, report: CompactionReport
) -> None:
    if options.json:
        emit_json(report)
    elif options.csv:
        sys.stdout.write(_write_csv(CSV_FIELDS, map(csv_record, report.compactions)))
    else:
        print("\n".join(format_report(context, report)))


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
    has_models = options.models and report.by != "model"
    if options.json:
        return as_json(report)
    if options.csv:
        return _csv(report, options.misses, has_models)
    if report.lines:
        table = ReportTable(context, report, has_models)
        lines = table.format_misses() if options.misses else table.format()
        return "\n".join(lines) + "\n"
    if files:
        return "No calls found.\n"
    return f"No transcripts found ({', '.join(map(display_name, agent_names()))}).\n"


def _csv(report: Report, is_about_misses: bool, has_models: bool) -> str:
    fields, records_of = FIELDS, _line_records
    if is_about_misses:
        fields, records_of = MISS_FIELDS, _miss_records
    elif has_models:
        fields, records_of = MODEL_FIELDS, _model_records
    elif report.by == "session":
        fields += SessionFacts.__struct_fields__
    records = (record for line in report.lines for record in records_of(line))
    return _write_csv(fields, records, head=(report.by, *fields[1:]))


def _write_csv(
    fields: Sequence[str],
    records: Iterable[Mapping[str, object]],
    head: Sequence[str] | None = None,
) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head or fields)
    for record in records:
        writer.writerow([spreadsheet_value(record[name]) for name in fields])
    return out.getvalue()


def _name_fields(line: ReportLine) -> dict[str, object]:
    return {"key": line.key, "agents": " ".join(line.agents)}


def _line_records(line: ReportLine) -> list[dict[str, object]]:
    facts = asdict(line.session) if line.session else {}
    return [{**asdict(line), **asdict(line.usage), **facts, **_name_fields(line)}]


def _model_records(line: ReportLine) -> list[dict[str, object]]:
    return [{**_name_fields(line), **asdict(each), **asdict(each.usage)} for each in line.models]


def _miss_records(line: ReportLine) -> list[dict[str, object]]:
    return [
        {**_name_fields(line), "cause": cause, "misses": total.calls, **asdict(total)}
        for cause, total in line.miss_causes.items()
    ]
