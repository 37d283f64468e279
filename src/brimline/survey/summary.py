"""What a transcript adds up to, small enough to keep for every file there is."""

import time
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from brimline.events import MAIN, Call
from brimline.prices import tier_around, tier_of
from brimline.tracker import Session, Thread
from brimline.usage import ZERO, Usage

UNKNOWN_DAY = "unknown"

Key: TypeAlias = tuple[str, str | None, int]
"""Day, model, tier."""


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


class _Group:
    """What a row is made of: the usage of its calls, and what those of the own thread sent."""

    def __init__(self) -> None:
        self.usages: list[Usage] = []
        self.sent: list[int] = []
        self.compactions = 0

    def row(self, key: Key) -> Row:
        """The row."""
        usages = self.usages
        total = Usage(
            sum([usage.input for usage in usages]),
            sum([usage.cache_read for usage in usages]),
            sum([usage.cache_write for usage in usages]),
            sum([usage.output for usage in usages]),
        )
        return Row(*key, len(usages), total, max(self.sent, default=None), self.compactions)


class _Rows:
    """Rows while threads are added to them."""

    def __init__(self, without: frozenset[str]) -> None:
        self._without = without
        self._groups: dict[Key, _Group] = {}
        self._spent: list[Row] = []

    def thread(self, thread: Thread, own: bool) -> None:
        """Add a thread; of the one that the file is about also its peak and its compactions."""
        self._add(self._counted(thread), own)
        if own:
            for made in thread.compactions:
                self._group((day_of(made.at), made.model, 0)).compactions += 1
        if thread.spent != ZERO:
            self._spent.append(Row(day_of(thread.at), thread.model, 0, 0, thread.spent))

    def made(self) -> tuple[Row, ...]:
        """The rows."""
        return (*(group.row(key) for key, group in self._groups.items()), *self._spent)

    def _group(self, key: Key) -> _Group:
        return self._groups.setdefault(key, _Group())

    def _counted(self, thread: Thread) -> Iterable[Call]:
        calls, without = thread.calls.values(), self._without
        return [call for call in calls if call.id not in without] if without else calls

    def _add(self, calls: Iterable[Call], own: bool) -> None:
        """Add calls to their groups; a call's neighbour is mostly in the same one."""
        group, model, day = _Group(), "", UNKNOWN_DAY
        first, end, above, up_to = 0.0, 0.0, 0, 0
        for call in calls:
            at, usage = call.at or 0.0, call.usage
            sent = usage.sent
            if not (first <= at < end and above < sent <= up_to and call.model == model):
                if not first <= at < end:
                    day, (first, end) = day_of(call.at), midnights(at)
                model = call.model
                above, up_to = tier_around(model, sent)
                group = self._group((day, model, tier_of(model, usage)))
            group.usages.append(usage)
            if own:
                group.sent.append(sent)


def midnights(at: float) -> tuple[float, float]:
    """The beginning and the end of the local day of a moment."""
    year, month, day, *_ = time.localtime(at)
    begins = time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
    return begins, time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))


def day_of(at: float | None) -> str:
    """The local day of a moment, as 2026-11-15."""
    if at is None:
        return UNKNOWN_DAY
    return time.strftime("%Y-%m-%d", time.localtime(at))
