"""Notice files that were not read fully.

A client's format changed: replies without usage, or many records that are not understood. Or a file
is damaged: a few of its records are malformed.
"""

from collections.abc import Iterable

import msgspec

from brimline.agents import display_name
from brimline.agents.transcripts.source import Tally, Transcript
from brimline.context.tracker import Session
from brimline.terminal.text import count_of

MIN_UNMETERED = 3  # replies in a row without usage
MIN_UNREAD, MAX_UNREAD_SHARE = 10, 0.05  # records that are unknown or malformed
# The same in a file without any call; so many records come with three calls or more.
MIN_UNREAD_WITHOUT_CALL, MIN_RECORDS_WITHOUT_CALL = 3, 20


class DriftedFile(msgspec.Struct, frozen=True):
    """A transcript that is not understood, and the client's version in it."""

    path: str
    modified: float
    version: str | None


def has_drifted(session: Session, tally: Tally) -> bool:
    """Return whether the figures of a transcript are missing or doubtful."""
    if session.unmetered >= MIN_UNMETERED:
        return True
    unread = tally.unknown + tally.malformed
    if unread >= MIN_UNREAD and unread > MAX_UNREAD_SHARE * tally.records:
        return True
    has_calls = any(thread.call_count for thread in session.threads.values())
    is_long = tally.records >= MIN_RECORDS_WITHOUT_CALL
    doubtful = unread if is_long else tally.malformed
    return not has_calls and doubtful >= MIN_UNREAD_WITHOUT_CALL


def find_drift(transcript: Transcript, session: Session, tally: Tally) -> DriftedFile | None:
    if not has_drifted(session, tally):
        return None
    return DriftedFile(transcript.path, transcript.modified, session.version)


def describe_damage(transcript: Transcript, session: Session, tally: Tally) -> str | None:
    """Name a file with malformed records, and the first of them; None if its format changed."""
    if not tally.malformed or has_drifted(session, tally):
        return None
    records = count_of(tally.malformed, "record")
    return f"{transcript.path}: {records} cannot be read ({tally.places[0]})"


def describe_drift(
    agent: str, files: Iterable[DriftedFile], running_version: str | None = None
) -> str:
    """Name the newest of these files, the client's version, and what to do."""
    newest = max(files := list(files), key=lambda file: file.modified)
    others = len({file.path for file in files}) - 1
    more = f" and {count_of(others, 'other file')}" if others else ""
    known_version = newest.version or running_version
    version = f" ({known_version})" if known_version else ""
    return (
        f"Brimline does not understand this version of {display_name(agent)}{version}: "
        f"{newest.path}{more} cannot be read fully, and its figures may be missing. "
        "Update Brimline."
    )
