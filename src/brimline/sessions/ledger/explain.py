"""What `brimline explain` prints, and what the API and the page show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache as remember
from pathlib import Path

import msgspec

from brimline.agents import capabilities_of
from brimline.agents.fresh_session import CachedAnswer, find_answer, read_answers
from brimline.context.cache_misses import CacheMiss, find_misses, with_reported_causes
from brimline.context.client_report import ReportedMiss
from brimline.context.events import MAIN
from brimline.context.tracker import Reading, Session, Thread, read
from brimline.redaction import redact
from brimline.sessions.ledger.context_parts import CATEGORIES, Mask, first_words
from brimline.sessions.ledger.part_tokens import Balance, Entry
from brimline.sessions.ledger.session_ledger import SessionLedger, ThreadLedger
from brimline.sessions.ledger.system_parts import SystemPart, find_system_parts
from brimline.sessions.ledger.waste import Waste, WasteTotal, find_waste, total_waste


class ExplainedPiece(msgspec.Struct, frozen=True):
    """A part of the context: `record` is its place in the transcript, from 1 on, 0 if it has none.

    `call` is the id of the call that first sent it, or that wrote it.
    """

    what: str
    call: str
    tokens: int
    record: int = 0


class ExplainedCategory(msgspec.Struct, frozen=True):
    """The pieces of a category, the largest first; they add up to its tokens.

    `note` says where the tokens of a category are that the client does not record.
    """

    name: str
    tokens: int
    pieces: list[ExplainedPiece]
    note: str | None = None


class NamedTokens(msgspec.Struct, frozen=True):
    """The tokens of everything with one name."""

    name: str
    tokens: int


class ToolTokens(msgspec.Struct, frozen=True):
    """The tool results in the context, in four ways, each the largest first."""

    by_tool: list[NamedTokens]
    by_server: list[NamedTokens]
    by_file: list[NamedTokens]
    by_command: list[NamedTokens]


class ExplainedCycle(msgspec.Struct, frozen=True):
    """What the last call of a cycle sent, in the order of the session's category names."""

    cycle: int
    calls: int
    sent: int
    categories: list[NamedTokens]
    unexplained: int


class ExplainedCall(msgspec.Struct, frozen=True):
    """What a call sent: `categories` are tokens in the order of `category_names`.

    `tools` are those that its reply called.
    """

    call: str
    at: float | None
    sent: int
    categories: tuple[int, ...]
    unexplained: int
    tools: list[str]


class ExplainedThread(msgspec.Struct, frozen=True, kw_only=True):
    """What fills a thread's context: `categories` and `unexplained` add up to `sent`.

    `sent` is None if it is unknown what the context holds, as after a compaction. `waste` are the
    findings that are worth a line of their own; `waste_total` counts all. `pending` estimates the
    tokens that came in since the last call. `system_parts` are what the client sends with every
    call, its memory files too; `answered_at` is when the client itself said how the estimated ones
    of them are divided.
    """

    thread: str
    model: str | None
    sent: int | None
    categories: list[ExplainedCategory]
    system_parts: list[SystemPart] = []  # an older daemon sends none
    answered_at: float | None = None
    unexplained: int
    tool_results: ToolTokens
    waste_total: WasteTotal | None = None
    waste: list[Waste]
    misses: list[CacheMiss]
    pending: int
    cycles: list[ExplainedCycle]
    series: list[ExplainedCall] | msgspec.UnsetType = msgspec.UNSET


class Explanation(msgspec.Struct, frozen=True):
    """What fills the contexts of a session; `problem` says why there are no threads."""

    agent: str | None
    session_id: str | None
    category_names: tuple[str, ...]
    threads: list[ExplainedThread]
    problem: str | None = None


def explain(
    ledgers: Sequence[SessionLedger],
    series: bool = False,
    show_secrets: bool = False,
    reported: Sequence[ReportedMiss] = (),
    cache: Path | None = None,
) -> Explanation:
    """Explain a session by the ledgers of its transcripts, the main thread's first.

    Names are redacted, unless `show_secrets`. `reported` are cache misses of the main thread with
    causes that the client reported. In the `cache` are a client's answers about fresh sessions.
    """
    mask: Mask = str if show_secrets else remember(redact)  # most names are of several entries
    ordered = sorted(ledgers, key=lambda each: MAIN not in each.session.threads)
    session = ordered[0].session
    threads = {
        ledger.thread: _explain_thread(
            ledger,
            each.session,
            series,
            mask,
            reported if ledger.thread == MAIN else (),
            _answer_for(each.session, cache) if ledger.thread == MAIN else None,
        )
        for each in ordered
        for ledger in each.threads
    }
    return Explanation(session.agent, session.id, CATEGORIES, list(threads.values()))


def _answer_for(session: Session, cache: Path | None) -> CachedAnswer | None:
    """Return what the client said of a fresh session like this; None if it was not asked."""
    if cache is None:
        return None
    at = session.threads[MAIN].first_at
    answers = read_answers(cache)
    return find_answer(answers, session.agent, session.project, session.version, at)


def _explain_thread(
    ledger: ThreadLedger,
    session: Session,
    series: bool,
    mask: Mask,
    reported: Sequence[ReportedMiss],
    answer: CachedAnswer | None,
) -> ExplainedThread:
    fresh = answer.answer.parts if answer else ()
    parts = find_system_parts(ledger, fresh, mask) if ledger.sent is not None else []
    is_estimated = any(part.is_estimated for part in parts)
    thread = session.threads[ledger.thread]
    unrecorded = capabilities_of(session.agent).unrecorded_content if ledger.entries else {}
    reading = read(session, thread, "transcript")
    window = reading.window.tokens if reading.window else ledger.sent or 0
    waste = find_waste(ledger.entries, ledger.steps, mask, tokens_left(reading))
    return ExplainedThread(
        thread=ledger.thread,
        model=thread.model,
        sent=ledger.sent,
        categories=_categories(ledger.entries, unrecorded, mask),
        system_parts=parts,
        answered_at=answer.at if answer and is_estimated else None,
        unexplained=ledger.unexplained,
        tool_results=_tool_tokens(ledger.entries, mask),
        waste_total=total_waste(waste, window),
        waste=[each for each in waste if not each.is_small(window)],
        misses=with_reported_causes(find_misses(thread), reported),
        pending=ledger.pending,
        cycles=_cycles(ledger, thread),
        series=_series(ledger, mask) if series else msgspec.UNSET,
    )


def tokens_left(reading: Reading) -> list[int]:
    """Return the tokens until the compaction and until the window is full, as far as known."""
    if reading.held is None:
        return []
    of_window = reading.window and max(0, reading.window.tokens - reading.held)
    return [each for each in (reading.left, of_window) if each is not None]


def _categories(
    entries: Sequence[Entry], unrecorded: Mapping[str, str], mask: Mask
) -> list[ExplainedCategory]:
    categories: list[ExplainedCategory] = []
    for name in CATEGORIES:
        mine = [entry for entry in entries if entry.part.category == name]
        mine.sort(key=lambda entry: entry.tokens, reverse=True)
        tokens = sum(entry.tokens for entry in mine)
        note = None if mine else unrecorded.get(name)
        if mine or note:
            pieces = [_piece(entry, mask) for entry in mine]
            categories.append(ExplainedCategory(name, tokens, pieces, note))
    return categories


def _piece(entry: Entry, mask: Mask) -> ExplainedPiece:
    part, name = entry.part, entry.part.name(mask)
    what = name if part.is_recorded else f"{name} (not recorded)"
    return ExplainedPiece(what, entry.call, entry.tokens, part.record)


def _tool_tokens(entries: Sequence[Entry], mask: Mask) -> ToolTokens:
    counts = [Counter[str]() for _ in range(4)]
    for entry in entries:
        part = entry.part
        if part.category in ("tool results", "subagent results"):
            command = first_words(mask(part.command))
            names = (mask(part.tool), mask(part.server), mask(part.file), command)
            for count, name in zip(counts, names, strict=True):
                count[name] += entry.tokens
    return ToolTokens(*(_named(count) for count in counts))


def _named(counts: Counter[str]) -> list[NamedTokens]:
    return [NamedTokens(name, tokens) for name, tokens in counts.most_common() if name]


def _cycles(ledger: ThreadLedger, thread: Thread) -> list[ExplainedCycle]:
    ends = sorted({*thread.cycle_ends, len(ledger.balances)})
    cycles: list[ExplainedCycle] = []
    start = 0
    for number, end in enumerate(ends):
        if start < end <= len(ledger.balances):
            cycles.append(_cycle(number, end - start, ledger.balances[end - 1]))
        start = end
    return cycles


def _cycle(number: int, calls: int, last: Balance) -> ExplainedCycle:
    pairs = zip(CATEGORIES, last.categories, strict=True)
    named = [NamedTokens(name, tokens) for name, tokens in pairs if tokens]
    return ExplainedCycle(number, calls, last.sent, named, last.unexplained)


def _series(ledger: ThreadLedger, mask: Mask) -> list[ExplainedCall]:
    return [
        ExplainedCall(
            call=step.call.id,
            at=step.call.at,
            sent=balance.sent,
            categories=balance.categories,
            unexplained=balance.unexplained,
            tools=[mask(part.tool) for part in step.outputs if part.category == "tool calls"],
        )
        for step, balance in zip(ledger.steps, ledger.balances, strict=True)
    ]
