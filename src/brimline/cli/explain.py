"""`brimline explain`: what fills a session's context, and what of it is wasted."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import BinaryIO

import msgspec

from brimline.agents import get_agent
from brimline.cli.arguments import add_agent, add_flag, add_json
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.daemon_requests import request_reported_misses
from brimline.cli.daemon_sessions import AnswerSource, KnownSession, KnownThread
from brimline.cli.inspect import read_thread
from brimline.cli.session_choice import find_session
from brimline.cli.session_text import describe_fullness, describe_session
from brimline.context.cache_misses import CacheMiss
from brimline.context.events import MAIN
from brimline.context.tracker import Reading, Session
from brimline.context.usage import format_percent, format_tokens, percent_raw
from brimline.errors import InvalidSettings
from brimline.sessions.files import SessionFiles
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.explain import ExplainedThread, Explanation, NamedTokens, explain
from brimline.sessions.ledger.session_ledger import NO_TRANSCRIPT, SessionLedger, read_ledgers
from brimline.sessions.ledger.system_parts import summarise_parts
from brimline.sessions.ledger.waste import WasteTotal
from brimline.sessions.target import files_of_target, is_file_target
from brimline.terminal.chart import (
    UNEXPLAINED,
    category_segment,
    draw_stacked_bar,
    paint_segment,
)
from brimline.terminal.text import (
    Cell,
    Column,
    format_age,
    format_dollars,
    format_table,
    join_facts,
    strip_control,
    truncate,
)

MAX_BAR_CELLS = 100
LARGEST_PIECES = 10
MAX_NAMES = 5  # of tools, servers, files and commands
MAX_LINES = 10  # of waste, of misses


class ExplainedSession(Explanation, frozen=True, kw_only=True):
    """What `explain --json` prints.

    `source` is `daemon` if it knows the session; `problem` says why there are no threads.
    """

    source: AnswerSource


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = (
        "a transcript, a session's id or title, "
        "or - for stdin (default: this or the latest session)"
    )
    to.add_argument("target", nargs="?", metavar="PATH|SESSION|-", help=help_text)
    add_agent(to)
    add_flag(to, "--series", "with --json: what each call sent, by category")
    add_flag(to, "--show-secrets", "show what looks like a credential, on a terminal only")
    add_json(to, "a bar and tables")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if options.agent is not None:
        get_agent(options.agent)
    if options.show_secrets and not sys.stdout.isatty():
        raise InvalidSettings("argument", "--show-secrets", "the output must be a terminal")
    files, file, known = _find(context, options)
    if files is None:
        assert known is not None
        return _explain_stored(context, options, known)
    ledgers = read_ledgers(files, context.places, file)
    reported = request_reported_misses(context, known.session.id) if known else []
    explained = explain(ledgers, options.series, options.show_secrets, reported, context.cache)
    if options.json:
        emit_json(_printed(explained, known))
    else:
        print("\n".join(_text(context, ledgers, explained, known)))
    return 0


def _find(
    context: CommandContext, options: argparse.Namespace
) -> tuple[SessionFiles | None, BinaryIO | None, KnownSession | None]:
    """Return the files of the session that is meant or standard input, and what the daemon has."""
    target, agent = options.target, options.agent
    if target is not None and is_file_target(target):
        return *files_of_target(target, context.places, sys.stdin.buffer, agent), None
    files, known = find_session(context, target, agent)
    return files, None, known


def _printed(explained: Explanation, known: KnownSession | None) -> ExplainedSession:
    source = "daemon" if known else "files"
    return ExplainedSession(**msgspec.structs.asdict(explained), source=source)


def _explain_stored(
    context: CommandContext, options: argparse.Namespace, known: KnownSession
) -> int:
    """Report of a session without a transcript what the daemon has: its figures."""
    row = known.session
    if options.json:
        nothing = Explanation(row.agent, row.id, CATEGORIES, [], NO_TRANSCRIPT)
        emit_json(_printed(nothing, known))
        return 0
    lines = [*describe_session(context, known.without_calls()), ""]
    for thread in known.threads:
        lines += _total(context, thread, thread.reading(row.agent))
    lines += wrap(f"What fills it is unknown: {NO_TRANSCRIPT}.", context.width)
    print("\n".join(lines))
    return 0


def _text(
    context: CommandContext,
    ledgers: Sequence[SessionLedger],
    explained: Explanation,
    known: KnownSession | None,
) -> Iterator[str]:
    sessions = {name: each.session for each in ledgers for name in each.session.threads}
    yield from describe_session(context, sessions.get(MAIN) or ledgers[0].session)
    first, *others = sorted(explained.threads, key=lambda thread: thread.thread != MAIN)
    yield ""
    yield from _thread(context, sessions[first.thread], first, known)
    if others:
        yield from ("", "Subagents")
        yield from _subagents(context, others)


def _thread(
    context: CommandContext, session: Session, thread: ExplainedThread, known: KnownSession | None
) -> Iterator[str]:
    reading = read_thread(context, session, session.threads[thread.thread], known)
    yield from _total(context, thread, reading)
    if thread.sent is not None:
        yield from _summarise_waste(context, thread.waste_total, thread.sent)
        yield ""
        window = reading.window.tokens if reading.window else thread.sent
        yield from _composition(context, thread, max(window, thread.sent))
    for category in thread.categories:
        if category.note:
            yield from wrap(f"{category.name}: {category.note}", context.width)
    if thread.pending:
        pending = format_tokens(thread.pending)
        yield from wrap(f"About {pending} tokens more came in since the last call.", context.width)
    yield from _system_parts(context, thread, session.project)
    yield from _largest(context, thread, session.project)
    yield from _tool_lines(context, thread, session.project)
    if total := thread.waste_total:
        yield from ("", "Waste")
        for waste in thread.waste[:MAX_LINES]:
            cost = f" Cost so far: {format_dollars(waste.cost)}." if waste.cost else ""
            yield from _wrap(context, _clean(waste.advice, session.project) + cost)
        yield from _more(len(thread.waste))
        if total.small_text:
            yield f"  {total.small_text}"
    if thread.misses:
        yield from ("", "Cache misses")
        for miss in thread.misses[-MAX_LINES:]:
            yield from _wrap(context, _describe_miss(miss))
        yield from _more(len(thread.misses))


def _total(
    context: CommandContext, thread: ExplainedThread | KnownThread, reading: Reading
) -> list[str]:
    """Return what a thread holds, of its window and its limit."""
    facts = [thread.thread, thread.model or "unknown model", *describe_fullness(reading)]
    return join_facts(facts, context.width)


def _summarise_waste(context: CommandContext, total: WasteTotal | None, sent: int) -> Iterator[str]:
    """Yield how much of a context is wasted, and what to do about the largest part."""
    if total is None:
        yield "No waste found."
        return
    kinds = "; ".join(f"{kind} {format_tokens(tokens)}" for kind, tokens in total.by_kind.items())
    share = format_percent(percent_raw(total.tokens, sent) or 0.0)
    waste = f"Waste: {format_tokens(total.tokens)} tokens ({share}): {kinds}"
    yield from wrap(waste, context.width)
    yield from wrap(total.remedy, context.width)


def _composition(context: CommandContext, thread: ExplainedThread, whole: int) -> Iterator[str]:
    """Draw the categories as one bar of the window, then as a table, and what is unexplained."""
    named = [NamedTokens(each.name, each.tokens) for each in thread.categories if each.tokens]
    named.append(NamedTokens(UNEXPLAINED, thread.unexplained))
    segments = [category_segment(each.name, each.tokens) for each in named]
    width = min(context.width, MAX_BAR_CELLS)
    yield draw_stacked_bar(segments, whole, width, context.colour)
    columns = [
        Column("", min_width=1),
        Column("category"),
        Column("tokens", right=True),
        Column("share", right=True),
        Column("pieces", right=True, drop_order=1),
    ]
    pieces = {each.name: len(each.pieces) for each in thread.categories}
    order = sorted(range(len(named)), key=lambda place: named[place].tokens, reverse=True)
    rows = [
        [
            Cell(segments[place].letter),
            Cell(named[place].name),
            Cell(f"{named[place].tokens:,}"),
            Cell(format_percent(percent_raw(named[place].tokens, thread.sent) or 0.0)),
            Cell(f"{pieces[named[place].name]:,}" if named[place].name in pieces else ""),
        ]
        for place in order
    ]
    head, *lines = format_table(columns, rows, context.width, context.colour)
    yield head
    for place, line in zip(order, lines, strict=True):
        yield paint_segment(segments[place], 1, context.colour) + line[1:]


def _system_parts(
    context: CommandContext, thread: ExplainedThread, project: str | None
) -> Iterator[str]:
    """Yield what the client sends with every call, and what of it was called."""
    rows = summarise_parts(thread.system_parts)
    if len(rows) < 2:
        return
    yield from ("", "What every call sends")
    columns = [
        Column("tokens", right=True),
        Column("what", min_width=12),
        Column("called", drop_order=1),
    ]
    cells = [
        [Cell(f"{row.tokens:,}"), Cell(_clean(row.what, project)), Cell(row.called)] for row in rows
    ]
    yield from format_table(columns, cells, context.width, context.colour)
    if thread.answered_at is not None:
        age = format_age(context.now - thread.answered_at)
        answer = f"the client's own answer about a fresh session, {age} ago"
        text = f"Estimated: the shares are {answer}, scaled to this session."
        yield from wrap(text, context.width)


def _largest(
    context: CommandContext, thread: ExplainedThread, project: str | None
) -> Iterator[str]:
    pieces = [(piece, each.name) for each in thread.categories for piece in each.pieces]
    pieces.sort(key=lambda pair: pair[0].tokens, reverse=True)
    if not pieces:
        return
    yield from ("", "Largest pieces")
    columns = [
        Column("tokens", right=True),
        Column("category", drop_order=1),
        Column("what", min_width=12),
        Column("record", right=True, drop_order=2),
    ]
    rows = [
        [
            Cell(f"{piece.tokens:,}"),
            Cell(name),
            Cell(_clean(piece.what, project)),
            Cell(f"{piece.record:,}" if piece.record else ""),
        ]
        for piece, name in pieces[:LARGEST_PIECES]
    ]
    yield from format_table(columns, rows, context.width, context.colour)


def _tool_lines(
    context: CommandContext, thread: ExplainedThread, project: str | None
) -> Iterator[str]:
    results = thread.tool_results
    if results.by_tool:
        yield from ("", "Tool results")
    for kind, names in (("tool", results.by_tool), ("MCP server", results.by_server)):
        pairs = [f"{_clean(each.name, None)} {format_tokens(each.tokens)}" for each in names]
        if pairs:
            yield from _wrap(context, f"by {kind}: {', '.join(pairs[:MAX_NAMES])}")
    for kind, names in (("file", results.by_file), ("command", results.by_command)):
        if names:
            yield f"  by {kind}:"
        for each in names[:MAX_NAMES]:
            name = _clean(each.name, project)
            yield truncate(f"    {format_tokens(each.tokens):>5}  {name}", context.width)


def _wrap(context: CommandContext, text: str) -> list[str]:
    return wrap(text, context.width, initial_indent="  ", subsequent_indent="    ")


def _describe_miss(miss: CacheMiss) -> str:
    cost = f", {format_dollars(miss.cost)}" if miss.cost else ""
    idle = f", {format_age(miss.idle_s)} after the call before" if miss.idle_s else ""
    again = f"{format_tokens(miss.tokens)} tokens again{cost}{idle}"
    return f"call {miss.number}: {again}: {miss.cause_text}"


def _clean(text: str, project: str | None) -> str:
    """Return a name with paths relative to the project."""
    return strip_control(text.replace(f"{project}/", "") if project else text)


def _more(count: int) -> Iterator[str]:
    if count > MAX_LINES:
        yield f"  and {count - MAX_LINES} more (--json lists all)"


def _subagents(context: CommandContext, threads: Sequence[ExplainedThread]) -> list[str]:
    columns = [
        Column("thread", min_width=8),
        Column("tokens", right=True),
        Column("largest categories", min_width=12),
    ]
    rows = [
        [
            Cell(strip_control(thread.thread)),
            Cell("unknown" if thread.sent is None else f"{thread.sent:,}"),
            Cell(_largest_categories(thread)),
        ]
        for thread in threads
    ]
    return format_table(columns, rows, context.width, context.colour)


def _largest_categories(thread: ExplainedThread) -> str:
    largest = sorted(thread.categories, key=lambda each: each.tokens, reverse=True)[:3]
    return ", ".join(f"{each.name} {format_tokens(each.tokens)}" for each in largest)
