"""Totals of one transcript, small enough to cache for every file."""

import time
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from brimline.events import MAIN, Call
from brimline.prices import tier_bounds, tier_of
from brimline.tracker import Session, Thread
from brimline.usage import ZERO, Usage

UNKNOWN_DAY = "unknown"

RowKey: TypeAlias = tuple[str, str | None, int]  # day, model, price tier


class UsageRow(msgspec.Struct, frozen=True, array_like=True):
    """The calls of one day and one model that are billed at one price tier.

    `peak_sent` and `compactions` are those of the file's primary thread.
    """

    day: str
    model: str | None
    tier: int
    calls: int
    usage: Usage
    peak_sent: int | None = None
    compactions: int = 0


class FileSummary(msgspec.Struct, frozen=True, array_like=True):
    """The totals of one transcript.

    `end_sent` is that of the primary thread. `ids` are the ids of its calls, one per line; `shared`
    are the ids that an older file has too, which are in no row.
    """

    session: str | None
    project: str | None
    version: str | None
    model: str | None
    first: float | None
    last: float | None
    end_sent: int | None
    rows: tuple[UsageRow, ...]
    ids: bytes
    shared: bytes = b""


def primary_thread(session: Session) -> Thread:
    """Return the thread that the file is about: the main one, or the subagent's in its own file."""
    return session.threads.get(MAIN) or next(iter(session.threads.values()), Thread(MAIN))


def summarise(session: Session, excluded_ids: frozenset[str] = frozenset()) -> FileSummary:
    """Total a transcript; calls in `excluded_ids` are counted in another file."""
    primary = primary_thread(session)
    ids = [call.id for thread in session.threads.values() for call in thread.calls.in_order()]
    rows = _RowsBuilder(excluded_ids)
    for thread in session.threads.values():
        rows.add_thread(thread, thread is primary)
    return FileSummary(
        session=session.id,
        project=session.project,
        version=session.version,
        model=primary.model,
        first=next((c.at for c in primary.calls.values() if c.at is not None), None),
        last=session.at,
        end_sent=primary.last.usage.sent if primary.last else None,
        rows=rows.build(),
        ids="\n".join(ids).encode(),
        shared="\n".join(sorted(excluded_ids)).encode(),
    )


class _RowBuilder:
    """Collects the calls of a row; `sent` is that of the primary thread's calls."""

    def __init__(self) -> None:
        self.usages: list[Usage] = []
        self.sent: list[int] = []
        self.compactions = 0

    def build(self, key: RowKey) -> UsageRow:
        usages = self.usages
        total = Usage(
            sum([usage.input for usage in usages]),
            sum([usage.cache_read for usage in usages]),
            sum([usage.cache_write for usage in usages]),
            sum([usage.output for usage in usages]),
            cache_write_1h=sum([usage.cache_write_1h for usage in usages]),
        )
        return UsageRow(*key, len(usages), total, max(self.sent, default=None), self.compactions)


class _RowsBuilder:
    def __init__(self, without: frozenset[str]) -> None:
        self._excluded_ids = without
        self._builders: dict[RowKey, _RowBuilder] = {}
        self._spent: list[UsageRow] = []

    def add_thread(self, thread: Thread, own: bool) -> None:
        self._add_calls(self._counted_calls(thread), own)
        if own:
            for compaction in thread.compactions:
                self._builder_for((day_of(compaction.at), compaction.model, 0)).compactions += 1
        if thread.spent != ZERO:
            self._spent.append(UsageRow(day_of(thread.at), thread.model, 0, 0, thread.spent))

    def build(self) -> tuple[UsageRow, ...]:
        return (*(group.build(key) for key, group in self._builders.items()), *self._spent)

    def _builder_for(self, key: RowKey) -> _RowBuilder:
        return self._builders.setdefault(key, _RowBuilder())

    def _counted_calls(self, thread: Thread) -> Iterable[Call]:
        calls, without = thread.calls.in_order(), self._excluded_ids
        return [call for call in calls if call.id not in without] if without else calls

    def _add_calls(self, calls: Iterable[Call], own: bool) -> None:
        """Add calls to their rows; the next call is mostly in the same row."""
        group, model, day = _RowBuilder(), "", UNKNOWN_DAY
        first, end, above, up_to = 0.0, 0.0, 0, 0
        for call in calls:
            at, usage = call.at or 0.0, call.usage
            sent = usage.sent
            if not (first <= at < end and above < sent <= up_to and call.model == model):
                if not first <= at < end:
                    day, (first, end) = day_of(call.at), day_bounds(at)
                model = call.model
                above, up_to = tier_bounds(model, sent)
                group = self._builder_for((day, model, tier_of(model, usage)))
            group.usages.append(usage)
            if own:
                group.sent.append(sent)


def day_bounds(at: float) -> tuple[float, float]:
    """Return the start and end of the local day that contains a time."""
    year, month, day, *_ = time.localtime(at)
    begins = time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
    return begins, time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))


def day_of(at: float | None) -> str:
    """Return the local day, as 2026-11-15."""
    if at is None:
        return UNKNOWN_DAY
    return time.strftime("%Y-%m-%d", time.localtime(at))
