"""What one session cost, as the report has it."""

import os
from pathlib import Path

from brimline.agents.transcripts.source import Places, begun_at
from brimline.sessions.files import LoadedSession, find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import CostTotal, total_cost
from brimline.sessions.summary import UsageRow, summarise


def find_session_cost(loaded: LoadedSession, places: Places, cache: Path) -> CostTotal:
    """Return the cost of a session without the calls that it copied from another."""
    excluded, rows = find_copied_calls(loaded, places, cache), list[UsageRow]()
    for part in loaded.parts:
        summary = summarise(part, excluded)
        rows += summary.rows
        excluded |= set(summary.ids.decode().split("\n"))
    return total_cost(rows)


def find_copied_calls(loaded: LoadedSession, places: Places, cache: Path) -> frozenset[str]:
    """Return the ids of the calls in a fork that another session on this machine made.

    All files are read only for a fork, whose file was begun after its first call.
    """
    session = loaded.session
    first_calls = [each.first_at for each in session.threads.values() if each.first_at is not None]
    begun = [at for path in loaded.paths if (at := begun_at(path)) is not None]
    if not first_calls or not begun or min(begun) <= min(first_calls):
        return frozenset()
    agents = [session.agent or ""]
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
