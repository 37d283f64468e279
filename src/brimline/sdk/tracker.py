"""The context of one agent, by the SDK objects that its author observes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from threading import RLock
from typing import Protocol, TypeVar, cast

import msgspec

from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    SessionSeen,
    Spent,
    Unmetered,
    WindowReported,
    is_compaction_thread,
)
from brimline.context.policy.levels import (
    DEFAULT_LEVELS,
    check_levels,
    figure_of,
    highest_reached,
    measure_of,
)
from brimline.context.prices import sum_costs
from brimline.context.tracker import (
    Reading,
    Session,
    Thread,
    add_up_old_spendings,
    decode_calls,
    drop_old_calls,
    encode_calls,
    fold,
    read,
)
from brimline.context.usage import ZERO, Usage
from brimline.context.window import Overrides, requested_id
from brimline.errors import (
    InvalidPolicy,
    InvalidState,
    InvalidUsage,
    UnrecognisedObject,
)
from brimline.sdk import audit
from brimline.sdk.listeners import LevelReached, OnLevel, call_listeners
from brimline.sdk.observed_stream import ObservedStream
from brimline.sdk.shapes import read_events
from brimline.sdk.stream import LOGGER, StreamMemory, Tracked, is_stream, stream_key

SOURCE = "SDK"
STATE_VERSION = 2
STORED_CALLS = 1_000  # of each thread, and as many spendings; a state has totals of older ones


class EventReceiver(Protocol):
    """Gets the events of a tracker, as `DaemonSession` does; it must neither wait nor raise."""

    def receive(self, events: Sequence[AnyEvent]) -> None: ...


StreamT = TypeVar("StreamT")


class Fired(msgspec.Struct, frozen=True):
    """The levels that a thread reached in a cycle."""

    cycle: int
    levels: frozenset[float]


class _TrackerState(msgspec.Struct, frozen=True, tag="brimline-tracker"):
    version: int
    model: str | None
    agent: str | None
    window: int | None
    limit: int | None
    levels: tuple[float, ...]
    session: Session
    fired: dict[str, Fired]
    dropped_cost: float | None = 0.0


class _Thread1(msgspec.Struct, frozen=True):
    """A thread of version 1, which had one sum of all tokens without an occupancy."""

    spent: Usage = ZERO


class _Session1(msgspec.Struct, frozen=True):
    threads: dict[str, _Thread1]


class _TrackerState1(msgspec.Struct, frozen=True, tag="brimline-tracker"):
    session: _Session1


_state = msgspec.json.Decoder(_TrackerState, dec_hook=decode_calls)
_state_1 = msgspec.json.Decoder(_TrackerState1)


class Tracker:
    """One agent's context, kept current by what is observed; one tracker per agent.

        tracker = Tracker(model="claude-opus-5-5")
        tracker.observe(client.messages.create(...))
        tracker.reading.percent

    `window` and `limit` are in tokens, and take precedence over all known values. `report_to` gets
    everything that is new, as a `DaemonSession` does. The tracker itself does no I/O and never
    waits: the same object serves synchronous and asynchronous code.
    """

    def __init__(
        self,
        model: str | None = None,
        agent: str | None = None,
        window: int | None = None,
        limit: int | None = None,
        levels: Sequence[float] = DEFAULT_LEVELS,
        report_to: EventReceiver | None = None,
    ) -> None:
        self._model = _check_name("model", model)
        self._window = _check_tokens("window", window)
        self._limit = _check_tokens("limit", limit)
        self._overrides = Overrides(
            windows={} if window is None else {"*": window},
            limits={} if limit is None else {"*": limit},
        )
        self._levels = check_levels(levels)
        self._session = Session(agent=_check_name("agent", agent))
        self._memory = StreamMemory()
        self._fired: dict[str, Fired] = {}
        self._without_window: set[str] = set()
        self._listeners: list[OnLevel] = []
        self._unread: dict[str, int] = {}
        self._lock = RLock()
        self._report_to = _check_receiver(report_to)
        self._dropped_cost: float | None = 0.0

    @property
    def reading(self) -> Reading:
        """The reading of the agent's own thread; everything unknown before the first reply."""
        return self._read(MAIN)

    @property
    def threads(self) -> Mapping[str, Reading]:
        """The reading of every thread: `main`, and subagents by their own names."""
        return {name: self._read(name) for name in self._session.threads}

    @property
    def peak(self) -> int | None:
        """The most that a call of the agent's own thread ever sent."""
        return self._thread(MAIN).peak_sent

    @property
    def cost(self) -> float | None:
        """What all calls cost in USD, by list prices.

        None before the first, and if the price of one is unknown.
        """
        threads = self._session.threads.values()
        billed = [(*each.calls.in_order(), *each.billed_spendings) for each in threads]
        return _add(self._dropped_cost, sum_costs(chain.from_iterable(billed)))

    @property
    def session(self) -> Session:
        """Everything that was folded so far: calls, compactions, windows that were reported.

        A tracker that was restored has the last 1,000 calls and spendings of a thread, and totals.
        """
        return self._session

    def observe(self, seen: object, thread: str = MAIN) -> bool:
        """Add an answer, a stream event, an SDK object or a dict; return if a reading changed.

        Observing a call again changes nothing. `thread` names a subagent if the object does not.
        Raises UnrecognisedObject or InvalidUsage, and has then changed nothing.
        """
        with self._lock:
            return self._apply(read_events(seen, self._memory, thread))

    def track(self, stream: StreamT, thread: str = MAIN) -> StreamT:
        """Wrap a stream to observe its items: iterate, enter or await it as before.

        Several streams may be read at once. A stream in which no usage was found is counted in
        `unread_streams`, and its type is logged once as a warning. Of a dict of `boto3` the stream
        in it is wrapped. An answer that is no stream is observed and returned as it is.
        """
        if (key := stream_key(stream)) is not None:
            answer = cast("Mapping[str, object]", stream)
            return cast("StreamT", {**answer, key: self.track(answer[key], thread)})
        if not is_stream(stream) and self._observe_answer(stream, thread):
            return stream
        observed = ObservedStream(type(stream), thread, self._memory.open_stream())
        observe, end = partial(self._observe_item, observed), partial(self._end_stream, observed)
        return cast("StreamT", Tracked(stream, observe, end))

    @property
    def unread_streams(self) -> Mapping[str, int]:
        """How many tracked streams had no usage, or an unreadable one at last, by their type."""
        return dict(self._unread)

    def reset(self, thread: str | None = None) -> None:
        """Start a new cycle with an empty context, as when the agent is started again.

        With a name only this thread is reset; all others keep what they hold.
        """
        with self._lock:
            if thread is None:
                self._memory = StreamMemory(self._call_count())
            names = [name for name in self._holding() if thread in (None, name)]
            self._apply([Cleared(thread=name) for name in names])

    def compacted(self, thread: str = MAIN) -> None:
        """Report a compaction: a new cycle, and an unknown occupancy until the next reply.

        The Claude Agent SDK reports its compactions itself; call this for all others.
        """
        with self._lock:
            self._apply([Compacted(trigger="manual", thread=thread)])

    def on_level(self, listener: OnLevel) -> OnLevel:
        """Call a function when a thread reaches a level: once per level and cycle.

        If two levels are reached at once, only the higher counts. `observe` calls all listeners
        after all updates, then raises the first error that one of them raised. An `async def`
        function runs as a task of the running event loop, which logs its errors; without a loop it
        runs to its end first.
        """
        self._listeners.append(listener)
        return listener

    def state(self) -> bytes:
        """Return the state as JSON, without listeners and open streams, for `from_state`.

        It has the last 1,000 calls and spendings of each thread, and totals of those before.
        """
        session, dropped = _drop_old_calls(self._session)
        state = _TrackerState(
            STATE_VERSION,
            self._model,
            self._session.agent,
            self._window,
            self._limit,
            self._levels,
            session,
            self._fired,
            self._dropped_cost if not dropped else _add(self._dropped_cost, sum_costs(dropped)),
        )
        return msgspec.json.encode(state, enc_hook=encode_calls)

    @classmethod
    def from_state(cls, state: bytes | str, report_to: EventReceiver | None = None) -> "Tracker":
        """Return a tracker that continues from a state; raises InvalidState."""
        try:
            saved = _state.decode(state)
            spent = _read_spent(state) if saved.version == 1 else ()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidState("tracker", str(error)) from error
        if saved.version not in (1, STATE_VERSION):
            raise InvalidState(
                "tracker", f"version {saved.version}, this Brimline reads up to {STATE_VERSION}"
            )
        tracker = cls(saved.model, saved.agent, saved.window, saved.limit, saved.levels, report_to)
        tracker._session, tracker._fired = fold(saved.session, spent), dict(saved.fired)
        tracker._memory = StreamMemory(tracker._call_count())
        tracker._dropped_cost = saved.dropped_cost
        return tracker

    def _observe_item(self, stream: ObservedStream, item: object) -> None:
        with self._lock:
            self._apply(stream.read(item))

    def _observe_answer(self, answer: object, thread: str) -> bool:
        """Observe a whole answer as if it was a stream of one item; False if it is none."""
        observed = ObservedStream(type(answer), thread, self._memory)
        try:
            self._observe_item(observed, answer)
        except UnrecognisedObject:
            return isinstance(answer, Mapping)  # `boto3` wants a dict back
        except InvalidUsage:
            self._end_stream(observed)
        return True

    def _end_stream(self, stream: ObservedStream) -> None:
        with self._lock:
            self._apply(stream.end())
            problem = stream.problem()
            if problem is None:
                return
            count = self._unread[stream.kind] = self._unread.get(stream.kind, 0) + 1
        if count == 1:
            LOGGER.warning("%s: not measured", problem)

    def _apply(self, events: Sequence[AnyEvent]) -> bool:
        events = [self._with_model(event) for event in self._with_restarts(events)]
        touched = {e.thread for e in events if not isinstance(e, (SessionSeen, Unmetered))}
        before = {name: self._read(name) for name in touched}
        if self._report_to is not None:
            self._report_to.receive(list(self._new_events(events)))
        self._session = fold(self._session, events)
        changed = [name for name in touched if _differs(self._read(name), before[name])]
        for name in sorted(changed):
            audit.log_update(self._session.agent, self._thread(name), self._read(name))
        self._call_listeners(sorted(name for name in touched if not is_compaction_thread(name)))
        return bool(changed)

    def _new_events(self, events: Iterable[AnyEvent]) -> Iterable[AnyEvent]:
        """All but copies of calls that are known; before a new thread's first event its window."""
        names = set(self._session.threads)
        for event in events:
            if isinstance(event, Call) and self._is_known(event):
                continue
            name = getattr(event, "thread", None)
            if self._window is not None and name is not None and name not in names:
                names.add(name)
                yield WindowReported(tokens=self._window, thread=name)
            yield event

    def _is_known(self, call: Call) -> bool:
        known = self._thread(call.thread).calls.get(call.id)
        return known is not None and (known == call or known.final > call.final)

    def _with_restarts(self, events: Iterable[AnyEvent]) -> Iterable[AnyEvent]:
        """Start a new cycle of every thread at a session with another id: the agent restarted."""
        for event in events:
            known, new = self._session.id, getattr(event, "session", None)
            if isinstance(event, SessionSeen) and None not in (known, new) and known != new:
                yield from (Cleared(thread=name) for name in self._holding())
            yield event

    def _with_model(self, event: AnyEvent) -> AnyEvent:
        """Add the requested model's name to a call of that model."""
        asked = self._model
        if not isinstance(event, Call) or asked is None or event.asked_for is not None:
            return event
        if event.model is None and event.thread == MAIN:
            return msgspec.structs.replace(event, model=asked)
        return msgspec.structs.replace(event, asked_for=requested_id(asked, event.model))

    def _call_listeners(self, names: Iterable[str]) -> None:
        reached = [level for name in names if (level := self._new_level(name)) is not None]
        call_listeners(tuple(self._listeners), reached)

    def _new_level(self, name: str) -> LevelReached | None:
        reading = self._read(name)
        before = self._fired.get(name)
        fired = before.levels if before and before.cycle == reading.cycle else frozenset[float]()
        figure = figure_of(reading, measure_of(self._levels, None))
        level = highest_reached(self._levels, figure, fired)
        if level is None:
            self._warn_of_unknown_window(name, reading)
            return None
        self._fired[name] = Fired(reading.cycle, fired | {level})
        return LevelReached(level, name, reading)

    def _warn_of_unknown_window(self, name: str, reading: Reading) -> None:
        """Log once per thread that no level can be reached, if somebody listens for levels."""
        is_unknown = reading.sent is not None and reading.percent_raw is None
        if is_unknown and self._levels and self._listeners and name not in self._without_window:
            self._without_window.add(name)
            model = self._thread(name).model or "the model"
            LOGGER.warning("the window of %s is unknown: no level can be reached", model)

    def _thread(self, name: str) -> Thread:
        return self._session.threads.get(name) or Thread(name)

    def _read(self, name: str) -> Reading:
        thread = self._thread(name)
        model = self._model if name == MAIN else None
        return read(self._session, thread, SOURCE, self._overrides, model=model)

    def _holding(self) -> list[str]:
        """The threads that hold something: an empty one starts no new cycle."""
        return [name for name, thread in self._session.threads.items() if thread.current_call]

    def _call_count(self) -> int:
        return sum(thread.call_count for thread in self._session.threads.values())


def _drop_old_calls(session: Session) -> tuple[Session, list[Call]]:
    """Return the session as it is stored, and the calls of which that has only totals."""
    threads = {
        name: add_up_old_spendings(drop_old_calls(each, STORED_CALLS), STORED_CALLS)
        for name, each in session.threads.items()
    }
    dropped: list[Call] = []
    for name, each in session.threads.items():
        count = threads[name].dropped.count - each.dropped.count
        dropped += each.calls.in_order()[:count]
    return msgspec.structs.replace(session, threads=threads), dropped


def _add(known: float | None, more: float | None) -> float | None:
    return None if known is None or more is None else known + more


def _read_spent(state: bytes | str) -> list[Spent]:
    """Return what each thread of a state of version 1 spent, as events."""
    threads = _state_1.decode(state).session.threads
    spent = {name: thread.spent for name, thread in threads.items()}
    return [Spent(usage=usage, thread=name) for name, usage in spent.items() if usage.held]


def _check_name(field: str, name: str | None) -> str | None:
    if name is not None and not isinstance(cast("object", name), str):
        raise InvalidPolicy(field, name, "a text, or None")
    return name


def _check_receiver(receiver: EventReceiver | None) -> EventReceiver | None:
    if receiver is not None and not callable(getattr(receiver, "receive", None)):
        raise InvalidPolicy("report_to", receiver, "a `DaemonSession(...)`, or None")
    return receiver


def _check_tokens(field: str, tokens: int | None) -> int | None:
    if tokens is not None and (type(tokens) is not int or tokens <= 0):
        raise InvalidPolicy(field, tokens, "an integer above 0, or None")
    return tokens


def _differs(now: Reading, before: Reading) -> bool:
    """Whether anything but the time differs."""
    return now != msgspec.structs.replace(before, at=now.at)
