"""The state of a session, folded from its events.

    fold(session, events) -> session

Pure: the session that is given stays as it was, and nothing is read or written. Every figure of a
thread that is not a property of one Usage is computed here.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from brimline.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Ended,
    Rewound,
    SessionSeen,
    Spent,
    Trigger,
    Trimmed,
    WindowReported,
)
from brimline.usage import NOTHING, Usage, percent, percent_raw, whole_percent
from brimline.windows import (
    NO_OVERRIDES,
    UNTOLD,
    ClientSettings,
    Known,
    Limit,
    Overrides,
    Window,
    limit_of,
    window_of,
)

SYNTHETIC = "<synthetic>"
"""The model of a reply that a client made up itself: no call."""

FALL_TO, FALL_BY = 0.7, 10_000
"""A fall below this part and by more than this many tokens is a compaction nobody recorded."""

LEARN_FROM = 5
"""How many of the last automatic compactions a limit is learned from."""

ReadingState: TypeAlias = Literal["measured", "streaming", "compacting", "unknown"]


class Compaction(msgspec.Struct, frozen=True):
    """A compaction: what the context held before and after; `calls` came before it.

    `cycle` is the one that it ended, `model` what the thread ran on.

    `before` is the client's word, else what the last call held; `after` is what the next call
    sent, else the client's estimate. `inferred`: no record says so, the occupancy fell.
    """

    at: float | None
    trigger: Trigger | None
    before: int | None
    after: int | None
    calls: int
    cycle: int = 0
    model: str | None = None
    inferred: bool = False


class Thread(msgspec.Struct, frozen=True):
    """One context window: its unique calls in order, its cycles, what it holds now.

    `current` is the id of the call that tells what is held now; None: unknown. `window` is what the
    client said of this thread, whatever its model.
    """

    name: str
    calls: dict[str, Call] = msgspec.field(default_factory=dict[str, Call])
    current: str | None = None
    cycle: int = 0
    compactions: tuple[Compaction, ...] = ()
    compacting: bool = False
    window: int | None = None
    spent: Usage = NOTHING
    ended: bool = False
    at: float | None = None

    @property
    def last(self) -> Call | None:
        """The last call that was made, also when what is held now is unknown."""
        if self.current is not None:
            return self.calls[self.current]
        return next(reversed(self.calls.values()), None)

    @property
    def holding(self) -> Call | None:
        """The call that tells what is held now; None before the first and after a compaction."""
        return None if self.current is None else self.calls[self.current]

    @property
    def peak_sent(self) -> int | None:
        """The most that a call of this thread ever sent."""
        return max((call.usage.sent for call in self.calls.values()), default=None)

    @property
    def total(self) -> Usage:
        """All tokens billed: each call once, and what was billed without telling its calls."""
        return sum((call.usage for call in self.calls.values()), self.spent)

    @property
    def model(self) -> str | None:
        """The model of the last call, as the user named it where that is known."""
        last = self.last
        return (last.asked_for or last.model) if last else None

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order in which they were first used."""
        return tuple(dict.fromkeys(c.model for c in self.calls.values() if c.model is not None))

    @property
    def learned(self) -> int | None:
        """The lowest point of the model's last automatic compactions: the limit is not above it."""
        model = self.last.model if self.last else None
        automatic = [c for c in self.compactions if c.trigger == "auto" and c.model == model]
        seen = [c.before for c in automatic if c.before is not None]
        return min(seen[-LEARN_FROM:], default=None)

    @property
    def most_sent(self) -> int:
        """The most that a call on the thread's present model sent: no less is its window."""
        model = self.last.model if self.last else None
        return max((c.usage.sent for c in self.calls.values() if c.model == model), default=0)


class Session(msgspec.Struct, frozen=True):
    """One conversation of an agent, its threads by name, the windows reported by model."""

    agent: str | None = None
    id: str | None = None
    project: str | None = None
    version: str | None = None
    title: str | None = None
    records_compactions: bool = False
    at: float | None = None
    threads: dict[str, Thread] = msgspec.field(default_factory=dict[str, Thread])
    windows: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class Reading(msgspec.Struct, frozen=True):
    """The state of a thread at a moment. Unknown is None, never 0."""

    sent: int | None
    held: int | None
    window: Window | None
    limit: Limit | None
    percent: float | None
    percent_raw: float | None
    percent_of_limit: float | None
    client_shows: str | None
    source: str
    at: float | None
    state: ReadingState


def fold(session: Session, events: Iterable[AnyEvent]) -> Session:
    """The session after these events."""
    draft = _Draft(session)
    for event in events:
        draft.apply(event)
    return draft.session()


class _Draft:
    """A session while events are folded in; owns its threads, never those it was made from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._threads = dict(session.threads)
        self._drafts: dict[str, _ThreadDraft] = {}
        self._at = session.at

    def session(self) -> Session:
        for name, draft in self._drafts.items():
            self._threads[name] = draft.thread()
        return msgspec.structs.replace(self._session, threads=self._threads, at=self._at)

    def apply(self, event: AnyEvent) -> None:
        if event.at is not None and (self._at is None or event.at > self._at):
            self._at = event.at
        match event:
            case Call():
                self._thread(event.thread).call(event, not self._session.records_compactions)
            case SessionSeen():
                self._seen(event)
            case WindowReported(model=str(model)):
                windows = {**self._session.windows, model: event.tokens}
                self._session = msgspec.structs.replace(self._session, windows=windows)
            case _:
                self._thread(event.thread).apply(event)

    def _seen(self, event: SessionSeen) -> None:
        told = {
            "agent": event.agent,
            "id": event.session,
            "project": event.project,
            "version": event.version,
            "title": event.title,
            "records_compactions": event.records_compactions,
        }
        news = {field: value for field, value in told.items() if value is not None}
        self._session = msgspec.structs.replace(self._session, **news)

    def _thread(self, name: str) -> "_ThreadDraft":
        draft = self._drafts.get(name)
        if draft is None:
            draft = self._drafts[name] = _ThreadDraft(self._threads.get(name) or Thread(name))
        return draft


class _ThreadDraft:
    """A thread while events are folded in."""

    def __init__(self, thread: Thread) -> None:
        self._name = thread.name
        self._calls = dict(thread.calls)
        self._current = thread.current
        self._cycle = thread.cycle
        self._compactions = list(thread.compactions)
        self._compacting = thread.compacting
        self._window = thread.window
        self._spent = thread.spent
        self._ended = thread.ended
        self._at = thread.at

    def thread(self) -> Thread:
        return Thread(
            self._name,
            self._calls,
            self._current,
            self._cycle,
            tuple(self._compactions),
            self._compacting,
            self._window,
            self._spent,
            self._ended,
            self._at,
        )

    def call(self, call: Call, infer: bool) -> None:
        if call.model == SYNTHETIC:
            return
        known = call.id in self._calls
        if not known:
            if infer:
                self._infer(call)
            self._first_after_compaction(call)
            self._current = call.id
            self._compacting = self._ended = False
        self._calls[call.id] = call
        if call.at is not None:
            self._at = call.at

    def apply(self, event: AnyEvent) -> None:
        match event:
            case Compacted():
                self._compacted(event)
            case Compacting():
                self._compacting = True
            case Cleared():
                self._cycle += 1
                self._current = None
                self._compacting = False
            case Trimmed():
                self._trim()
            case Rewound(to=call) if call is None or call in self._calls:
                self._current = call
            case WindowReported():
                self._window = event.tokens
            case Spent():
                self._spent = self._spent + event.usage
            case Ended():
                self._ended = True
            case _:
                pass
        if event.at is not None:
            self._at = event.at

    def _compacted(self, event: Compacted) -> None:
        if self._told_already(event):
            return
        before = self._held() if event.before is None else event.before
        self._close(event.at, event.trigger, before, event.after)

    def _told_already(self, event: Compacted) -> bool:
        """Whether this is the last compaction again; it may know now what is left."""
        last = self._compactions[-1] if self._compactions else None
        if last is None or last.calls != len(self._calls) or last.at is None or last.at != event.at:
            return False
        if event.after is not None:
            self._compactions[-1] = msgspec.structs.replace(last, after=event.after)
        return True

    def _close(
        self,
        at: float | None,
        trigger: Trigger | None,
        before: int | None,
        after: int | None,
        inferred: bool = False,
    ) -> None:
        model = self._calls[self._current].model if self._current is not None else self._model()
        made = Compaction(
            at, trigger, before, after, len(self._calls), self._cycle, model, inferred
        )
        self._compactions.append(made)
        self._cycle += 1
        self._current = None
        self._compacting = False

    def _model(self) -> str | None:
        return next((call.model for call in reversed(self._calls.values())), None)

    def _held(self) -> int | None:
        return None if self._current is None else self._calls[self._current].usage.held

    def _trim(self) -> None:
        """What is held now is less than the last call says, by how much is not known."""
        self._current = None

    def _infer(self, call: Call) -> None:
        held = self._calls.get(self._current) if self._current is not None else None
        if held is None or held.model != call.model:
            return
        before, after = held.usage.sent, call.usage.sent
        if after < FALL_TO * before and before - after > FALL_BY:
            self._close(call.at, None, held.usage.held, after, inferred=True)

    def _first_after_compaction(self, call: Call) -> None:
        if not self._compactions or self._current is not None:
            return
        last = self._compactions[-1]
        if last.calls == len(self._calls) and last.cycle + 1 == self._cycle:
            self._compactions[-1] = msgspec.structs.replace(last, after=call.usage.sent)


def known_of(
    session: Session, thread: Thread, settings: ClientSettings, learned: int | None
) -> Known:
    """What a thread tells about its own window and limit."""
    last = thread.last
    model = (last.asked_for or last.model) if last else None
    named = last.model if last else None
    by_model = (session.windows.get(name) for name in (model, named) if name is not None)
    reported = next((size for size in by_model if size is not None), thread.window)
    return Known(
        agent=session.agent,
        model=model,
        version=session.version,
        reported=reported,
        most_sent=thread.most_sent,
        learned=thread.learned if learned is None else learned,
        settings=settings,
    )


def read(
    session: Session,
    thread: Thread,
    source: str,
    overrides: Overrides = NO_OVERRIDES,
    settings: ClientSettings = UNTOLD,
    learned: int | None = None,
) -> Reading:
    """The reading of a thread: its figures against its window and its limit."""
    known = known_of(session, thread, settings, learned)
    window = window_of(known, overrides)
    limit = limit_of(known, window, overrides)
    now = thread.holding
    sent = now.usage.sent if now else None
    held = now.usage.held if now else None
    size = window.tokens if window else None
    return Reading(
        sent=sent,
        held=held,
        window=window,
        limit=limit,
        percent=percent(sent, size),
        percent_raw=percent_raw(sent, size),
        percent_of_limit=percent_raw(held, limit.tokens if limit else None),
        client_shows=client_shows(session.agent, held, sent, window),
        source=source,
        at=thread.at,
        state=_state(thread, now),
    )


def _state(thread: Thread, now: Call | None) -> ReadingState:
    if thread.compacting:
        return "compacting"
    if now is None:
        return "unknown"
    return "measured" if now.final else "streaming"


BESIDE = {"codex": 12_000, "claude": 20_000}
"""What a client takes off the window before it divides: its own prompt, the room for a reply."""


def client_shows(
    agent: str | None, held: int | None, sent: int | None, window: Window | None
) -> str | None:
    """What the client's own display says at this moment, where it divides other numbers than we."""
    if window is None or held is None or sent is None:
        return None
    whole = window.tokens - BESIDE.get(agent or "", window.tokens)
    if whole <= 0:
        return None
    if agent == "codex":
        left = whole - max(0, held - BESIDE["codex"])
        return f"{whole_percent(max(0, left), whole)}% left"
    return f"{whole_percent(sent, whole)}% of {whole:,} in the footer"


def total(threads: Iterable[Thread]) -> tuple[int, Usage]:
    """The unique calls and all tokens of many threads: a call in two files counts once."""
    calls: dict[str, Usage] = {}
    spent = NOTHING
    for thread in threads:
        for id, call in thread.calls.items():
            if call.final or id not in calls:
                calls[id] = call.usage
        spent = spent + thread.spent
    return len(calls), sum(calls.values(), spent)


def main_of(session: Session) -> Thread | None:
    """The session's own thread."""
    return session.threads.get(MAIN)
