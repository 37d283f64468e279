"""A chat's records as events.

Each call is reported twice in the main chat: first as a response with the provider's id, then, if
it is one of the conversation, as a reply. A response without a reply wrote a summary, or did a
chore: it was billed, but holds nothing. A subagent's calls are in its own chat, if it has one: that
which updates the memory has none.
"""

import os
from collections.abc import Sequence

import msgspec

from brimline.agents.qwen.paths import subagent_path
from brimline.agents.qwen.records import (
    CHAT_KINDS,
    SYSTEM_KINDS,
    ApiResponse,
    Compression,
    QwenRecord,
    QwenUsage,
    Title,
    UiTelemetry,
)
from brimline.agents.transcripts.source import parse_branch, parse_time
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Spent,
    Unmetered,
    WindowReported,
)
from brimline.files.foreign_json import JsonDecoder

API_RESPONSE = "qwen-code.api_response"
OVERFLOW = "payload_overflow"  # the API had refused the request

_record = JsonDecoder(QwenRecord)
_telemetry = JsonDecoder(UiTelemetry)
_compression = JsonDecoder(Compression)
_title = JsonDecoder(Title)


class _Response(msgspec.Struct):
    """A response of which no reply is known yet."""

    id: str
    at: float | None
    model: str | None
    tokens: QwenUsage


class QwenCarry(msgspec.Struct):
    """What the parser remembers between records.

    `responses` are those after the last reply; `windows` the last one by model; `turns` the last
    call before each prompt, by the record that it follows, to which a rewind goes back.
    """

    version: str | None = None
    is_seen: bool = False
    title: str | None = None
    last_call: str | None = None
    responses: list[_Response] = []
    windows: dict[str, int] = {}
    turns: dict[str, str | None] = {}


class QwenChatParser:
    """Qwen Code's chats.

    `thread` and `path` are those of the file, `model` is that of a subagent's replies.
    """

    def __init__(
        self, carry: bytes = b"", thread: str = MAIN, path: str = "", model: str | None = None
    ) -> None:
        self._carry = msgspec.msgpack.decode(carry, type=QwenCarry) if carry else QwenCarry()
        self._path = path
        self._model = model
        self.thread = thread

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _record.decode(record)
        if line.agent_id is not None and self.thread == MAIN:
            self.thread = line.agent_id
        match line.type:
            case "assistant":
                return (*self._seen(line), *self._reply(line))
            case "user":
                if line.parent_uuid is not None:
                    self._carry.turns[line.parent_uuid] = self._carry.last_call
                return self._seen(line)
            case "system":
                return self._system(line)
            case _:
                return self._seen(line) if line.type in CHAT_KINDS else None

    def _seen(self, line: QwenRecord) -> Sequence[AnyEvent]:
        known = self._carry
        if known.is_seen and known.version == line.version:
            return ()
        known.is_seen, known.version = True, line.version
        seen = SessionSeen(
            session=line.session_id,
            agent="qwen",
            project=line.cwd,
            version=line.version,
            records_compactions=True,
        )
        return (seen,)

    def _system(self, line: QwenRecord) -> Sequence[AnyEvent] | None:
        match line.subtype:
            case "ui_telemetry":
                event = _telemetry.decode(line.system_payload).event
                if event.event == API_RESPONSE and not self._has_chat(event.subagent_id):
                    self._respond(line, event)
                return ()
            case "chat_compression":
                return self._compressed(line)
            case "rewind":
                known = self._carry
                known.last_call = known.turns.get(line.parent_uuid or "")
                back = Rewound(at=parse_time(line.timestamp), to=known.last_call)
                return (*self._spend_responses(), back)
            case "custom_title":
                title = _title.decode(line.system_payload).title
                if not title or title == self._carry.title:
                    return ()
                self._carry.title = title
                return (SessionSeen(title=title),)
            case _:
                return () if line.subtype in SYSTEM_KINDS else None

    def _has_chat(self, subagent: str | None) -> bool:
        return subagent is not None and os.path.exists(subagent_path(self._path, subagent))

    def _respond(self, line: QwenRecord, event: ApiResponse) -> None:
        id, at = event.response_id or line.uuid, parse_time(line.timestamp)
        if id is not None and event.tokens.usage is not None:
            self._carry.responses.append(_Response(id, at, event.model, event.tokens))

    def _reply(self, line: QwenRecord) -> Sequence[AnyEvent]:
        tokens = line.usage_metadata
        usage = tokens.usage if tokens is not None else None
        if tokens is None or usage is None:
            # A subagent's reply with several parts is several records; one of them has the usage.
            is_whole = self.thread == MAIN and tokens is None
            return (Unmetered(at=parse_time(line.timestamp)),) if is_whole else ()
        responses = self._carry.responses
        own = next((each for each in reversed(responses) if each.tokens == tokens), None)
        if own is not None:
            responses.remove(own)
        id = own.id if own is not None else line.uuid
        if id is None:
            return ()
        self._carry.last_call = id
        model = line.model or self._model
        call = Call(
            at=parse_time(line.timestamp),
            id=id,
            usage=usage,
            model=model,
            thread=self.thread,
            branch=parse_branch(line.git_branch),
        )
        return (*self._spend_responses(), *self._window(line, model), call)

    def _window(self, line: QwenRecord, model: str | None) -> Sequence[AnyEvent]:
        tokens, known = line.context_window_size, self._carry.windows
        if not tokens or model is None or known.get(model) == tokens:
            return ()
        known[model] = tokens
        return (WindowReported(tokens=tokens, model=model, thread=self.thread),)

    def _spend_responses(self) -> list[Spent]:
        """Return what the responses without a reply cost."""
        responses, self._carry.responses = self._carry.responses, []
        return [
            Spent(at=each.at, id=each.id, usage=usage, model=each.model, thread=self.thread)
            for each in responses
            if (usage := each.tokens.usage) is not None
        ]

    def _compressed(self, line: QwenRecord) -> Sequence[AnyEvent]:
        reason = _compression.decode(line.system_payload).info.reason
        compacted = Compacted(
            at=parse_time(line.timestamp),
            thread=self.thread,
            trigger="manual" if reason == "manual" else "auto",
            overflow=reason == OVERFLOW,
        )
        return (*self._spend_responses(), compacted)
