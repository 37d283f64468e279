"""`brimline next`: what stops a session first, its compaction, a quota or its cache."""

import argparse
from collections.abc import Iterator, Sequence

import msgspec

from brimline.agents import display_name
from brimline.cli.arguments import add_agent, add_flag, add_json, add_since, check_session
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.session_choice import SessionEntry, choose_entry
from brimline.cli.status import ListedSession, list_sessions
from brimline.context.need import End, Need
from brimline.terminal.report_text import describe_end
from brimline.terminal.text import (
    cell_width,
    colourize,
    count_of,
    shorten_home,
    strip_control,
    truncate,
)

HAS_NEED = 4  # the exit code
KIND_COLUMNS = cell_width("compaction")
INDENT = "  "


class NextShown(msgspec.Struct, frozen=True):
    """A session in the JSON of `next`; `ends` are the nearest first, `at` is in epoch seconds."""

    agent: str
    session_id: str
    title: str | None
    project: str | None
    need: Need | None
    ends: list[End]


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "the beginning of a session's id, or words of its title (default: all with a need)"
    to.add_argument("session", type=check_session, nargs="?", metavar="SESSION", help=help_text)
    add_agent(to)
    add_since(to)
    add_flag(to, "--exit-code", f"exit with {HAS_NEED} if a session needs something")
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    options.all = options.session is not None  # an older one may be meant
    sessions, _ = list_sessions(context, options)
    shown = [each for each in sessions if each.need]
    if options.session is not None:
        shown = [_choose(context, options.session, sessions)]
    if options.json:
        emit_json([_json(each) for each in shown])
    elif shown:
        print("\n\n".join("\n".join(_lines(context, each)) for each in shown))
    else:
        print(f"Nothing needs you: {count_of(len(sessions), 'session')}.")
    needs = any(each.need for each in shown)
    return HAS_NEED if options.exit_code and needs else 0


def _choose(context: CommandContext, name: str, sessions: Sequence[ListedSession]) -> ListedSession:
    """Return the session that is meant; raises UnknownSession."""
    entries = (
        SessionEntry(each.session, each.agent, each.active_at, each.title, each.project)
        for each in (listed.status for listed in sessions)
    )
    chosen = choose_entry(context, name, entries)
    found = (each for each in sessions if each.status.session == chosen.id)
    return next(each for each in found if each.status.agent == chosen.agent)


def _lines(context: CommandContext, listed: ListedSession) -> Iterator[str]:
    status = listed.status
    place = shorten_home(status.project, context.places.home) if status.project else None
    names = (status.title, place, display_name(status.agent))
    name = " · ".join(strip_control(each) for each in names if each)
    yield truncate(f"{strip_control(status.short_id)}  {name}", context.width)
    if listed.need:
        text = truncate(f"{INDENT}{strip_control(listed.need.text)}", context.width)
        yield colourize(text, listed.fullness or "none", context.colour)
    for end in listed.assessed.ends:
        line = f"{INDENT}{end.kind:{KIND_COLUMNS}}  {describe_end(end, context.now)}"
        yield truncate(line, context.width)
    if not listed.assessed.ends:
        yield f"{INDENT}nothing is known of its ends: {status.main.reading.state}"


def _json(listed: ListedSession) -> NextShown:
    status = listed.status
    return NextShown(
        status.agent,
        status.session,
        status.title,
        status.project,
        listed.need,
        listed.assessed.ends,
    )
