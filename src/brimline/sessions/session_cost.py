"""What a session has cost: each of its calls once, and none that it copied from another session."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from brimline.agents.transcripts.source import Places, Transcript, begun_at
from brimline.context.tracker import Session
from brimline.sessions.files import LoadedSession, SessionFiles, find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import CostTotal, total_cost
from brimline.sessions.summary import UsageRow, summarise


def find_session_cost(loaded: LoadedSession, places: Places, cache: Path) -> CostTotal:
    """Return the cost of a session without the calls that it copied from another."""
    excluded, rows = find_copied_calls(loaded, places, cache), list[UsageRow]()
    for part in loaded.parts:  # Gemini CLI resumes a session in a file of its own
        summary = summarise(part, excluded)
        rows += summary.rows
        excluded |= set(summary.ids.decode().split("\n"))
    return total_cost(rows)


def find_copied_calls(loaded: LoadedSession, places: Places, cache: Path) -> frozenset[str]:
    """Return the ids of the calls in a fork that another session on this machine made.

    All files are read only for a fork, whose file was begun after its first call.
    """
    if not _may_be_fork([loaded.session], map(begun_at, loaded.paths)):
        return frozenset()
    agents = [loaded.session.agent or ""]
    transcripts = find_transcripts(places, agents)
    index = TranscriptIndex.load(cache)
    index.update(transcripts)
    index.dedupe_calls(transcripts, agents)
    index.save()
    paths = {os.path.realpath(path) for path in loaded.paths}
    own, shared = set[bytes](), set[bytes]()
    for transcript in transcripts:
        if os.path.realpath(transcript.path) in paths and (summary := index.summary(transcript)):
            copied = set(summary.shared.split(b"\n"))
            shared |= copied
            own |= set(summary.ids.split(b"\n")) - copied
    return frozenset(id.decode() for id in shared - own if id)  # not of a file of its own


def _may_be_fork(parts: Iterable[Session], begun: Iterable[float | None]) -> bool:
    """Return whether the files of a session were begun after its first call."""
    threads = (thread for part in parts for thread in part.threads.values())
    first_calls = [thread.first_at for thread in threads if thread.first_at is not None]
    known = [at for at in begun if at is not None]
    return bool(first_calls and known) and min(known) > min(first_calls)


class ListedCosts:
    """The costs of the sessions in a list, whose files are in an index.

    `transcripts` are all on this machine. What the originals of forks have made is read only if it
    is little: else the cost of a fork is unknown.
    """

    def __init__(
        self,
        index: TranscriptIndex,
        transcripts: Sequence[Transcript],
        sessions: Sequence[SessionFiles],
    ) -> None:
        self._index = index
        self._forks = {files.session for files in sessions if self._is_fork(files)}
        agents = {files.agent for files in sessions if files.session in self._forks}
        self._undecided = {agent for agent in agents if not self._find_copies(agent, transcripts)}

    def cost_of(self, files: SessionFiles) -> float | None:
        """Return the cost of a session; None if no price is known, or not all of it was read."""
        index = self._index
        if files.session in self._forks and files.agent in self._undecided:
            return None
        if not all(map(index.is_fully_read, files.transcripts)):
            return None
        summaries = [(index.summary(each), index.session(each)) for each in files.transcripts]
        known = [(one, session) for one, session in summaries if one and session]
        copied = [set(one.shared.split()) for one, _ in known]
        own = (set(one.ids.split()) - ids for (one, _), ids in zip(known, copied, strict=True))
        seen = set[bytes]().union(*copied).difference(*own)  # made by another session
        rows = list[UsageRow]()
        for (summary, session), shared in zip(known, copied, strict=True):
            ids = set(summary.ids.split())
            if (again := ids & seen) != shared:
                summary = summarise(session, frozenset(id.decode() for id in again))
            rows += summary.rows
            seen |= ids
        return total_cost(rows).cost

    def has_copies(self, files: SessionFiles) -> bool:
        """Return whether a session is known to have calls of another one."""
        if files.session not in self._forks or files.agent in self._undecided:
            return False
        summaries = (self._index.summary(each) for each in files.transcripts)
        return any(summary is not None and summary.shared for summary in summaries)

    def _is_fork(self, files: SessionFiles) -> bool:
        read = ((each, self._index.session(each)) for each in files.transcripts)
        parts = [(each, session) for each, session in read if session is not None]
        begun = (self._index.begun_at(each) for each, _ in parts)
        return _may_be_fork((session for _, session in parts), begun)

    def _find_copies(self, agent: str, transcripts: Iterable[Transcript]) -> bool:
        """Find which calls an agent's sessions have copied; return False if it is too much."""
        every = [each for each in transcripts if each.agent == agent]
        if not self._index.read_rest(every):
            return False
        self._index.dedupe_calls(every, [agent])
        return True
