"""The calls of a thread, as an immutable mapping to which a call is added in constant time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import msgspec

from brimline.context.events import Call
from brimline.context.usage import ZERO, Usage, add_usages


class CallSums(msgspec.Struct, frozen=True):
    """The number of calls, the most sent by model in the order of first use, and all usage."""

    count: int = 0
    most_sent: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    usage: Usage = ZERO

    def plus(self, calls: Sequence[Call]) -> "CallSums":
        most_sent = dict(self.most_sent)
        for call in calls:
            sent, model = call.usage.sent, call.model or ""
            if sent > most_sent.get(model, -1):
                most_sent[model] = sent
        usage = add_usages([self.usage, *(call.usage for call in calls)])
        return CallSums(self.count + len(calls), most_sent, usage)


class _CallLog:
    """Calls that several histories share; it only grows, so that each keeps its first ones."""

    __slots__ = ("calls", "lock", "places", "sums")

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        self.calls = list(calls)
        self.places = {call.id: place for place, call in enumerate(self.calls)}
        self.sums = CallSums()
        self.lock = Lock()

    def append(self, call: Call, count: int) -> bool:
        """Append a call behind the first `count`; False if another one is there already."""
        with self.lock:
            if len(self.calls) != count:
                return False
            self.places[call.id] = count
            self.calls.append(call)
            return True

    def sums_of(self, count: int) -> CallSums:
        """Return the sums of the first `count` calls; only those since the last time are added."""
        sums = self.sums if self.sums.count <= count else CallSums()
        if sums.count < count:
            sums = sums.plus(self.calls[sums.count : count])
            if count > self.sums.count:
                self.sums = sums
        return sums


class CallHistory(Mapping[str, Call]):
    """The unique calls of a thread by id, in the order of their first copies.

    The last call, which is the one that copies replace, is held here; those before it are in a log
    that newer versions of the same history share.
    """

    __slots__ = ("_count", "_last", "_log")

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        unique = list({call.id: call for call in calls}.values())
        self._last = unique.pop() if unique else None
        self._log = _CallLog(unique)
        self._count = len(unique)

    def __len__(self) -> int:
        return self._count + (self._last is not None)

    def __iter__(self) -> Iterator[str]:
        return (call.id for call in self.in_order())

    def __contains__(self, id: object) -> bool:
        if self._last is not None and self._last.id == id:
            return True
        return isinstance(id, str) and self._log.places.get(id, self._count) < self._count

    def __getitem__(self, id: str) -> Call:
        if self._last is not None and self._last.id == id:
            return self._last
        place = self._log.places[id]
        if place >= self._count:
            raise KeyError(id)
        return self._log.calls[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CallHistory):
            return isinstance(other, Mapping) and dict(self) == other
        if len(self) != len(other) or self._last != other._last:
            return False
        return self._log is other._log or self.in_order() == other.in_order()

    __hash__ = None

    def __reduce__(self) -> tuple[type["CallHistory"], tuple[list[Call]]]:
        return CallHistory, (self.in_order(),)

    @property
    def last(self) -> Call | None:
        return self._last

    def call_at(self, place: int) -> Call | None:
        """Return the call at a place; None behind the last."""
        if place < self._count:
            return self._log.calls[place]
        return self._last if place == self._count else None

    def in_order(self, start: int = 0) -> list[Call]:
        """Return the calls from a place on; faster than `values`."""
        calls = self._log.calls[start : self._count]
        if self._last is not None and start <= self._count:
            calls.append(self._last)
        return calls

    @property
    def sums(self) -> CallSums:
        sums = self._log.sums_of(self._count)
        return sums if self._last is None else sums.plus([self._last])

    def with_call(self, call: Call) -> "CallHistory":
        """Return the history with a call; a call of the same id is replaced in its place."""
        changed = self.copy()
        changed.put(call)
        return changed

    def put(self, call: Call) -> None:
        """Add a call in place; only for a copy that no one else has."""
        last = self._last
        if last is None or last.id == call.id:
            self._last = call
        elif call.id in self:
            calls = self.in_order()
            calls[self._log.places[call.id]] = call
            self._log = _CallLog(calls[:-1])
        else:
            if not self._log.append(last, self._count):
                self._log = _CallLog([*self._log.calls[: self._count], last])
            self._count += 1
            self._last = call

    def copy(self) -> "CallHistory":
        """Return a history of its own with the same calls, in constant time."""
        copied: CallHistory = CallHistory.__new__(CallHistory)
        copied._log, copied._count, copied._last = self._log, self._count, self._last
        return copied


def encode_calls(value: object) -> object:
    """`enc_hook` of msgspec: encode a history as an object, the calls by id."""
    if isinstance(value, CallHistory):
        return dict(value)
    raise NotImplementedError(type(value))


def decode_calls(kind: type, value: Any) -> object:
    """`dec_hook` of msgspec: decode a history."""
    if kind is not CallHistory:
        raise NotImplementedError(kind)
    return CallHistory(msgspec.convert(value, dict[str, Call]).values())
