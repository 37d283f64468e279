"""The events of a session's file."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from brimline.agents.copilot.records import (
    BESIDE,
    COMPACTION_CALL,
    COMPACTION_TRIGGERS,
    OVERFLOW_TRIGGER,
    STORED_KINDS,
    CompactionComplete,
    CompactionStart,
    CopilotCall,
    CopilotEvent,
    Message,
    SessionData,
    UsageRecord,
    WorkingFolder,
)
from brimline.agents.transcripts.source import parse_branch, parse_time
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Ended,
    SessionSeen,
    Spent,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.files.foreign_json import JsonDecoder

Events: TypeAlias = Sequence[AnyEvent]

_event = JsonDecoder(CopilotEvent)
_session = JsonDecoder(SessionData)
_folder = JsonDecoder(WorkingFolder)
_usage = JsonDecoder(UsageRecord)
_message = JsonDecoder(Message)
_start = JsonDecoder(CompactionStart)
_complete = JsonDecoder(CompactionComplete)


class CopilotCarry(msgspec.Struct, omit_defaults=True):
    """What the parser remembers between records.

    `compacting` are the threads with a compaction in the background, and what the client compared
    with its limit when it began; `calls` is each thread's last call, `windows` the last reported
    sizes by model: prompt and reply.
    """

    session: str | None = None
    project: str | None = None
    branch: str | None = None
    effort: str | None = None
    calls: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    compacting: dict[str, int | None] = msgspec.field(default_factory=dict[str, int | None])
    windows: dict[str, tuple[int, int | None]] = msgspec.field(
        default_factory=dict[str, tuple[int, int | None]]
    )


class EventsParser:
    """Turns the lines of events.jsonl into events; `session` is that of the file's path."""

    thread = MAIN  # of the last line

    def __init__(self, carry: bytes = b"", session: str | None = None) -> None:
        known = msgspec.json.decode(carry, type=CopilotCarry) if carry else None
        self._memory = known or CopilotCarry(session=session)
        self._handlers: dict[str, Callable[[CopilotEvent], Events]] = {
            "session.start": self._session,
            "session.resume": self._session,
            "session.context_changed": self._moved,
            "session.usage_record": self._used,
            "assistant.message": self._replied,
            "session.compaction_start": self._compaction_started,
            "session.compaction_complete": self._compaction_ended,
            "session.truncation": self._truncated,
            "session.context_cleared": self._cleared,
            "subagent.completed": self._ended,
            "subagent.failed": self._ended,
        }

    def carry(self) -> bytes:
        return msgspec.json.encode(self._memory)

    def feed(self, record: bytes) -> Events | None:
        event = _event.decode(record)
        self.thread = event.thread
        if handle := self._handlers.get(event.type):
            return handle(event)
        return () if event.type in STORED_KINDS else None

    def _session(self, event: CopilotEvent) -> Events:
        data, memory = _session.decode(event.data), self._memory
        memory.session = memory.session or data.session_id
        memory.project, memory.branch = data.context.cwd, parse_branch(data.context.branch)
        memory.effort = data.reasoning_effort or memory.effort
        return (
            SessionSeen(
                at=parse_time(event.timestamp),
                session=memory.session,
                agent="copilot",
                project=memory.project,
                version=data.copilot_version,
                records_compactions=True,
                effort=memory.effort,
            ),
        )

    def _moved(self, event: CopilotEvent) -> Events:
        folder, memory = _folder.decode(event.data), self._memory
        memory.branch = parse_branch(folder.branch)
        if folder.cwd in (None, memory.project):
            return ()
        memory.project = folder.cwd
        return (SessionSeen(at=parse_time(event.timestamp), project=folder.cwd),)

    def _used(self, event: CopilotEvent) -> Events:
        used, memory = _usage.decode(event.data).usage, self._memory
        at, thread, usage = parse_time(event.timestamp), event.thread, used.usage()
        id = used.api_call_id or used.accounting.usage_id
        if id is None or used.interaction_type == COMPACTION_CALL or not usage.held:
            return ()
        if used.interaction_type in BESIDE:
            return (Spent(at=at, id=id, usage=usage, model=used.model, thread=thread),)
        memory.calls[thread] = id
        call = Call(
            at=at,
            id=id,
            usage=usage,
            model=used.model,
            thread=thread,
            branch=memory.branch,
            # It compacts in the background and calls the model meanwhile.
            can_compact=thread not in memory.compacting,
        )
        return (*self._sizes(event, used), call)

    def _sizes(self, event: CopilotEvent, used: CopilotCall) -> Events:
        """Report the effort and the sizes of a model if they differ from the last ones."""
        memory, at = self._memory, parse_time(event.timestamp)
        events: list[AnyEvent] = []
        if event.agent_id is None and used.reasoning_effort not in (None, memory.effort):
            memory.effort = used.reasoning_effort
            events.append(SessionSeen(at=at, effort=used.reasoning_effort))
        if not used.max_prompt_tokens or used.model is None:
            return events
        sizes = used.max_prompt_tokens, used.max_output_tokens or None
        if memory.windows.get(used.model) != sizes:
            memory.windows[used.model] = sizes
            window, max_output = sizes
            events.append(
                WindowReported(at=at, tokens=window, model=used.model, max_output=max_output)
            )
        return events

    def _replied(self, event: CopilotEvent) -> Events:
        """Report a reply without the usage record that precedes it."""
        id = _message.decode(event.data).api_call_id
        if id is not None and id == self._memory.calls.get(event.thread):
            return ()
        return (Unmetered(at=parse_time(event.timestamp)),)

    def _compaction_started(self, event: CopilotEvent) -> Events:
        data = _start.decode(event.data)
        self._memory.compacting[event.thread] = data.current_tokens
        trigger = COMPACTION_TRIGGERS.get(data.trigger)
        return (Compacting(at=parse_time(event.timestamp), thread=event.thread, trigger=trigger),)

    def _compaction_ended(self, event: CopilotEvent) -> Events:
        """Its cost counts also if it was not applied."""
        data, at, thread = _complete.decode(event.data), parse_time(event.timestamp), event.thread
        spent = data.compaction_tokens_used
        usage = spent.usage() if spent else None
        before = self._memory.compacting.pop(thread, None)
        events: list[AnyEvent] = []
        if spent is not None and usage is not None and usage.held:
            id = data.compaction_attempt_id
            events.append(Spent(at=at, id=id, usage=usage, model=spent.model, thread=thread))
        if data.is_applied:
            compacted = Compacted(
                at=at,
                thread=thread,
                trigger=COMPACTION_TRIGGERS.get(data.trigger),
                before=before,
                overflow=data.trigger == OVERFLOW_TRIGGER,
            )
            events.append(compacted)
        return events

    def _truncated(self, event: CopilotEvent) -> Events:
        return (Trimmed(at=parse_time(event.timestamp), thread=event.thread),)

    def _cleared(self, event: CopilotEvent) -> Events:
        return (Cleared(at=parse_time(event.timestamp), thread=event.thread),)

    def _ended(self, event: CopilotEvent) -> Events:
        if event.agent_id is None:
            return ()
        return (Ended(at=parse_time(event.timestamp), thread=event.agent_id),)
