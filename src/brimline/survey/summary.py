"""What a transcript adds up to, small enough to keep for every file there is."""

import time

import msgspec

from brimline.events import MAIN, Call
from brimline.prices import tier_of
from brimline.tracker import Session, Thread
from brimline.usage import NOTHING, Usage

UNKNOWN_DAY = "unknown"
_QUARTER = 900
"""Every time zone's offset is a multiple of this: all of it lies in one day."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """The calls of one day on one model that are billed at one tier of its price.

    `peak_sent` and `compactions` are of the thread that the file is about.
    """

    day: str
    model: str | None
    tier: int
    calls: int
    usage: Usage
    peak_sent: int | None = None
    compactions: int = 0


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """One transcript: whose it is, its figures, and its tokens by day and model.

    `end_sent` is of the thread that the file is about. `ids` are the ids of its calls, a line each;
    `shared` are those that an older file has already, and that are in no row.
    """

    session: str | None
    project: str | None
    version: str | None
    model: str | None
    first: float | None
    last: float | None
    end_sent: int | None
    rows: tuple[Row, ...]
    ids: bytes
    shared: bytes = b""


def own_thread(session: Session) -> Thread:
    """The thread that a transcript is about: the main one, in a subagent's file the subagent's."""
    return session.threads.get(MAIN) or next(iter(session.threads.values()), Thread(MAIN))


def summarise(session: Session, without: frozenset[str] = frozenset()) -> Summary:
    """The summary of a transcript; calls that another file has are left out of its rows."""
    own = own_thread(session)
    ids = [id for thread in session.threads.values() for id in thread.calls]
    rows = _Rows(without)
    for thread in session.threads.values():
        rows.thread(thread, thread is own)
    return Summary(
        session=session.id,
        project=session.project,
        version=session.version,
        model=own.model,
        first=next((c.at for c in own.calls.values() if c.at is not None), None),
        last=session.at,
        end_sent=own.last.usage.sent if own.last else None,
        rows=rows.made(),
        ids="\n".join(ids).encode(),
        shared="\n".join(sorted(without)).encode(),
    )


class _Rows:
    """Rows while calls are added to them."""

    def __init__(self, without: frozenset[str]) -> None:
        self._without = without
        self._sums: dict[tuple[str, str | None, int], list[int]] = {}

    def thread(self, thread: Thread, own: bool) -> None:
        for call in thread.calls.values():
            if call.id not in self._without:
                self._call(call, own)
        if thread.spent != NOTHING:
            self._add(self._row(day_of(thread.at), thread.model, 0), thread.spent)
        if own:
            calls = list(thread.calls.values())
            for made in thread.compactions:
                model = calls[made.calls - 1].model if made.calls else thread.model
                self._row(day_of(made.at), model, 0)[6] += 1

    def _call(self, call: Call, own: bool) -> None:
        usage = call.usage
        into = self._row(day_of(call.at), call.model, tier_of(call.model, usage))
        into[0] += 1
        self._add(into, usage)
        if own and usage.sent > into[5]:
            into[5] = usage.sent

    def _row(self, day: str, model: str | None, tier: int) -> list[int]:
        into = self._sums.get((day, model, tier))
        if into is None:
            into = self._sums[day, model, tier] = [0, 0, 0, 0, 0, -1, 0]
        return into

    def _add(self, into: list[int], usage: Usage) -> None:
        into[1] += usage.input
        into[2] += usage.cache_read
        into[3] += usage.cache_write
        into[4] += usage.output

    def made(self) -> tuple[Row, ...]:
        return tuple(
            Row(day, model, tier, calls, Usage(*counts), None if peak < 0 else peak, compactions)
            for (day, model, tier), (calls, *counts, peak, compactions) in self._sums.items()
        )


_days: dict[int, str] = {}


def day_of(at: float | None) -> str:
    """The local day of a moment, as 2026-11-15."""
    if at is None:
        return UNKNOWN_DAY
    quarter = int(at // _QUARTER)
    day = _days.get(quarter)
    if day is None:
        day = _days[quarter] = time.strftime("%Y-%m-%d", time.localtime(at))
    return day
