"""Notice that a client's format changed: replies without usage, or many records not understood."""

from collections.abc import Iterable

from brimline.agents import display_name
from brimline.terminal.text import count_of
from brimline.tracker import Session
from brimline.transcripts.source import Tally

MIN_UNMETERED = 3  # replies in a row without usage
MIN_UNREAD, MAX_UNREAD_SHARE = 10, 0.05  # records that are unknown or malformed


def has_drifted(session: Session, tally: Tally) -> bool:
    """Return whether the figures of a transcript are missing or doubtful."""
    unread = tally.unknown + tally.malformed
    is_unread = unread >= MIN_UNREAD and unread > MAX_UNREAD_SHARE * tally.records
    return session.unmetered >= MIN_UNMETERED or (is_unread and tally.records > 0)


def describe_drift(agent: str, paths: Iterable[str]) -> str:
    first, *others = sorted(paths)
    more = f" and {count_of(len(others), 'other file')}" if others else ""
    name = display_name(agent)
    return (
        f"Brimline does not understand this version of {name}: {first}{more} cannot be read "
        "fully, and its figures may be missing. Update Brimline."
    )
