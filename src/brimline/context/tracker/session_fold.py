"""fold(session, events) -> session. Pure: the arguments are not changed."""

from collections.abc import Iterable

import msgspec

from brimline.context.events import (
    API_COMPACTION,
    Added,
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
    Unmetered,
    WindowReported,
    compaction_thread,
)
from brimline.context.tracker.call_history import CallHistory
from brimline.context.tracker.state import (
    ChangeKind,
    Compaction,
    PromptChange,
    Session,
    Thread,
    spending_key,
)
from brimline.redaction import redact, truncate_words

SYNTHETIC = "<synthetic>"  # the model of a reply that the client wrote itself: no call

# A fall below this share, and by more than this many tokens, is an unrecorded compaction.
FALL_TO, FALL_BY = 0.7, 10_000

# The same for a client that records its compactions, if the call after the fall confirms it: plan
# mode clears the context of Claude Code, and plugins of opencode prune it, without a record.
LARGE_FALL_TO, LARGE_FALL_BY = 0.6, 20_000

MAX_TITLE_CHARS = 80
MAX_READ_CHARS = 4_000  # of a text that becomes a title: a prompt may be a whole file


def fold(session: Session, events: Iterable[AnyEvent]) -> Session:
    """Return the session after these events; the given one does not change."""
    draft = _Draft(session)
    for event in events:
        draft.apply(event)
    return draft.session()


class _Draft:
    """A session while events are folded in; it copies a thread before it changes it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._threads = dict(session.threads)
        self._drafts: dict[str, _ThreadDraft] = {}
        self._at = session.at
        self._unmetered = session.unmetered

    def session(self) -> Session:
        for name, draft in self._drafts.items():
            self._threads[name] = draft.thread()
        return msgspec.structs.replace(
            self._session, threads=self._threads, at=self._at, unmetered=self._unmetered
        )

    def apply(self, event: AnyEvent) -> None:
        at = event.at
        if at is not None and (self._at is None or at > self._at):
            self._at = at
        if isinstance(event, Call):  # nearly all are
            name = event.thread
            thread = self._drafts.get(name) or self._thread(name)
            thread.call(event, self._session.records_compactions)
            self._unmetered = 0
            if event.is_copy and not self._session.is_fork:
                self._session = msgspec.structs.replace(self._session, is_fork=True)
            return
        match event:
            case SessionSeen():
                self._seen(event)
            case Unmetered():
                self._unmetered += 1
            case WindowReported(model=str(model)):
                self._set_sizes(event, model)
            case Compacted(summary_call=str(id)) if call := self._thread(event.thread).pop_last(id):
                summary = msgspec.structs.replace(call, thread=compaction_thread(event.thread))
                self._thread(summary.thread).call(summary, is_recorded=True)
                self._thread(event.thread).apply(event, self._session.version)
            case Compacted():
                self._thread(event.thread).apply(event, self._session.version)
            case _:
                self._thread(event.thread).apply(event)

    def _seen(self, event: SessionSeen) -> None:
        fields = {
            "agent": event.agent,
            "id": event.session,
            "project": event.project,
            "version": event.version,
            "title": shorten_title(event.title) if event.title else None,
            "records_compactions": event.records_compactions,
            "effort": event.effort,
            "quotas": event.quotas,
            "is_fork": event.is_fork,
        }
        if event.is_resumed or _differs(self._session.version, event.version):
            self._note_change("resume")
        if _differs(self._session.effort, event.effort):
            self._note_change("effort switch")
        known = {field: value for field, value in fields.items() if value is not None}
        self._session = msgspec.structs.replace(self._session, **known)

    def _set_sizes(self, event: WindowReported, model: str) -> None:
        sizes = {
            "observed_windows" if event.is_evidence else "windows": event.tokens,
            "max_outputs": event.max_output,
            "input_limits": event.input_limit,
        }
        tables = {
            field: {**getattr(self._session, field), model: size}
            for field, size in sizes.items()
            if size is not None
        }
        self._session = msgspec.structs.replace(self._session, **tables)

    def _note_change(self, kind: ChangeKind) -> None:
        for name in {*self._threads, *self._drafts}:
            self._thread(name).note_change(kind)

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
        self._spendings = thread.spendings
        self._ended = thread.ended
        self._at = thread.at
        self._edits = thread.edits
        self._edited: str | None = thread.edited
        self._clears = thread.clears
        self._dropped = thread.dropped
        self._sustained = dict(thread.sustained)
        self._fell_from = thread.fell_from
        self._changes = thread.changes
        self._pending, self._earlier_reasoning = thread.pending, thread.earlier_reasoning
        self._title = thread.title

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
            self._spendings,
            self._ended,
            self._at,
            self._edits,
            self._edited,
            self._clears,
            self._dropped,
            dict(self._sustained),
            self._fell_from,
            self._changes,
            self._pending,
            self._earlier_reasoning,
            self._title,
        )

    def call(self, call: Call, is_recorded: bool) -> None:
        """Add a call; `is_recorded`: the client records its compactions."""
        if call.model == SYNTHETIC:
            return
        id = call.id
        if id not in self._calls:
            if not self._add_reported_compaction(call):
                self._infer_compaction(call, is_recorded)
            if self._current is not None:
                self._note_sustained(self._calls[self._current], call)
            elif self._compactions:
                self._set_after(call)
            self._current = id
            self._compacting = self._ended = False
            self._pending = self._earlier_reasoning = 0
        elif not call.final and self._calls[id].final:
            return  # a copy of the streaming call: the final one is known
        self._calls.put(call)
        if call.at is not None:
            self._at = call.at

    def note_change(self, kind: ChangeKind, to: str | None = None) -> None:
        change = PromptChange(self._call_count, kind, to)
        if self._calls and self._changes[-1:] != (change,):  # else it is reported again
            self._changes = (*self._changes, change)

    def pop_last(self, id: str) -> Call | None:
        """Remove the last call, if it has this id and is the current one."""
        last = self._calls.last
        if last is None or last.id != id or self._current != id:
            return None
        self._calls = CallHistory(self._calls.in_order()[:-1])
        self._current = self._calls.last.id if self._calls.last else None
        return last

    def apply(self, event: AnyEvent, version: str | None = None) -> None:
        """Fold an event; `version` is that of the client that compacted."""
        match event:
            case Compacted() if event.is_late and self._has_later_call(event):
                self._confirm_compaction(event)
                return
            case Compacted():
                self._compacted(event, version)
            case Compacting():
                self._compacting = True
            case Cleared():
                self._clears = (*self._clears, self._call_count)
                self._start_cycle()
            case Trimmed():
                self._current = None  # less is held than the last call reports, how much is unknown
                self.note_change("context edit")
            case Edited():
                self._edit(event)
            case Rewound(to=call) if call is None or call in self._calls:
                if call != self._current:
                    self.note_change("rewind", call)
                self._current, self._fell_from = call, None
                self._pending = self._earlier_reasoning = 0
            case Rewound() if self._dropped.count:
                self._current = None  # perhaps a dropped call: what it held is no longer known
                self.note_change("context edit")
            case WindowReported():
                self._window = event.tokens
            case Added():
                self._pending = event.pending
                self._earlier_reasoning = event.earlier_reasoning
            case Spent():
                self._spend(event)
            case Ended():
                self._ended = True
            case _:
                pass
        if event.at is not None:
            self._at = event.at

    def _spend(self, event: Spent) -> None:
        key = spending_key(event)
        same_id = (each for each in self._spendings if each.id == event.id)  # faster than the key
        before = next((each for each in same_id if spending_key(each) == key), None)
        if before is not None and event.id is None:
            known = before.cost if before.stored_cost is None else before.stored_cost
            cost = None if known is None or event.cost is None else known + event.cost
            event = msgspec.structs.replace(event, usage=before.usage + event.usage, cost=cost)
        if before is not None:
            self._spendings = tuple(each for each in self._spendings if each is not before)
        self._spendings = (*self._spendings, event)

    def _note_sustained(self, before: Call, call: Call) -> None:
        """Note what two calls in a row sent at least: a lower limit would have been between them.

        Some clients can compact only at certain calls, for example before a prompt.
        """
        sent, model = min(before.usage.sent, call.usage.sent), call.model or ""
        is_same = before.model == call.model and call.can_compact
        if is_same and sent > self._sustained.get(model, 0):
            self._sustained[model] = sent

    def _start_cycle(self) -> None:
        self._cycle += 1
        self._current = None
        self._pending = self._earlier_reasoning = 0
        self._compacting = False

    def _compacted(self, event: Compacted, version: str | None) -> None:
        last = self._compactions[-1] if self._compactions else None
        if last and last.calls == self._call_count and last.at is not None and last.at == event.at:
            if event.after is not None:  # the same compaction again
                self._compactions[-1] = msgspec.structs.replace(last, after=event.after)
            return
        if self._clears and self._clears[-1] == self._call_count:
            # A hook reported this end of a cycle as a clear, before its record.
            self._clears, self._cycle = self._clears[:-1], self._cycle - 1
        before = event.before
        if before is None and self._current is not None:
            before = self._calls[self._current].usage.held
        self._add_compaction(
            event.at,
            event.trigger,
            before,
            event.after,
            overflow=event.overflow,
            version=version,
        )

    def _has_later_call(self, event: Compacted) -> bool:
        last = self._calls.last
        if last is None or last.at is None or event.at is None:
            return False
        return last.at > event.at

    def _confirm_compaction(self, event: Compacted) -> None:
        """Set the time of the compaction between the calls around it, which they showed already."""
        assert event.at is not None
        calls = self._dropped.count + sum(
            1 for call in self._calls.in_order() if (call.at or 0.0) <= event.at
        )
        for place, each in enumerate(self._compactions):
            if each.calls == calls:
                self._compactions[place] = msgspec.structs.replace(
                    each, at=event.at, trigger=event.trigger, inferred=False
                )

    def _add_compaction(
        self,
        at: float | None,
        trigger: Trigger | None,
        before: int | None,
        after: int | None,
        inferred: bool = False,
        overflow: bool = False,
        calls: int | None = None,
        version: str | None = None,
    ) -> None:
        """Add a compaction after all calls so far, or after the first `calls`."""
        last = self._calls[self._current] if self._current is not None else self._calls.last
        model, branch = (last.model, last.branch) if last else (None, None)
        if not (inferred or overflow or trigger == "manual"):
            self._sustained.pop(model or "", None)  # the client enforces its limit after all
        calls = self._call_count if calls is None else calls
        cycle = self._cycle
        self._compactions.append(
            Compaction(
                at,
                trigger,
                before,
                after,
                calls,
                cycle,
                model,
                inferred,
                overflow,
                branch,
                version,
            )
        )
        self._start_cycle()

    def _edit(self, event: Edited) -> None:
        """The API itself cut or summarised the prompt of a call.

        A compaction begins a new cycle, and so does a fall that would be one.
        """
        call, is_known = event.call, event.call in self._calls
        if call == self._edited or (is_known and self._calls.last != self._calls[call]):
            return  # it is reported again
        self._edits += 1
        self._edited = call
        before = self._call_count - is_known
        self._changes = (*self._changes, PromptChange(before, "context edit"))
        self._fell_from = None
        last = self._compactions[-1] if self._compactions else None
        if last is not None and last.inferred and last.calls == before and self._current == call:
            self._compactions[-1] = msgspec.structs.replace(last, inferred=False)
        elif event.kind == API_COMPACTION and before:
            self._add_api_compaction(event, is_known)

    def _add_api_compaction(self, event: Edited, is_known: bool) -> None:
        """Add the API's compaction before its call, which is the last one if it is known."""
        call = self._calls.last if is_known else None
        previous = self._calls.call_at(len(self._calls) - 1 - is_known)
        held = previous.usage.held if previous else None
        after = call.usage.sent if call else None
        current = self._current if is_known else None
        calls = self._call_count - is_known
        self._add_compaction(event.at, None, held, after, calls=calls)
        self._current = current

    def _add_reported_compaction(self, call: Call) -> bool:
        """Add a compaction before the first call that reports one; return whether it is that."""
        current = self._calls.get(self._current) if self._current is not None else None
        if not call.is_compacted or current is None or current.is_compacted is not False:
            return False
        self._add_compaction(call.at, None, current.usage.held, call.usage.sent)
        return True

    def _infer_compaction(self, call: Call, is_recorded: bool) -> None:
        fell_from, self._fell_from = self._fell_from, None
        current = self._calls.get(self._current) if self._current is not None else None
        if current is None or current.model != call.model:
            return
        before, after, is_edited = current.usage.sent, call.usage.sent, call.id == self._edited
        if not is_recorded or is_edited:
            if after < FALL_TO * before and before - after > FALL_BY:
                held = current.usage.held
                self._add_compaction(call.at, None, held, after, inferred=not is_edited)
        elif fell_from is not None and _is_large_fall(fell_from, after):
            calls = self._call_count - 1  # it was before the call that fell
            self._add_compaction(current.at, None, fell_from, before, inferred=True, calls=calls)
        elif _is_large_fall(before, after):
            self._fell_from = current.usage.held

    def _set_after(self, call: Call) -> None:
        """Set what is left after a compaction, if this is the first call after it."""
        last = self._compactions[-1]
        if last.calls == self._call_count and last.cycle + 1 == self._cycle:
            self._compactions[-1] = msgspec.structs.replace(last, after=call.usage.sent)


def _is_large_fall(before: int, after: int) -> bool:
    return after < LARGE_FALL_TO * before and before - after > LARGE_FALL_BY


def shorten_title(text: str) -> str | None:
    """Return a text as one short line, redacted and without control characters; None if empty."""
    redacted = redact(truncate_words(text, MAX_READ_CHARS))
    shown = "".join(c if c.isprintable() else " " for c in redacted)
    line = " ".join(shown.split())
    if len(line) > MAX_TITLE_CHARS:
        cut = line[: MAX_TITLE_CHARS - 1]
        words = line[:MAX_TITLE_CHARS].rpartition(" ")[0]
        line = (words if len(words) > MAX_TITLE_CHARS // 2 else cut).rstrip() + "…"
    return line or None


def _differs(before: str | None, now: str | None) -> bool:
    return before is not None and now is not None and now != before
