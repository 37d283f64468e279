"""fold(session, events) -> session. Pure: what is given stays as it was."""

from collections.abc import Iterable

import msgspec

from brimline.events import (
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Edited,
    Ended,
    Rewound,
    SessionSeen,
    Spent,
    Trigger,
    Trimmed,
    WindowReported,
)
from brimline.tracker.state import Compaction, Session, Thread

SYNTHETIC = "<synthetic>"  # the model of a reply that a client made up itself: no call

# A fall below this share, and by more than this many tokens, is an unrecorded compaction.
FALL_TO, FALL_BY = 0.7, 10_000


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
        at = event.at
        if at is not None and (self._at is None or at > self._at):
            self._at = at
        if isinstance(event, Call):  # nearly all are: the others are looked at more closely
            name = event.thread
            thread = self._drafts.get(name) or self._thread(name)
            thread.call(event, not self._session.records_compactions)
            return
        match event:
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
        self._calls = thread.calls.copy()
        self._current = thread.current
        self._cycle = thread.cycle
        self._compactions = list(thread.compactions)
        self._compacting = thread.compacting
        self._window = thread.window
        self._spent = thread.spent
        self._ended = thread.ended
        self._at = thread.at
        self._edits, self._edited = thread.edits, thread.edited
        self._clears = thread.clears
        self._dropped = thread.dropped

    @property
    def _call_count(self) -> int:
        return self._dropped.count + len(self._calls)

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
            self._edits,
            self._edited,
            self._clears,
            self._dropped,
        )

    def call(self, call: Call, infer: bool) -> None:
        if call.model == SYNTHETIC:
            return
        id = call.id
        if id not in self._calls:
            if infer:
                self._infer(call)
            if self._compactions and self._current is None:
                self._first_after_compaction(call)
            self._current = id
            self._compacting = self._ended = False
        elif not call.final and self._calls[id].final:
            return  # the beginning of a reply that has ended, told again
        self._calls.put(call)
        if call.at is not None:
            self._at = call.at

    def apply(self, event: AnyEvent) -> None:
        match event:
            case Compacted():
                self._compacted(event)
            case Compacting():
                self._compacting = True
            case Cleared():
                self._clear()
            case Trimmed():
                self._trim()
            case Edited(call=call):
                self._edit(call)
            case Rewound(to=call) if call is None or call in self._calls:
                self._current = call
            case Rewound() if self._dropped.count:
                self._current = None  # perhaps a dropped call: what it held is not known any more
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

    def _clear(self) -> None:
        self._clears = (*self._clears, self._call_count)
        self._cycle += 1
        self._current = None
        self._compacting = False

    def _compacted(self, event: Compacted) -> None:
        if self._is_repeated(event):
            return
        before = self._held() if event.before is None else event.before
        self._close(event.at, event.trigger, before, event.after)

    def _is_repeated(self, event: Compacted) -> bool:
        """Whether this is the last compaction again; it may know now what is left."""
        last = self._compactions[-1] if self._compactions else None
        if last is None or last.calls != self._call_count or last.at is None or last.at != event.at:
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
        last = self._calls[self._current] if self._current is not None else self._calls.last
        made = Compaction(
            at,
            trigger,
            before,
            after,
            self._call_count,
            self._cycle,
            last.model if last else None,
            inferred,
        )
        self._compactions.append(made)
        self._cycle += 1
        self._current = None
        self._compacting = False

    def _held(self) -> int | None:
        return None if self._current is None else self._calls[self._current].usage.held

    def _trim(self) -> None:
        """What is held now is less than the last call says, by how much is not known."""
        self._current = None

    def _edit(self, call: str) -> None:
        """A fall at this call is the API's doing, also where it was told before the reason was."""
        if call == self._edited:
            return
        self._edits, self._edited = self._edits + 1, call
        last = self._compactions[-1] if self._compactions else None
        fell_here = last is not None and last.inferred and last.calls == self._call_count - 1
        if fell_here and self._current == call:
            self._compactions.pop()
            self._cycle -= 1

    def _infer(self, call: Call) -> None:
        held = self._calls.get(self._current) if self._current is not None else None
        if held is None or held.model != call.model or call.id == self._edited:
            return
        before, after = held.usage.sent, call.usage.sent
        if after < FALL_TO * before and before - after > FALL_BY:
            self._close(call.at, None, held.usage.held, after, inferred=True)

    def _first_after_compaction(self, call: Call) -> None:
        last = self._compactions[-1]
        if last.calls == self._call_count and last.cycle + 1 == self._cycle:
            self._compactions[-1] = msgspec.structs.replace(last, after=call.usage.sent)
