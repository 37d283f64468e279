"""Whether a client compacts where its settings say: by the sessions that began since then."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.context.tracker import Session, Thread, held_at_trigger, main_thread
from brimline.context.tracker.state import Compaction
from brimline.context.usage import format_tokens
from brimline.context.window import is_same_model, short_model
from brimline.sessions.files import find_transcripts, group_by_session, merge_transcripts
from brimline.sessions.index import TranscriptIndex

CompactionVerdict: TypeAlias = Literal["works", "ignored", "elsewhere", "not seen"]

SHOWN_COMPACTIONS = 3
CLOSE_SHARE = 0.1  # a call and its results may pass a limit by that much before the compaction


class SeenSession(msgspec.Struct, frozen=True):
    """What one session shows: where it compacted, and how far it went beyond the limit."""

    version: str | None
    compactions: tuple[int, ...]
    beyond: int | None = None


class CompactionCheck(msgspec.Struct, frozen=True):
    """The verdict, with the sentence for people."""

    verdict: CompactionVerdict
    text: str


def read_sessions(places: Places, agent: str, since: float, cache: Path) -> Iterator[Session]:
    """Yield an agent's sessions that were active since a time, the oldest first."""
    groups = group_by_session(find_transcripts(places, [agent]))
    active = sorted((one for one in groups if one.modified >= since), key=lambda one: one.modified)
    index = TranscriptIndex.load(cache)
    index.update([transcript for files in active for transcript in files.transcripts])
    index.save()
    for files in active:
        parts = [(each, index.session(each)) for each in files.transcripts]
        yield merge_transcripts(agent, [(each, part) for each, part in parts if part])


def check_compactions(
    sessions: Iterable[Session], model: str, limit: int, window: int, since: float
) -> CompactionCheck:
    """Return whether the sessions that began since a time compacted at the limit.

    A client reads its settings when it starts: older sessions show nothing.
    """
    seen = [each for session in sessions if (each := _look_at(session, model, limit, since))]
    passed = [each for each in seen if each.beyond is not None]
    tokens = [at for each in seen for at in each.compactions]
    if passed:
        most = max(each.beyond or 0 for each in passed)
        by = ", ".join(dict.fromkeys(each.version or "an unknown version" for each in passed))
        how = f"passed by {format_tokens(most)}{_times(len(passed))}"
        return CompactionCheck("ignored", f"ignored by {by} on {short_model(model)}: {how}")
    if not tokens:
        return CompactionCheck("not seen", "not seen yet: no session since then has reached it")
    last = tokens[-SHOWN_COMPACTIONS:]
    shares = ", ".join(f"{100 * each / window:.0f}" for each in last)
    where = f"the last {len(last)} compacted" if len(last) > 1 else "the last one compacted"
    if all(_is_close(each, limit) for each in last):
        return CompactionCheck("works", f"works: {where} at {shares}% of the window")
    return CompactionCheck("elsewhere", f"{where} at {shares}% of the window, not at the limit")


def _look_at(session: Session, model: str, limit: int, since: float) -> SeenSession | None:
    main = main_thread(session)
    if main is None or main.last is None or not _began_after(main, since):
        return None
    if not is_same_model(main.last.model, model):
        return None
    compactions = (_compacted_at(each, limit) for each in main.compactions)
    beyond = main.sustained_sent - limit
    is_beyond = beyond > CLOSE_SHARE * limit
    tokens = tuple(each for each in compactions if each is not None)
    return SeenSession(session.version, tokens, beyond if is_beyond else None)


def _compacted_at(compaction: Compaction, limit: int) -> int | None:
    """Return what was held at a compaction by the client itself; None for others.

    Pi's transcripts do not say who asked for one: it counts if it was at the limit.
    """
    before = compaction.before
    if compaction.trigger is None and before is not None and _is_close(before, limit):
        return before
    return held_at_trigger(compaction)


def _is_close(tokens: int, limit: int) -> bool:
    return abs(tokens - limit) <= CLOSE_SHARE * limit


def _began_after(thread: Thread, since: float) -> bool:
    first = next(iter(thread.calls_from(0)), None)
    return first is not None and first.at is not None and first.at >= since


def _times(count: int) -> str:
    return {1: "", 2: " twice"}.get(count, f" in {count} sessions")
