"""Totals of one transcript, small enough to cache for every file."""

import time
from collections.abc import Iterable
from itertools import chain
from math import fsum
from typing import TypeAlias

import msgspec

from brimline.context.cache_misses import CacheMiss, Cause, find_misses
from brimline.context.events import MAIN, Call, Spent
from brimline.context.prices import UNKNOWN_DAY, day_of, tier_bounds, tier_of
from brimline.context.tracker import Session, Thread
from brimline.context.usage import Usage, add_usages

# Day, model, both price tiers, branch, and whether the client and the store have a cost.
RowKey: TypeAlias = tuple[str, str | None, int, str | None, str | None, bool, bool]


class UsageRow(msgspec.Struct, frozen=True, array_like=True):
    """The calls of one day, model and branch that are billed at one price tier and service tier.

    `peak_sent` and `compactions` are those of the file's primary thread. `client_cost` is what the
    client recorded that they cost, in USD, and `stored_cost` what the store has as their cost;
    None if it has that of none.
    """

    day: str
    model: str | None
    tier: int
    calls: int
    usage: Usage
    peak_sent: int | None = None
    compactions: int = 0
    service_tier: str | None = None
    client_cost: float | None = None
    branch: str | None = None
    stored_cost: float | None = None


class MissRow(msgspec.Struct, frozen=True, array_like=True):
    """The cache misses of one day, model, branch and cause.

    `cost` is in USD; None if no price is known.
    """

    day: str
    model: str | None
    cause: Cause
    misses: int
    tokens: int
    cost: float | None
    branch: str | None = None


class FileSummary(msgspec.Struct, frozen=True, array_like=True):
    """The totals of one transcript.

    `first` is the time of the first call that is no copy, `last` that of the last event, and
    `end_sent` that of the primary thread. `ids` are the ids of its calls and spendings, one per
    line; `shared` are the ids that an older file has too, which are in no row.
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
    title: str | None = None
    misses: tuple[MissRow, ...] = ()


def primary_thread(session: Session) -> Thread:
    """Return the thread that the file is about: the main one, or the subagent's in its own file."""
    return session.threads.get(MAIN) or next(iter(session.threads.values()), Thread(MAIN))


def summarise(session: Session, excluded_ids: frozenset[str] = frozenset()) -> FileSummary:
    """Total a transcript; calls in `excluded_ids` are counted in another file."""
    primary = primary_thread(session)
    calls = primary.calls.values()
    own_calls = (call for call in calls if not (call.is_copy or call.id in excluded_ids))
    call_times = (call.at for call in chain(own_calls, calls))
    threads = session.threads.values()
    ids = [call.id for thread in threads for call in thread.calls.in_order()]
    spent_ids = {spent.id for thread in threads for spent in thread.spendings if spent.id}
    if spent_ids:  # a spending with the id of a call is a part of that call
        ids += spent_ids.difference(ids)
    rows = _RowsBuilder(excluded_ids)
    for thread in threads:
        rows.add_thread(thread, thread is primary)
    return FileSummary(
        session=session.id,
        project=session.project,
        version=session.version,
        model=primary.model,
        first=next((at for at in call_times if at is not None), None),
        last=session.at,
        end_sent=primary.last.usage.sent if primary.last else None,
        rows=rows.build(),
        ids="\n".join(ids).encode(),
        shared="\n".join(sorted(excluded_ids)).encode(),
        title=session.title,
        misses=_miss_rows(threads, excluded_ids),
    )


def _miss_rows(threads: Iterable[Thread], excluded_ids: frozenset[str]) -> tuple[MissRow, ...]:
    groups: dict[tuple[str, str | None, Cause, str | None], list[CacheMiss]] = {}
    for thread in threads:
        for miss in find_misses(thread):
            call = thread.calls[miss.call]
            if miss.call not in excluded_ids and not call.is_copy:
                key = (day_of(miss.at), call.model, miss.cause, call.branch)
                groups.setdefault(key, []).append(miss)
    return tuple(
        MissRow(
            day,
            model,
            cause,
            len(misses),
            sum(miss.tokens for miss in misses),
            _sum_known(miss.cost for miss in misses),
            branch,
        )
        for (day, model, cause, branch), misses in groups.items()
    )


def _sum_known(costs: Iterable[float | None]) -> float | None:
    """All are of one model: its price is known for each of them, or for none."""
    known = [cost for cost in costs if cost is not None]
    return fsum(known) if known else None


class _RowBuilder:
    """Collects the calls of a row; `sent` is that of the primary thread's calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.sent: list[int] = []
        self.compactions = 0

    def build(self, key: RowKey) -> UsageRow:
        total = msgspec.structs.replace(
            add_usages([call.usage for call in self.calls]), reasoning=None
        )
        day, model, tier, service_tier, branch, _, _ = key
        return UsageRow(
            day,
            model,
            tier,
            len(self.calls),
            total,
            max(self.sent, default=None),
            self.compactions,
            service_tier,
            _sum_known(call.cost for call in self.calls),
            branch,
            _sum_known(call.stored_cost for call in self.calls),
        )


class _RowsBuilder:
    def __init__(self, without: frozenset[str]) -> None:
        self._excluded_ids = without
        self._builders: dict[RowKey, _RowBuilder] = {}
        self._spendings: list[UsageRow] = []

    def add_thread(self, thread: Thread, own: bool) -> None:
        self._add_calls(self._counted_calls(thread), own)
        if own:
            for compaction in thread.compactions:
                model, branch = compaction.model, compaction.branch
                key = (day_of(compaction.at), model, 0, None, branch, False, False)
                self._builder_for(key).compactions += 1
        for spent in thread.billed_spendings:
            if spent.id is None or spent.id not in self._excluded_ids:
                self._spendings.append(_row_of_spending(spent, thread))

    def build(self) -> tuple[UsageRow, ...]:
        return (*(group.build(key) for key, group in self._builders.items()), *self._spendings)

    def _builder_for(self, key: RowKey) -> _RowBuilder:
        return self._builders.setdefault(key, _RowBuilder())

    def _counted_calls(self, thread: Thread) -> Iterable[Call]:
        without = self._excluded_ids
        return [
            call
            for call in thread.calls.in_order()
            if not (call.is_copy or (without and call.id in without))
        ]

    def _add_calls(self, calls: Iterable[Call], own: bool) -> None:
        """Add calls to their rows; the next call is mostly in the same row."""
        group, model, service_tier, branch, day = _RowBuilder(), "", None, None, UNKNOWN_DAY
        has_cost, is_stored = False, False
        first, end, above, up_to = 0.0, 0.0, 0, 0
        for call in calls:
            at, usage = call.at or 0.0, call.usage
            sent = usage.sent
            is_same = (
                call.model == model and call.service_tier == service_tier and call.branch == branch
            )
            is_same = is_same and (call.cost is not None) == has_cost
            is_same = is_same and (call.stored_cost is not None) == is_stored
            if not (is_same and first <= at < end and above < sent <= up_to):
                if not first <= at < end:
                    day, (first, end) = day_of(call.at), day_bounds(at)
                model, service_tier, branch = call.model, call.service_tier, call.branch
                has_cost, is_stored = call.cost is not None, call.stored_cost is not None
                above, up_to = tier_bounds(model, sent)
                tier = tier_of(model, usage)
                key = day, model, tier, service_tier, branch, has_cost, is_stored
                group = self._builder_for(key)
            group.calls.append(call)
            if own:
                group.sent.append(sent)


def _row_of_spending(spent: Spent, thread: Thread) -> UsageRow:
    """Of a spending that is not one call's, the sizes of the prompts are unknown."""
    tier = 0 if spent.id is None else tier_of(spent.model, spent.usage)
    call = thread.calls.get(spent.id or "") or thread.last
    return UsageRow(
        day_of(spent.at),
        spent.model,
        tier,
        0,
        spent.usage,
        service_tier=spent.service_tier,
        client_cost=spent.cost,
        branch=call.branch if call else None,
        stored_cost=spent.stored_cost,
    )


def day_bounds(at: float) -> tuple[float, float]:
    """Return the start and end of the local day that contains a time."""
    year, month, day, *_ = time.localtime(at)
    begins = time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
    return begins, time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))
