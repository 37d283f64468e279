"""`brimline recall`: find what a session's transcripts contain, also from before a compaction."""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from brimline.cli.arguments import ALL_ROWS, add_flag, add_json, add_rows, check_session, check_utf8
from brimline.cli.context import CommandContext, emit_json, print_problems
from brimline.cli.daemon_sessions import DaemonSessions, SessionQuestion
from brimline.cli.read_progress import draw_progress
from brimline.cli.session_choice import choose_session, find_current_session, list_files
from brimline.context.events import MAIN
from brimline.files.project_folder import find_project_root, is_within
from brimline.sessions.files import SessionFiles, shorten_ids
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.recall.index_file import drop_orphans
from brimline.sessions.recall.query import parse_query, parse_text
from brimline.sessions.recall.search import (
    DEFAULT_HITS,
    FOLDER_NAME,
    MAX_HITS,
    HitLine,
    Recall,
    RecallHit,
    SearchScope,
    find_earlier,
    search,
)
from brimline.sessions.target import files_of_path, is_file_target
from brimline.terminal.text import (
    colourize,
    count_of,
    join_facts,
    shorten_home,
    strip_control,
    truncate,
)

MAX_PROJECT_SESSIONS = 20  # of a project's, the newest are searched
MAX_LISTED_SESSIONS = 200  # of these the projects are looked up

USAGE = "brimline recall WORDS ... [OPTIONS]"
INDENT = "    "
HIT_INDENT = "  > "


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = "a word, or a phrase in quotes; all must be in one message, command or result"
    to.add_argument("words", nargs="+", type=check_utf8, metavar="WORDS", help=help_text)
    help_text = (
        "a session's id or title, or a transcript "
        "(default: the session that this runs in, else the latest of this project)"
    )
    to.add_argument("--session", type=check_session, metavar="S", help=help_text)
    add_flag(to, "--before-compaction", "only what the last compaction or clear took away")
    add_rows(to)
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Print the hits, the best first; return 1 if there is none."""
    query = parse_query(options.words)
    folder = context.cache / FOLDER_NAME
    most = options.rows or DEFAULT_HITS
    result = search(
        _find_scopes(context, options.session, folder),
        query,
        folder,
        before_compaction=options.before_compaction,
        most=MAX_HITS if most == ALL_ROWS else min(most, MAX_HITS),
        progress=draw_progress(),
    )
    print_problems(result.problems)
    if options.json:
        emit_json(result)
    else:
        print("\n".join(_lines(context, result, options.before_compaction)))
    return 0 if result.hits else 1


def recall_text(context: CommandContext, words: str, session: str, most: int) -> str:
    """Return the best hits in a session and those that it continues, as text."""
    folder = context.cache / FOLDER_NAME
    result = search(_find_scopes(context, session, folder), parse_text(words), folder, most=most)
    return "\n".join(_lines(context, result, before_compaction=False))


def _find_scopes(context: CommandContext, name: str | None, folder: Path) -> list[SearchScope]:
    """Return the session that is meant and those that it continues, else those of this project."""
    if name is not None and is_file_target(name):
        return [SearchScope(files_of_path(name, context.places))]
    question = SessionQuestion(context)
    sessions = list_files(context)
    drop_orphans(folder, [each for files in sessions for each in files.transcripts])
    here = find_current_session(context.places.env)
    name = name or (here.session if here else None)
    known = question.read()
    if name is None:
        return [SearchScope(each) for each in _of_project(context, sessions)]
    rows = [each.session for each in known.by_key.values()]
    chosen = choose_session(context, name, sessions, rows)
    by_key = {(files.agent, files.session): files for files in sessions}
    files = by_key.get((chosen.agent, chosen.id))
    if files is None:
        return []
    return find_earlier(files, sessions, _cleared_sessions(known))


def _cleared_sessions(known: DaemonSessions) -> dict[str, str]:
    """Return the session that each session continues after a clear, as far as the store knows."""
    rows = (each.session for each in known.by_key.values())
    return {row.became: row.id for row in rows if row.became is not None}


def _of_project(context: CommandContext, sessions: Sequence[SessionFiles]) -> list[SessionFiles]:
    """Return the newest sessions of the repository or folder that the command runs in."""
    newest = sorted(sessions, key=lambda files: files.modified, reverse=True)[:MAX_LISTED_SESSIONS]
    index = TranscriptIndex.load(context.cache)
    index.update([files.transcripts[0] for files in newest], tails=True)
    index.save()
    root = find_project_root(Path.cwd())
    found: list[SessionFiles] = []
    for files in newest:
        session = index.session(files.transcripts[0])
        project = (session and session.project) or files.transcripts[0].project
        if project and is_within(project, str(root)):
            found.append(files)
    if not found:
        print_problems([f"no sessions of {shorten_home(str(root), context.places.home)}"])
    elif len(found) > MAX_PROJECT_SESSIONS:
        text = f"searching the latest {MAX_PROJECT_SESSIONS} of {len(found)} sessions here"
        print_problems([f"{text}; --session names another"])
    return found[:MAX_PROJECT_SESSIONS]


def _lines(context: CommandContext, result: Recall, before_compaction: bool) -> Iterator[str]:
    if not result.hits:
        yield _describe_nothing(result, before_compaction)
        return
    if result.words:
        yield "No passage has this phrase; these have all of its words:"
        yield ""
    short_ids = shorten_ids(hit.session for hit in result.hits)
    for number, hit in enumerate(result.hits):
        if number:
            yield ""
        session = short_ids[hit.session] if result.searched > 1 else None
        yield from _describe_hit(context, hit, session)
    if result.more:
        yield ""
        yield "There is more: add a word, or --rows N."


def _describe_nothing(result: Recall, before_compaction: bool) -> str:
    if not result.searched:
        return "nothing found: there is no transcript to search"
    searched = count_of(result.searched, "session")
    if before_compaction and not result.compacted:
        return f"nothing found: {searched} searched, and none was compacted or cleared"
    where = " before the last compaction" if before_compaction else ""
    return f"nothing found{where} ({searched} searched)"


def _describe_hit(context: CommandContext, hit: RecallHit, session: str | None) -> Iterator[str]:
    facts = [_describe_role(hit), _time_text(hit.at)]
    facts.append(f"after call {hit.call}" if hit.call else None)
    facts.append(f"session {session}" if session else None)
    facts.append(None if hit.thread == MAIN else f"subagent {hit.thread}")
    facts.append(f"{shorten_home(hit.path, context.places.home)}:{hit.line}")
    for line in join_facts([fact for fact in facts if fact], context.width):
        yield colourize(line, "bold", context.colour)
    if hit.role == "result" and hit.command:
        yield truncate(f"{INDENT}$ {strip_control(hit.command)}", context.width)
    for line in hit.lines:
        yield _hit_line(line, context.colour)
    for line in hit.result.splitlines():
        yield truncate(f"{INDENT}= {_printable(line)}", context.width)


def _describe_role(hit: RecallHit) -> str:
    return f"{hit.role} of {hit.tool}" if hit.tool else hit.role


def _time_text(at: float | None) -> str | None:
    return None if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _hit_line(line: HitLine, colour: bool) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in line.marks:
        parts.append(_printable(line.text[end:start]))
        parts.append(colourize(_printable(line.text[start:stop]), "high", colour))
        end = stop
    parts.append(_printable(line.text[end:]))
    return (HIT_INDENT if line.marks else INDENT) + "".join(parts)


def _printable(text: str) -> str:
    return strip_control(text.replace("\t", " "))
