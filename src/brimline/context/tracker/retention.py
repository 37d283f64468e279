"""Drops old calls of a thread from memory, and keeps their totals.

A daemon follows sessions for weeks: the memory of each must not grow with its calls.
"""

from collections.abc import Iterable

import msgspec

from brimline.context.events import AnyEvent, Call, Rewound, Spent
from brimline.context.prices import sum_costs
from brimline.context.tracker.call_history import CallHistory, CallSums
from brimline.context.tracker.compaction_loop import find_compactions_in_row
from brimline.context.tracker.state import (
    LEARNED_COMPACTIONS,
    Compaction,
    DroppedCalls,
    Session,
    Thread,
    held_at_trigger,
)
from brimline.context.usage import add_usages

MAX_SENTS = 256  # sampled from the dropped calls of the present cycle
EARLIER = "earlier"  # the id of spendings that were added up


def drop_old_calls(thread: Thread, keep: int) -> Thread:
    """Return the thread with its last `keep` calls, the older ones reduced to their totals.

    It drops nothing until there are a quarter more than that, so that a thread that grows is not
    copied for each call. The current call, those after it, the last compaction and the last clear
    are always kept.
    """
    keep = max(2, keep)  # an `Edited` may still undo a compaction before the last call
    excess = len(thread.calls) - keep
    if excess <= keep // 4:
        return thread
    calls = thread.calls.in_order()
    if thread.current is not None:
        excess = min(excess, list(thread.calls).index(thread.current))
    if not excess:
        return thread
    old = calls[:excess]
    count = thread.dropped.count + excess
    compactions = [each for each in thread.compactions[:-1] if each.calls <= count]
    clears = [calls for calls in thread.clears[:-1] if calls <= count]
    return msgspec.structs.replace(
        thread,
        calls=CallHistory(calls[excess:]),
        compactions=thread.compactions[len(compactions) :],
        clears=thread.clears[len(clears) :],
        changes=tuple(each for each in thread.changes if each.calls > count),
        dropped=_add_dropped(thread, old, compactions, len(compactions) + len(clears)),
    )


def add_up_old_spendings(thread: Thread, keep: int) -> Thread:
    """Return the thread with its last `keep` spendings, the older ones added up with their cost.

    There is one sum for each model and service tier.
    """
    old = thread.billed_spendings[:-keep]
    if not old:
        return thread
    groups: dict[tuple[str | None, str | None], list[Spent]] = {}
    for each in old:
        groups.setdefault((each.model, each.service_tier), []).append(each)
    sums = [
        msgspec.structs.replace(
            spent[-1],
            id=EARLIER,
            usage=add_usages([each.usage for each in spent]),
            cost=None,
            stored_cost=sum_costs(spent),
        )
        for spent in groups.values()
    ]
    return msgspec.structs.replace(thread, spendings=(*sums, *thread.spendings[len(old) :]))


def drop_stored_calls(session: Session, stored: Session, keep: int) -> Session:
    """Return the session without old calls in the threads that are the same object in `stored`."""
    threads = {
        name: drop_old_calls(thread, keep) if stored.threads.get(name) is thread else thread
        for name, thread in session.threads.items()
    }
    if all(threads[name] is thread for name, thread in session.threads.items()):
        return session
    return msgspec.structs.replace(session, threads=threads)


def refers_to_dropped_call(session: Session, events: Iterable[AnyEvent]) -> bool:
    """Return whether some of these events may be about dropped calls.

    That is a rewind to an unknown call, or an unknown call that is older than all in memory: every
    source gives a copy the time of its call.
    """
    threads = {name: thread for name, thread in session.threads.items() if thread.dropped.count}
    oldest = {name: _oldest_at(thread) for name, thread in threads.items()}
    new: set[tuple[str, str]] = set()
    for event in events:
        if not isinstance(event, (Call, Rewound)) or event.thread not in threads:
            continue
        id = event.id if isinstance(event, Call) else event.to
        if id is None or id in threads[event.thread].calls or (event.thread, id) in new:
            continue
        is_old = event.at is not None and event.at < oldest[event.thread]
        if is_old or isinstance(event, Rewound):
            return True
        new.add((event.thread, id))
    return False


def _oldest_at(thread: Thread) -> float:
    return min((call.at for call in thread.calls.values() if call.at is not None), default=0.0)


def _add_dropped(
    thread: Thread, calls: list[Call], compactions: list[Compaction], cycle_ends: int
) -> DroppedCalls:
    """Return the totals of the dropped calls with those of the next ones."""
    dropped = thread.dropped
    sums = CallSums(dropped.count, dropped.most_sent, dropped.usage).plus(calls)
    ended = [calls for calls in thread.cycle_ends if calls <= sums.count]
    start = max((dropped.cycle_start, *ended))
    sents, stride = _sampled(dropped, calls, start)
    return DroppedCalls(
        count=sums.count,
        usage=sums.usage,
        first_at=dropped.first_at if dropped.count else calls[0].at,
        most_sent=sums.most_sent,
        cycle_ends=dropped.cycle_ends + cycle_ends,
        cycle_start=start,
        automatic=_automatic(dropped, compactions),
        loop=find_compactions_in_row(thread, before=len(compactions)),
        sents=sents,
        stride=stride,
    )


def _automatic(dropped: DroppedCalls, compactions: list[Compaction]) -> dict[str, tuple[int, ...]]:
    """Return `before` of the last automatic compactions by model: limits are learned from these."""
    automatic = dict(dropped.automatic)
    for each in compactions:
        if held := held_at_trigger(each):
            model = each.model or ""
            recent = (*automatic.get(model, ()), held)
            automatic[model] = recent[-LEARNED_COMPACTIONS:]
    return automatic


def _sampled(dropped: DroppedCalls, calls: list[Call], start: int) -> tuple[tuple[int, ...], int]:
    """Return what every nth call since `start` sent, and n, which doubles if there are too many."""
    same = start == dropped.cycle_start
    sents, stride = (list(dropped.sents), dropped.stride) if same else ([], 1)
    for place, call in enumerate(calls, dropped.count):
        if place >= start and (place - start) % stride == 0:
            sents.append(call.usage.sent)
        if len(sents) > MAX_SENTS:
            sents, stride = sents[::2], 2 * stride
    return tuple(sents), stride
