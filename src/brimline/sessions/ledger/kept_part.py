"""What most of a context is that stays after a compaction, for sessions in a loop of them."""

from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.context.need import KeptPart
from brimline.sessions.files import READ_ERRORS, SessionFiles
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.session_ledger import SessionLedger, read_ledgers


def read_kept_part(files: SessionFiles, places: Places) -> KeptPart | None:
    """Return the largest part of what the main thread kept; None if that cannot be read."""
    try:
        ledgers = read_ledgers(files, places)
    except READ_ERRORS:
        return None
    return next((_kept_part(each) for each in ledgers if MAIN in each.session.threads), None)


def _kept_part(of_session: SessionLedger) -> KeptPart | None:
    """Return the largest part of the first call after the last compaction that a call followed."""
    ledger = next((each for each in of_session.threads if each.thread == MAIN), None)
    if ledger is None:
        return None
    ends = of_session.session.threads[MAIN].cycle_ends
    started = [calls for calls in ends if calls < len(ledger.balances)]
    if not started:
        return None
    parts = zip(CATEGORIES, ledger.balances[max(started)].categories, strict=True)
    return max(parts, key=lambda part: part[1])
