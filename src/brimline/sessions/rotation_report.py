"""Which sessions were continued in a fresh one from a handoff, and what that saved and cost.

`run --rotate-at` and the daemon append to the log in the state folder; the figures are read from
the transcripts of the sessions that it names.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.context.events import MAIN, Call
from brimline.context.prices import cost_of, day_of
from brimline.files.foreign_json import JsonDecoder
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import read_regular_file
from brimline.sessions.files import LoadedSession, SessionFiles, load_session

LOG_NAME = "rotations.jsonl"

Rotator: TypeAlias = Literal["run", "clear"]


class RotationEntry(msgspec.Struct, frozen=True):
    """A session that continued as another at a time, by `run` or by `handoff --clear`."""

    at: float
    agent: str
    session: str
    other: str
    by: Rotator


class ChainFigures(msgspec.Struct, frozen=True):
    """Sessions that continue each other, the first one first, and what going on in them cost.

    Each rotation avoided a compaction; `compactions` are those that the client did all the same.
    `read_again_tokens` is what the first calls after the rotations sent, `cache_write_tokens` what
    they wrote of it to the cache, `cost_usd` what they cost. None if a transcript or price is
    missing.
    """

    agent: str
    sessions: tuple[str, ...]
    title: str | None
    project: str | None
    first_day: str
    rotations: int
    compactions: int
    read_again_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None


def append_rotation(state: Path, entry: RotationEntry) -> None:
    """Append an entry to the log in one write; raises OSError."""
    create_private_folder(state)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    file = os.open(state / LOG_NAME, flags, 0o600)
    try:
        os.write(file, msgspec.json.encode(entry) + b"\n")
    finally:
        os.close(file)


_entries = JsonDecoder(RotationEntry)


def read_rotations(state: Path) -> list[RotationEntry]:
    """Return the entries of the log in their order; malformed lines are skipped."""
    entries: list[RotationEntry] = []
    with suppress(OSError):
        for line in read_regular_file(state / LOG_NAME).splitlines():
            if (entry := _entries.decode_or_none(line)) is not None:
                entries.append(entry)
    return entries


def report_rotations(
    entries: Iterable[RotationEntry], sessions: Iterable[SessionFiles]
) -> list[ChainFigures]:
    """Return the figures of each chain, in the order of their first rotations."""
    files = {(each.agent, each.session): each for each in sessions}
    return [_chain_figures(chain, files) for chain in _chains(entries)]


def _chains(entries: Iterable[RotationEntry]) -> list[list[RotationEntry]]:
    """Return the rotations that follow each other; one that is recorded twice counts once."""
    by_end: dict[tuple[str, str], list[RotationEntry]] = {}
    chains: list[list[RotationEntry]] = []
    for entry in entries:
        if (entry.agent, entry.other) in by_end:
            continue
        chain = by_end.get((entry.agent, entry.session))
        if chain is None:
            chain = list[RotationEntry]()
            chains.append(chain)
        chain.append(entry)
        by_end[entry.agent, entry.other] = chain
    return chains


def _chain_figures(
    chain: Sequence[RotationEntry], files: dict[tuple[str, str], SessionFiles]
) -> ChainFigures:
    agent = chain[0].agent
    ids = (chain[0].session, *(entry.other for entry in chain))
    loaded = [_load(files.get((agent, id))) for id in ids]
    known = [each.session for each in loaded if each is not None]
    firsts = [_first_call(each) for each in loaded[1:]]
    calls = [call for call in firsts if call is not None]
    is_whole = len(calls) == len(firsts)
    costs = [cost_of(call) for call in calls]
    dollars = [cost.dollars for cost in costs if cost is not None]
    threads = [session.threads[MAIN] for session in known if MAIN in session.threads]
    return ChainFigures(
        agent=agent,
        sessions=ids,
        title=known[0].title if known else None,
        project=known[0].project if known else None,
        first_day=day_of(chain[0].at),
        rotations=len(chain),
        compactions=sum(len(thread.compactions) for thread in threads),
        read_again_tokens=sum(call.usage.sent for call in calls) if is_whole else None,
        cache_write_tokens=sum(call.usage.cache_write for call in calls) if is_whole else None,
        cost_usd=sum(dollars) if len(dollars) == len(firsts) else None,
    )


def _load(files: SessionFiles | None) -> LoadedSession | None:
    return None if files is None else load_session(files)


def _first_call(loaded: LoadedSession | None) -> Call | None:
    main = loaded.session.threads.get(MAIN) if loaded else None
    return next(iter(main.calls.values()), None) if main else None
