"""Compactions in the output: tokens, what is kept, what was injected again."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from brimline.cli.context import CommandContext
from brimline.context.usage import format_tokens
from brimline.sessions.compaction_effects import CompactionEffect, MeasuredCompaction
from brimline.sessions.compaction_facts import CompactionFacts
from brimline.sessions.compaction_report import (
    CompactionAverages,
    CompactionLine,
    CompactionReport,
)
from brimline.terminal.text import Cell, Column, count_of, format_table, join_facts, strip_control

INDENT = "  "
LINE_COLUMNS = (
    Column("at", drop_order=4),
    Column("session"),
    Column("client", drop_order=3),
    Column("trigger", drop_order=6),
)
AVERAGE_COLUMNS = (Column("client"), Column("compactions", right=True))
CSV_FIELDS = (
    *("session", "agent", "version", "project", "branch", "at", "trigger", "before", "after"),
    *("statements_kept", "statements", "files_kept", "files", "numbers_kept", "numbers"),
    *("injected_chars", "calls_to_edit"),
)
FIGURES = (
    Column("before", right=True),
    Column("after", right=True),
    Column("statements", right=True, drop_order=1),
    Column("files", right=True, drop_order=1),
    Column("numbers", right=True, drop_order=5),
    Column("injected", right=True, drop_order=2),
    Column("calls to edit", right=True, drop_order=2),
)


class CompactionShown(msgspec.Struct, frozen=True):
    """A compaction in the output; `effect` is None if it is unknown what it left.

    It is known of compactions of the main thread that are in a transcript.
    """

    at: str | None
    trigger: str | None
    before: int | None
    after: int | None
    inferred: bool
    effect: CompactionEffect | None


def show_compaction(compaction: MeasuredCompaction) -> CompactionShown:
    return CompactionShown(
        iso(compaction.at),
        compaction.trigger,
        compaction.before,
        compaction.after,
        compaction.inferred,
        compaction.effect,
    )


def iso(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def describe_compaction(compaction: MeasuredCompaction, width: int) -> list[str]:
    """Return the lines about a compaction: its tokens, and below them what it left."""
    trigger = f" ({compaction.trigger})" if compaction.trigger else ""
    inferred = " (inferred)" if compaction.inferred else ""
    tokens = f"{format_count(compaction.before)} -> {format_count(compaction.after)}"
    line = f"compaction after call {compaction.calls}: {tokens}{trigger}{inferred}"
    if compaction.effect is None:
        return [line]
    facts = join_facts(_effect_facts(compaction.effect), width - len(INDENT))
    return [line, *(f"{INDENT}{each}" for each in facts)]


def format_count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _effect_facts(effect: CompactionEffect) -> list[str]:
    kept = describe_kept(effect.facts)
    least = "at least " if effect.is_summary_encrypted else ""
    injected = f"{effect.injected_chars:,} characters" if effect.injected_chars else "nothing"
    edit = effect.calls_to_edit
    return [
        *([f"kept {least}{kept}"] if kept else []),
        f"injected {injected}",
        "no edit since" if edit is None else f"first edit after {count_of(edit, 'call')}",
    ]


def describe_kept(facts: CompactionFacts) -> str:
    """Return how many facts of each kind are kept; empty without facts."""
    counts = {"statements": facts.statements, "files": facts.files, "numbers": facts.numbers}
    return ", ".join(
        f"{count.kept} of {count.total} {kind}" for kind, count in counts.items() if count.total
    )


def format_report(context: CommandContext, report: CompactionReport) -> list[str]:
    """Return a table of compactions, and one of the averages by version."""
    if not report.compactions:
        return ["No compactions found."]
    rows = [_line_cells(line) for line in report.compactions]
    averages = [_average_cells(each) for each in report.averages]
    return [
        *_format(context, [*LINE_COLUMNS, *FIGURES], rows),
        "",
        *_format(context, [*AVERAGE_COLUMNS, *FIGURES], averages),
    ]


def _format(
    context: CommandContext, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> list[str]:
    """Format a table without the columns that are empty."""
    places = [n for n in range(len(columns)) if any(row[n].text for row in rows)]
    filled = [[row[n] for n in places] for row in rows]
    return format_table([columns[n] for n in places], filled, context.width, context.colour)


def csv_record(line: CompactionLine) -> dict[str, object]:
    """Return a compaction as a row of CSV, by `CSV_FIELDS`."""
    effect, facts = line.effect, line.effect.facts if line.effect else None
    figures = [
        *((facts.statements.kept, facts.statements.total) if facts else (None, None)),
        *((facts.files.kept, facts.files.total) if facts else (None, None)),
        *((facts.numbers.kept, facts.numbers.total) if facts else (None, None)),
        effect and effect.injected_chars,
        effect and effect.calls_to_edit,
    ]
    named = [getattr(line, field) for field in CSV_FIELDS[: -len(figures)]]
    return dict(zip(CSV_FIELDS, [*named, *figures], strict=True))


def _line_cells(line: CompactionLine) -> list[Cell]:
    effect = line.effect
    at = "unknown" if line.at is None else time.strftime("%m-%d %H:%M", time.localtime(line.at))
    trigger = "inferred" if line.inferred else line.trigger or ""
    named = [at, strip_control(line.short_id), _client(line.agent, line.version), trigger]
    injected = "" if effect is None else f"{effect.injected_chars:,}"
    least = "≥" if effect is not None and effect.is_summary_encrypted else ""
    return [
        *map(Cell, named),
        Cell(_tokens(line.before)),
        Cell(_tokens(line.after)),
        *_fact_cells(effect.facts if effect else None, least),
        Cell(injected),
        Cell(_plain(effect.calls_to_edit if effect else None)),
    ]


def _average_cells(average: CompactionAverages) -> list[Cell]:
    return [
        Cell(_client(average.agent, average.version)),
        Cell(f"{average.compactions:,}"),
        Cell(_tokens(average.before)),
        Cell(_tokens(average.after)),
        *_fact_cells(average.facts, "≥" if average.is_summary_encrypted else ""),
        Cell(f"{average.injected:,} of {average.compactions:,}"),
        Cell(_plain(average.calls_to_edit)),
    ]


def _fact_cells(facts: CompactionFacts | None, least: str = "") -> list[Cell]:
    counts = (facts.statements, facts.files, facts.numbers) if facts else ()
    shares = [f"{least}{100 * c.kept / c.total:.0f}%" if c.total else "" for c in counts]
    return [Cell(share) for share in shares] or [Cell("")] * 3


def _client(agent: str, version: str | None) -> str:
    return strip_control(f"{agent} {version}" if version else agent)


def _tokens(count: float | None) -> str:
    return "" if count is None else format_tokens(round(count))


def _plain(count: float | None) -> str:
    return "" if count is None else f"{count:g}"
