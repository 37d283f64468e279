"""Which session a command is about: by the beginning of its id, by its title, or by default."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from brimline.agents import all_agents
from brimline.agents.transcripts.source import Transcript
from brimline.cli.context import CommandContext
from brimline.cli.daemon_sessions import DaemonSessions, KnownSession, SessionQuestion
from brimline.daemon.calling_session import session_variables
from brimline.daemon.process_tree import iter_environments
from brimline.errors import InvalidRequest, UnknownSession, suggest
from brimline.sessions.files import SessionFiles, find_transcripts, group_by_session, shorten_ids
from brimline.sessions.index import TranscriptIndex
from brimline.store.rows import SessionRow
from brimline.terminal.text import (
    Cell,
    Column,
    format_age,
    format_table,
    shorten_home,
    strip_control,
)

MAX_LISTED = 9
LIST_INDENT = 3  # before a line: a number, or spaces

OWN_AUTHOR = "the agent itself"  # of a handoff that a session's own agent wrote

MATCH_COLUMNS = (  # id, title, agent, project, age: without a head
    Column(""),
    Column("", min_width=12),
    Column("", drop_order=2),
    Column("", min_width=10, keep_end=True, drop_order=1),
    Column("", right=True),
)


class SessionEntry(msgspec.Struct, frozen=True):
    """A session that a user may mean; title and project are None if unknown or not read yet."""

    id: str
    agent: str
    seen_at: float
    title: str | None = None
    project: str | None = None

    def describe(self, short_id: str | None = None) -> str:
        title = f" {self.title}" if self.title else ""
        return f"{short_id or self.id}{title} ({self.agent})"


ReadDetails = Callable[[Sequence[SessionEntry]], Sequence[SessionEntry]]


def find_files(
    context: CommandContext, name: str | None, agents: Sequence[str] | None = None
) -> SessionFiles:
    """Return the files of the session that is meant; raises UnknownSession, InvalidRequest."""
    files, _ = _find(context, name, list_files(context, agents), DaemonSessions())
    assert files is not None
    return files


def find_session(
    context: CommandContext, name: str | None, agent: str | None
) -> tuple[SessionFiles | None, KnownSession | None]:
    """Return the files of the session that is meant, and what the daemon has; one may be None.

    It is one of `agent`, unless that is None. Raises UnknownSession, InvalidRequest.
    """
    question = SessionQuestion(context)
    sessions = list_files(context, [agent] if agent else None)
    return _find(context, name, sessions, question.read([agent] if agent else None))


def find_project(context: CommandContext, transcript: Transcript) -> str | None:
    """Return the folder that a transcript's session works in; None if unknown."""
    index = TranscriptIndex.load(context.cache)
    index.update([transcript], tails=True)
    index.save()
    session = index.session(transcript)
    return (session and session.project) or transcript.project


def expand_id(context: CommandContext, name: str) -> str:
    """Return the id of the session that is meant; a name of none may be the id of one to come."""
    rows = [each.session for each in SessionQuestion(context).read().by_key.values()]
    try:
        return choose_session(context, name, list_files(context), rows).id
    except UnknownSession as error:
        if error.candidates:
            raise
        return name


def list_files(context: CommandContext, agents: Sequence[str] | None = None) -> list[SessionFiles]:
    return group_by_session(find_transcripts(context.places, agents))


def _find(
    context: CommandContext,
    name: str | None,
    sessions: Sequence[SessionFiles],
    known: DaemonSessions,
) -> tuple[SessionFiles | None, KnownSession | None]:
    rows = [each.session for each in known.by_key.values()]
    chosen = choose_session(context, name, sessions, rows)
    chosen_files = (
        files for files in sessions if (files.agent, files.session) == (chosen.agent, chosen.id)
    )
    return next(chosen_files, None), known.get(chosen.agent, chosen.id)


def choose_session(
    context: CommandContext,
    name: str | None,
    sessions: Sequence[SessionFiles],
    rows: Iterable[SessionRow],
) -> SessionEntry:
    """Return the session that is meant, of those with files and those that the daemon knows.

    Raises UnknownSession, InvalidRequest.
    """
    files_of = {(files.agent, files.session): files for files in sessions}
    entries = _entries(sessions, rows)

    def read_details(some: Sequence[SessionEntry]) -> list[SessionEntry]:
        """Read the titles and projects that the daemon does not know."""
        untitled = [files_of.get((each.agent, each.id)) for each in some if each.title is None]
        own = {(files.agent, files.session): files.transcripts[0] for files in untitled if files}
        index = TranscriptIndex.load(context.cache)
        index.update(list(own.values()), tails=True)
        index.save()
        for key, transcript in own.items():
            if session := index.session(transcript):
                entries[key] = msgspec.structs.replace(
                    entries[key],
                    title=session.title,
                    project=entries[key].project or session.project or transcript.project,
                )
        return [entries[each.agent, each.id] for each in some]

    return choose_entry(context, name, entries.values(), read_details)


def list_sessions(context: CommandContext) -> list[SessionEntry]:
    """Return all sessions, the newest first, with titles that need no reading of transcripts."""
    question = SessionQuestion(context)
    sessions = list_files(context)
    index = TranscriptIndex.load(context.cache)
    titles = {
        (files.agent, files.session): summary.title
        for files in sessions
        if (summary := index.summary(files.transcripts[0]))
    }
    entries = _entries(sessions, (each.session for each in question.read().by_key.values()))
    return _newest_first(
        msgspec.structs.replace(each, title=each.title or titles.get(key))
        for key, each in entries.items()
    )


def _entries(
    sessions: Iterable[SessionFiles], rows: Iterable[SessionRow]
) -> dict[tuple[str, str], SessionEntry]:
    """Return the sessions of files and daemon by agent and id, with what the daemon knows."""
    entries = {
        (files.agent, files.session): SessionEntry(files.session, files.agent, files.modified)
        for files in sessions
    }
    for row in rows:
        key = row.agent, row.id
        seen_at = entries[key].seen_at if key in entries else row.seen_at
        entries[key] = SessionEntry(row.id, row.agent, seen_at, row.title, row.project)
    return entries


def _newest_first(entries: Iterable[SessionEntry]) -> list[SessionEntry]:
    return sorted(entries, key=lambda each: each.seen_at, reverse=True)


def choose_entry(
    context: CommandContext,
    name: str | None,
    among: Iterable[SessionEntry],
    read_details: ReadDetails = list[SessionEntry],
) -> SessionEntry:
    """Return the session that is meant; raises UnknownSession, InvalidRequest.

    Without a name it is the session that the command runs in, else, on a terminal, the latest. If
    several match, a user on a terminal is asked.
    """
    entries: Sequence[SessionEntry] = _newest_first(among)
    here = find_current_session(context.places.env)
    name = name or (here.session if here else None)
    if name is None:
        if here is None and not entries:
            hint = "Start an agent first; `brimline demo` replays a recorded session."
            raise InvalidRequest("no sessions found", hint)
        may_be_latest = here is None and _is_on_terminal()
        if not may_be_latest:
            raise InvalidRequest("no session given", "Pass the beginning of its id, or its title.")
        return _latest(entries, read_details)
    matches = [each for each in entries if each.id == name]
    matches = matches or [each for each in entries if each.id.startswith(name)]
    if not matches:
        entries = read_details(entries)
        matches = [each for each in entries if _has_words(each.title, name)]
    if not matches:
        raise UnknownSession(name, near=_find_near(name, entries))
    return matches[0] if len(matches) == 1 else _pick(context, name, read_details(matches), entries)


def _latest(entries: Sequence[SessionEntry], read_details: ReadDetails) -> SessionEntry:
    """Return the latest session, and report which it is."""
    (latest,) = read_details(entries[:1])
    short_id = shorten_ids(each.id for each in entries)[latest.id]
    print(f"latest session: {strip_control(latest.describe(short_id))}", file=sys.stderr)
    return latest


def _has_words(title: str | None, name: str) -> bool:
    shown = (title or "").casefold()
    return all(word in shown for word in name.casefold().split())


def _find_near(name: str, entries: Sequence[SessionEntry]) -> str | None:
    """Return the session whose id or title is most like a name, if any is near enough."""
    known: dict[str, SessionEntry] = {}
    for each in reversed(entries):  # the newest replaces others
        title = (each.title or "").casefold()
        known |= dict.fromkeys((each.id[: len(name)], title, *title.split()), each)
    near = suggest(name.casefold(), known)
    return known[near].describe() if near else None


def _pick(
    context: CommandContext,
    name: str,
    matches: Sequence[SessionEntry],
    entries: Sequence[SessionEntry],
) -> SessionEntry:
    """Ask the user which session is meant; raises UnknownSession if there is no terminal."""
    short_ids = shorten_ids(each.id for each in entries)
    lines = _list_matches(context, matches[:MAX_LISTED], short_ids)
    others = len(matches) - len(lines)
    error = UnknownSession(name, [*lines, f"and {others} more"] if others else lines)
    if not _is_on_terminal():
        raise error
    for number, line in enumerate(lines, 1):
        print(f"{number}  {line}", file=sys.stderr)
    print(f"Which session? [1-{len(lines)}] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if not answer.isdecimal() or not 1 <= int(answer) <= len(lines):
        raise error
    return matches[int(answer) - 1]


def _list_matches(
    context: CommandContext, matches: Sequence[SessionEntry], short_ids: Mapping[str, str]
) -> list[str]:
    """Return a line for each session: its id, title, agent, project and age."""
    rows = [
        [
            Cell(strip_control(short_ids[each.id])),
            Cell(strip_control(each.title or "")),
            Cell(each.agent),
            Cell(strip_control(shorten_home(each.project or "", context.places.home))),
            Cell(format_age(context.now - each.seen_at)),
        ]
        for each in matches
    ]
    return format_table(MATCH_COLUMNS, rows, context.width - LIST_INDENT, colour=False)[1:]


def _is_on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


class CurrentSession(msgspec.Struct, frozen=True):
    """The agent and session that a command runs in; unknown is None."""

    agent: str | None
    session: str | None


def find_current_session(env: Mapping[str, str]) -> CurrentSession | None:
    """Return the nearest agent: of several, the one that the fewest ancestors have a variable of.

    If that is equal, it is the first in the registry's order.
    """
    sessions, agents = _agent_variables()
    found = {name: agent for name, agent in agents.items() if env.get(name)}
    if not found:
        return None
    above = list(iter_environments(os.getppid(), found)) if len(set(found.values())) > 1 else []
    nearest = min(found, key=lambda name: sum(each.get(name) == env[name] for each in above))
    return CurrentSession(found[nearest], env[nearest] if nearest in sessions else None)


def find_enclosing_session(env: Mapping[str, str]) -> CurrentSession | None:
    """Return the agent that a process runs in, also if only a process above it has its variables.

    A program can drop variables for a command that it runs. macOS does not show these.
    """
    if (here := find_current_session(env)) is not None:
        return here
    sessions, agents = _agent_variables()
    for above in iter_environments(os.getppid(), agents):
        if name := next((name for name in above if above[name]), None):
            return CurrentSession(agents[name], above[name] if name in sessions else None)
    return None


def _agent_variables() -> tuple[Collection[str], dict[str, str | None]]:
    """Return the variables with an agent's session, and the agents of all that mark one."""
    sessions = session_variables()
    markers: dict[str, str | None] = {}
    for agent in all_agents():
        markers.update(dict.fromkeys(agent.capabilities.marker_variables, agent.name))
    return sessions, sessions | markers
