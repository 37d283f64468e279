"""Compactions in the output of `inspect`: tokens, what is kept, what was injected again."""

from datetime import UTC, datetime

import msgspec

from brimline.sessions.compaction_effects import CompactionEffect, MeasuredCompaction
from brimline.sessions.compaction_facts import CompactionFacts
from brimline.terminal.text import count_of, join_facts

INDENT = "  "


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
