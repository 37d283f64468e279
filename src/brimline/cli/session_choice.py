"""Which session a command is about: by the beginning of its id, by its title, or by default."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from brimline.agents import agent_names, all_agents
from brimline.cli.context import CommandContext
from brimline.cli.daemon_sessions import DaemonSessions, KnownSession, SessionQuestion
from brimline.daemon.process_tree import iter_environments
from brimline.errors import InvalidRequest, UnknownSession, suggest
from brimline.sessions.files import SessionFiles, find_transcripts, group_by_session, shorten_ids
from brimline.sessions.index import TranscriptIndex
from brimline.terminal.text import strip_control

MAX_LISTED = 9

SESSION_VARIABLE = "BRIMLINE_SESSION"


class SessionEntry(msgspec.Struct, frozen=True):
    """A session that a user may mean; `title` is None if it has none or is not read yet."""

    id: str
    agent: str
    title: str | None = None

    def describe(self, short_id: str | None = None) -> str:
        title = f" {self.title}" if self.title else ""
        return f"{short_id or self.id}{title} ({self.agent})"


ReadTitles = Callable[[Sequence[SessionEntry]], Sequence[SessionEntry]]


def find_files(
    context: CommandContext, name: str | None, agents: Sequence[str] = agent_names()
) -> SessionFiles:
    """Return the files of the session that is meant; raises UnknownSession, InvalidRequest."""
    files, _ = _find(context, name, _list_files(context, agents), DaemonSessions())
    assert files is not None
    return files


def find_session(
    context: CommandContext, name: str | None, agent: str | None
) -> tuple[SessionFiles | None, KnownSession | None]:
    """Return the files of the session that is meant, and what the daemon has; one may be None.

    It is one of `agent`, unless that is None. Raises UnknownSession, InvalidRequest.
    """
    question = SessionQuestion(context)
    sessions = _list_files(context, [agent] if agent else agent_names())
    return _find(context, name, sessions, question.read([agent] if agent else None))


def _list_files(context: CommandContext, agents: Sequence[str]) -> list[SessionFiles]:
    return group_by_session(find_transcripts(context.places, agents))


def _find(
    context: CommandContext,
    name: str | None,
    sessions: Sequence[SessionFiles],
    known: DaemonSessions,
) -> tuple[SessionFiles | None, KnownSession | None]:
    files_of = {(files.agent, files.session): files for files in sessions}
    entries = _order(sessions, known)

    def read_titles(some: Sequence[SessionEntry]) -> list[SessionEntry]:
        recorded = [files for each in some if (files := files_of.get((each.agent, each.id)))]
        own = [files.transcripts[0] for files in recorded]
        index = TranscriptIndex.load(context.cache)
        index.update(own, tails=True)
        index.save()
        titles = {(each.agent, each.id): each.title for each in some}
        for files, transcript in zip(recorded, own, strict=True):
            if session := index.session(transcript):
                titles[files.agent, files.session] = session.title
        return [
            msgspec.structs.replace(each, title=titles.get((each.agent, each.id))) for each in some
        ]

    chosen = choose_session(context, name, entries, read_titles)
    return files_of.get((chosen.agent, chosen.id)), known.get(chosen.agent, chosen.id)


def _order(sessions: Sequence[SessionFiles], known: DaemonSessions) -> list[SessionEntry]:
    """Return the sessions of files and daemon, the newest first, with the daemon's titles."""
    last_active = {(files.agent, files.session): files.modified for files in sessions}
    for key, each in known.by_key.items():
        last_active.setdefault(key, each.session.seen_at)
    ordered = sorted(last_active, key=lambda key: last_active[key], reverse=True)
    titles = {key: each.session.title for key, each in known.by_key.items()}
    return [SessionEntry(id, agent, titles.get((agent, id))) for agent, id in ordered]


def list_sessions(context: CommandContext) -> list[SessionEntry]:
    """Return all sessions, the newest first, with titles that need no reading of transcripts."""
    question = SessionQuestion(context)
    sessions = _list_files(context, agent_names())
    index = TranscriptIndex.load(context.cache)
    summaries = {
        (files.agent, files.session): index.summary(files.transcripts[0]) for files in sessions
    }
    return [
        each
        if each.title or (summary := summaries.get((each.agent, each.id))) is None
        else msgspec.structs.replace(each, title=summary.title)
        for each in _order(sessions, question.read())
    ]


def choose_session(
    context: CommandContext,
    name: str | None,
    entries: Sequence[SessionEntry],
    read_titles: ReadTitles = list[SessionEntry],
) -> SessionEntry:
    """Return the session that is meant; `entries` are the newest first.

    Without a name it is the session that the command runs in, else, on a terminal, the latest. If
    several match, a user on a terminal is asked.
    """
    here = find_current_session(context.places.env)
    name = name or (here.session if here else None)
    if name is None:
        if here is None and not entries:
            hint = "Start an agent first; `brimline demo` replays a recorded session."
            raise InvalidRequest("no sessions found", hint)
        may_be_latest = here is None and _is_on_terminal()
        if not may_be_latest:
            raise InvalidRequest("no session given", "Pass the beginning of its id, or its title.")
        return _latest(entries, read_titles)
    matches = [each for each in entries if each.id == name]
    matches = matches or [each for each in entries if each.id.startswith(name)]
    if not matches:
        entries = read_titles(entries)
        matches = [each for each in entries if _has_words(each.title, name)]
    if not matches:
        raise UnknownSession(name, near=_find_near(name, entries))
    return matches[0] if len(matches) == 1 else _pick(name, read_titles(matches), entries)


def _latest(entries: Sequence[SessionEntry], read_titles: ReadTitles) -> SessionEntry:
    """Return the latest session, and report which it is."""
    (latest,) = read_titles(entries[:1])
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
    name: str, matches: Sequence[SessionEntry], entries: Sequence[SessionEntry]
) -> SessionEntry:
    """Ask the user which session is meant; raises UnknownSession if there is no terminal."""
    short_ids = shorten_ids(each.id for each in entries)
    lines = [strip_control(each.describe(short_ids[each.id])) for each in matches[:MAX_LISTED]]
    if not _is_on_terminal():
        raise UnknownSession(name, lines)
    for number, line in enumerate(lines, 1):
        print(f"{number}  {line}", file=sys.stderr)
    print(f"Which session? [1-{len(lines)}] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if not answer.isdecimal() or not 1 <= int(answer) <= len(lines):
        raise UnknownSession(name, lines)
    return matches[int(answer) - 1]


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
    sessions: dict[str, str | None] = {SESSION_VARIABLE: None}
    markers: dict[str, str | None] = {}
    for agent in all_agents():
        sessions.update(dict.fromkeys(agent.capabilities.session_id_variables, agent.name))
        markers.update(dict.fromkeys(agent.capabilities.marker_variables, agent.name))
    agents = {name: agent for name, agent in (sessions | markers).items() if env.get(name)}
    if not agents:
        return None
    above = list(iter_environments(os.getppid(), agents)) if len(set(agents.values())) > 1 else []
    nearest = min(agents, key=lambda name: sum(each.get(name) == env[name] for each in above))
    return CurrentSession(agents[nearest], env[nearest] if nearest in sessions else None)
