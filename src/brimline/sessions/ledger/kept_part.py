"""What most of a context is that stays after a compaction, for sessions in a loop of them."""

from collections.abc import Sequence

from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.context.need import KeptPart
from brimline.sessions.files import READ_ERRORS, SessionFiles
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledgers


def read_kept_part(files: SessionFiles, places: Places) -> KeptPart | None:
    """Return the largest part of what the main thread kept; None if that cannot be read."""
    try:
        ledgers = read_ledgers(files, places)
    except READ_ERRORS:
        return None
    for of_session in ledgers:
        for ledger in of_session.threads:
            if ledger.thread == MAIN:
                return _largest_part(ledger, of_session.session.threads[MAIN].cycle_ends)
    return None


def _largest_part(ledger: ThreadLedger, cycle_ends: Sequence[int]) -> KeptPart | None:
    """Return the largest part of the first call after the last compaction that a call followed."""
    started = [calls for calls in cycle_ends if calls < len(ledger.balances)]
    if not started:
        return None
    parts = zip(CATEGORIES, ledger.balances[max(started)].categories, strict=True)
    return max(parts, key=lambda part: part[1])
