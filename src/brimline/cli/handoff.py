"""`brimline handoff`: documents with which a session goes on, handed over, drafted, looked up."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from brimline.agents import agent_names, source
from brimline.agents.transcripts.source import Transcript
from brimline.api.client.request import session_path
from brimline.cli.arguments import add_json, check_session, check_utf8, chosen_agents, parse_agent
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.daemon_requests import SessionRef, request, resolve_session
from brimline.cli.send import send_message
from brimline.cli.session_choice import (
    OWN_AUTHOR,
    find_current_session,
    find_files,
    find_project,
)
from brimline.context.events import MAIN
from brimline.context.inbox import HANDOFF_REQUEST
from brimline.daemon.tmux.clear_requests import ClearRequest, load_requests
from brimline.daemon.tmux.pane import pane_from_environment
from brimline.daemon.tmux.spawn import (
    ClientCommand,
    client_command,
    exec_client,
    open_window,
    without_agent_variables,
)
from brimline.errors import (
    InvalidHandoff,
    InvalidRequest,
    NotRunning,
    UnknownAgent,
    UnreadableTranscript,
)
from brimline.handoff import (
    MAX_FRAME_CHARS,
    Freshness,
    compute_freshness,
    draft_handoff,
    files_changed_since,
    iter_records,
    read_changed_files,
    read_document,
)
from brimline.handoff.pins import PinFile, render_pins
from brimline.run.window_chain import WINDOW_VARIABLE
from brimline.sessions.target import files_of_target, is_file_target
from brimline.terminal.text import Cell, Column, count_of, format_age, format_table, strip_control

UNREADABLE_HINT = "Name a file that exists and that you can read."
TO_COME = "unknown session: the document is kept in case a session with this id starts"

COLUMNS = (
    Column("age", right=True),
    Column("by", min_width=8, drop_order=2),
    Column("since then", min_width=12, drop_order=1),
    Column("path", min_width=12, keep_end=True),
)


# Written by hand: argparse never breaks a group of arguments, however narrow the terminal.
USAGE = """brimline handoff PATH [--clear | --spawn] [OPTIONS]
       brimline handoff [--show | --list] [OPTIONS]
       brimline handoff --draft [SESSION|FILE|-] [OPTIONS]
       brimline handoff --ask SESSION [OPTIONS]"""

OWN_SESSION = True  # the session that a command runs in, or the one that --session names


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    to.set_defaults(wrong=to.error)
    help_text = "the document to hand over (default: --show)"
    to.add_argument("path", type=_path, nargs="?", metavar="PATH", help=help_text)
    help_text = (
        "the beginning of a session's id, or words of its title (default: this or the latest)"
    )
    to.add_argument("--session", type=check_session, metavar="ID", help=help_text)
    which = to.add_mutually_exclusive_group()
    for name, help_text in (
        ("--show", "show the last handoff"),
        ("--list", "list all handoffs and the result of each --clear"),
        ("--clear", "when the turn ends, clear the session in tmux and continue from the document"),
        ("--spawn", "start a new session that continues from the document"),
    ):
        which.add_argument(name, action="store_true", help=help_text)
    which.add_argument(
        "--draft",
        type=check_session,
        nargs="?",
        const=OWN_SESSION,
        metavar="SESSION|FILE|-",
        help="write a draft from a transcript, without a model",
    )
    help_text = "ask a session's agent to write a handoff, with its next prompt or tool result"
    which.add_argument("--ask", type=check_session, metavar="SESSION", help=help_text)
    to.add_argument("--output", metavar="FILE", help="with --draft: write it to FILE")
    help_text = "with --spawn, --clear or --draft: the agent"
    to.add_argument("--agent", type=parse_agent, metavar="A", help=help_text)
    add_json(to)


def _path(text: str) -> str:
    if not text or len(text.splitlines()) > 1:
        raise argparse.ArgumentTypeError(f"expected a path on one line: got {text!r}")
    return check_utf8(text)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Hand a document over, draft one, or show earlier ones."""
    _check_combination(options)
    if options.ask is not None:
        body = {"text": HANDOFF_REQUEST, "urgent": True}
        asked = resolve_session(context, options.ask)
        return send_message(context, asked, body, as_json=options.json)
    if options.draft is not None:
        return _run_draft(context, options)
    if options.path is None and (options.clear or options.spawn):
        raise InvalidRequest("no document given", "Write it first, then pass its PATH.")
    if options.path is not None:
        _check_document(options.path)
    if options.spawn:
        return _spawn(context, _spawned_session(context, options.session), options)
    session = _chosen_session(context, options.session)
    if options.path is None:
        return _show(context, session.id, options)
    return _hand_over(context, session, options)


def _check_combination(options: argparse.Namespace) -> None:
    """Exit with a usage error if arguments exclude each other."""
    looks = options.show or options.list or options.draft is not None or options.ask is not None
    if looks and options.path is not None:
        options.wrong("argument PATH: not allowed with --show, --list, --draft or --ask")
    if options.output is not None and options.draft is None:
        options.wrong("argument --output: not allowed without --draft")
    if options.agent and not (options.draft is not None or options.clear or options.spawn):
        options.wrong("argument --agent: not allowed without --draft, --clear or --spawn")
    if options.draft not in (None, OWN_SESSION) and options.session is not None:
        options.wrong("argument --session: not allowed with --draft SESSION")
    if options.ask is not None and options.session is not None:
        options.wrong("argument --session: not allowed with --ask SESSION")


def _chosen_session(context: CommandContext, name: str | None) -> SessionRef:
    """Return the session of --session or the current one, resolved if the daemon runs."""
    here = find_current_session(context.places.env)
    if name is None and here and here.session:
        return SessionRef(here.session, known=True)
    try:
        return resolve_session(context, name)
    except NotRunning:
        if name is None:
            raise
        return SessionRef(name, known=True)


def _spawned_session(context: CommandContext, name: str | None) -> str | None:
    """Return the session that a new one continues; without a name only the current one."""
    here = find_current_session(context.places.env)
    if name is None:
        return here.session if here else None
    return _chosen_session(context, name).id


def _hand_over(context: CommandContext, session: SessionRef, options: argparse.Namespace) -> int:
    handoff = _save(context, session.id, options)
    env = context.places.env
    within = options.session is None
    pane = pane_from_environment(env) if within else None
    if options.clear and within and pane is None:
        return _spawn(context, session.id, options)
    if options.clear:
        body = {"path": handoff["path"], "pane": msgspec.to_builtins(pane)}
        handoff = request(context, "POST", session_path(session.id, "/clear"), body)
    if options.json:
        emit_json(handoff)
    else:
        is_rotated = within and WINDOW_VARIABLE in env
        print("\n".join(_saved_lines(session, handoff, options.clear, is_rotated)))
    return 1 if handoff.get("undeliverable") else 0


def _saved_lines(session: SessionRef, handoff: Any, clear: bool, is_rotated: bool) -> list[str]:
    short = strip_control(session.id[:8])
    if clear:
        return [
            f"When this turn ends, session {short} is cleared and continues from",
            f"{strip_control(handoff['path'])}. End your turn now.",
        ]
    saved = f"Saved {len(handoff['text']):,} characters for session {short}"
    if is_rotated:
        return [f"{saved}. A new session continues from them.", "End your turn now."]
    if not session.known:
        return [saved, TO_COME]
    if undeliverable := handoff.get("undeliverable"):  # an older daemon does not know
        return [f"{saved}, but nothing will deliver them.", strip_control(undeliverable)]
    return [
        f"{saved}. They are re-injected",
        "after the next compaction. Continue your work.",
    ]


def _save(context: CommandContext, session: str, options: argparse.Namespace) -> Any:
    author = _author_here(context.places.env, session)
    body = {"path": os.path.abspath(options.path), "author": author}
    return request(context, "POST", session_path(session, "/handoff"), body)


def _author_here(env: Mapping[str, str], session: str) -> str:
    here = find_current_session(env)
    if here is None:
        return "the user"
    return OWN_AUTHOR if here.session in (None, session) else "another agent"


def _check_document(path: str) -> None:
    """Raise InvalidHandoff for a wrong PATH before a session or the daemon is looked for.

    What is stored is what the daemon reads afterwards.
    """
    try:
        read_document(path)
    except InvalidHandoff as error:
        error.hint = error.hint or UNREADABLE_HINT
        raise


def _spawn(context: CommandContext, session: str | None, options: argparse.Namespace) -> int:
    """Start a new client: in a tmux window, else in this terminal, else print the command."""
    path = os.path.abspath(options.path)
    row = _view(context, session).get("session", {})
    if session is not None and row and not options.clear:
        _save(context, session, options)
    here = find_current_session(context.places.env)
    agent = options.agent or row.get("agent") or (here and here.agent)
    if agent is None:
        raise InvalidRequest("no agent given", f"Pass --agent: {', '.join(agent_names())}.")
    new = client_command(agent, path, row.get("project") or str(Path.cwd()))
    # In a terminal of the user's own, an agent's variables are what the user has set.
    env = context.places.env if here is None else without_agent_variables(context.places.env)
    pane = open_window(new, context.places.env)
    if pane is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest("no terminal to start it in", f"Start it yourself: {new.shell_line}")
    if pane is None:
        exec_client(new, env)
    _print_started(new, pane.id, options.json)
    return 0


def _view(context: CommandContext, session: str | None) -> dict[str, Any]:
    """Return what the daemon knows of a session; empty if that is nothing."""
    try:
        return request(context, "GET", session_path(session)) if session else {}
    except (NotRunning, InvalidRequest):
        return {}


def _print_started(new: ClientCommand, pane: str, json: bool) -> None:
    if json:
        emit_json({"command": new.arguments, "folder": new.folder, "pane": pane})
    else:
        print(f"Started {new.arguments[0]} in a new tmux window ({pane}), in {new.folder}")


def _show(context: CommandContext, session: str, options: argparse.Namespace) -> int:
    handoffs = request(context, "GET", session_path(session, "/handoff"))["handoffs"]
    fresh = _fresh(context, session, handoffs if options.list else handoffs[:1])
    intents = load_requests(context.state, session)
    if options.json:
        rows = [row | _freshness_json(how) for row, how in zip(handoffs, fresh, strict=False)]
        emit_json({"handoffs": rows, "clear": intents[0] if intents else None})
        return 0
    list_lines = _list_lines if options.list else _last_lines
    lines = list_lines(context, handoffs, fresh)
    print("\n".join([*lines, *(_clear_result(intent, context.now) for intent in intents)]))
    return 0


def _fresh(context: CommandContext, session: str, rows: list[Any]) -> list[Freshness]:
    if not rows:
        return []
    view = _view(context, session)
    calls = next((t["calls"] for t in view.get("threads", ()) if t["thread"] == MAIN), None)
    changed = _changed_files(view.get("session", {}))
    return [
        compute_freshness(
            row["calls"],
            calls,
            None if changed is None else files_changed_since(changed, row["at"]),
        )
        for row in rows
    ]


def _changed_files(session: dict[str, Any]) -> Mapping[str, float | None] | None:
    """Return the files that the session changed, and when; None if the transcript does not say."""
    if not session.get("transcript"):
        return None
    try:
        records = iter_records(session["transcript"], session["id"])
        return read_changed_files(records, session["agent"])
    except (OSError, UnreadableTranscript, UnknownAgent):
        return None


def _freshness_json(how: Freshness) -> dict[str, Any]:
    return {"freshness": {"calls": how.calls, "files": how.files, "old": how.is_old}}


def _since(how: Freshness) -> str:
    calls = "calls unknown" if how.calls is None else count_of(how.calls, "call")
    files = "files unknown" if how.files is None else count_of(how.files, "file") + " changed"
    return f"{calls}, {files}" + (" (old)" if how.is_old else "")


def _author(row: dict[str, Any]) -> str:
    return "a draft" if row.get("draft") else str(row["author"])


def _last_lines(
    context: CommandContext, handoffs: list[Any], fresh: list[Freshness]
) -> Iterator[str]:
    if not handoffs:
        yield "no handoff yet"
        return
    row = handoffs[0]
    yield strip_control(row["path"])
    ago = format_age(context.now - row["at"])
    yield f"by {strip_control(_author(row))}, {ago} ago; since then: {_since(fresh[0])}"
    yield ""
    yield _printable(row["text"])


def _list_lines(context: CommandContext, handoffs: list[Any], fresh: list[Freshness]) -> list[str]:
    if not handoffs:
        return ["no handoff yet"]
    rows = [
        [
            Cell(format_age(context.now - row["at"])),
            Cell(strip_control(_author(row))),
            Cell(_since(how), "dim" if how.is_old else "none"),
            Cell(strip_control(row["path"])),
        ]
        for row, how in zip(handoffs, fresh, strict=True)
    ]
    return format_table(COLUMNS, rows, context.width, context.colour)


def _clear_result(intent: ClearRequest, now: float) -> str:
    when, path = format_age(now - intent.since), strip_control(intent.path)
    match intent.step:
        case "done":
            after = f" as session {strip_control(intent.after)[:8]}" if intent.after else ""
            return f"cleared {when} ago; continues from {path}{after}"
        case "failed":
            return f"not cleared, {when} ago: {strip_control(intent.why or 'unknown')} ({path})"
        case "waiting":
            return f"will be cleared when the turn ends, requested {when} ago ({path})"
        case _:
            return f"clearing now ({path})"


def _run_draft(context: CommandContext, options: argparse.Namespace) -> int:
    named = options.session if options.draft is OWN_SESSION else options.draft
    if named is not None and named == options.draft and is_file_target(named):
        files, file = files_of_target(named, context.places, sys.stdin.buffer, options.agent)
        records = _records_of_file(files.transcripts[0], file)
    else:
        files = find_files(context, named, chosen_agents(options))
        records = iter_records(files.transcripts[0].path, files.session)
    own = files.transcripts[0]
    pins = _pins_text(context, own, files.session)
    room = context.settings.handoff.draft_chars - MAX_FRAME_CHARS
    text = _draft(records, own, files.session, pins, room)
    if not text:
        raise InvalidRequest(f"nothing to draft from in {own.path} yet", None)
    if options.output is not None:
        _write(options.output, text)
    if options.json:
        emit_json({"session": files.session, "agent": own.agent, "transcript": own.path,
                   "text": text})  # fmt: skip
    elif options.output is None:
        sys.stdout.write(_printable(text))
    return 0


def _pins_text(context: CommandContext, own: Transcript, session: str) -> str:
    """Return what the user pinned for a session, as it is injected."""
    pins = PinFile(context.state)
    if not pins.load():
        return ""
    return render_pins(pins.load_for(session, find_project(context, own)))


def _printable(text: str) -> str:
    """Replace control characters if standard output is a terminal."""
    if not sys.stdout.isatty():
        return text
    lines = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    return "\n".join("\t".join(map(strip_control, parts)) for parts in lines)


def _records_of_file(own: Transcript, file: BinaryIO | None) -> Iterator[bytes]:
    """Yield the records of any transcript that can be explained."""
    for record in source(own.agent).records(own, file):
        if record.data and not record.is_earlier:
            yield record.data


def _draft(
    records: Iterator[bytes], own: Transcript, session: str, pins: str, most_chars: int
) -> str:
    try:
        return draft_handoff(
            records,
            own.agent,
            where=own.path,
            session=session,
            pins=pins,
            most_chars=most_chars,
        )
    except OSError as error:
        raise UnreadableTranscript(own.path, error.strerror or str(error)) from error


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8", "replace")
    except OSError as error:
        reason = f"cannot write {path}: {error.strerror or error}"
        raise InvalidRequest(reason, "Pass a file in an existing folder: --output FILE.") from error
