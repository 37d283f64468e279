"""A chat's records as events."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from brimline.agents.gemini.records import (
    MESSAGE_KINDS,
    GeminiMessage,
    GeminiRecord,
    GeminiTokens,
    Patch,
)
from brimline.agents.transcripts.source import parse_time
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Trimmed,
    Unmetered,
)
from brimline.context.usage import Usage, from_subset
from brimline.files.foreign_json import JsonDecoder

_record = JsonDecoder(GeminiRecord)

# The reply that Gemini CLI adds after the summary of a compression.
ACKNOWLEDGED = b'"Got it. Thanks for the additional context!"'

# How the client's own messages in the user's name begin: results, environment, summary.
NO_PROMPT = (b"functionResponse", b"<session_context>", b"<state_snapshot>")
NO_PROMPT_BYTES = 64

# What a message of the conversation is: a reply whose usage is known is a call.
OTHER, REPLY, CALL, PROMPT = 0, 1, 2, 3


class GeminiCarry(msgspec.Struct):
    """What the parser remembers between records.

    `messages` is the conversation as the client would load it, in order; `calls` are all calls so
    far: a resume empties the conversation and writes it again without their usage. `summary` is the
    digest of the last compression's summary: a resume writes it again too.
    """

    session: str | None = None
    thread: str = MAIN
    rewrites: bool = False
    summary: bytes = b""
    messages: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    calls: dict[str, None] = msgspec.field(default_factory=dict[str, None])


class ChatParser:
    """Gemini CLI's chats: lines that are written again, and the older whole documents.

    `session`, `thread` and `project` are those of the file's path.
    """

    def __init__(
        self,
        carry: bytes = b"",
        session: str | None = None,
        thread: str = MAIN,
        project: str | None = None,
    ) -> None:
        known = msgspec.msgpack.decode(carry, type=GeminiCarry) if carry else None
        self._carry = known or GeminiCarry(session=session, thread=thread)
        self._project = project

    @property
    def thread(self) -> str:
        """The thread by the path, or that of the header so far."""
        return self._carry.thread

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _record.decode(record)
        # in the order in which the client tries them
        if line.rewind_to is not None:
            return self._rewound(line.rewind_to)
        if line.id is not None:
            return self._message(line, line.id)
        if line.patch is not None:
            return self._patched(line.patch)
        if line.session_id is not None and line.project_hash is not None:
            return self._header(line)
        return None

    def _header(self, line: GeminiRecord) -> Sequence[AnyEvent]:
        known = self._carry
        thread = known.thread
        if line.kind == "subagent" and thread == MAIN:
            thread = line.session_id or MAIN
        messages = line.messages or ()
        calls = _calls(messages, thread)
        known.session, known.thread = known.session or line.session_id, thread
        known.calls |= dict.fromkeys(call.id for call in calls)
        known.messages |= self._conversation(messages)
        folder = line.directories[0] if line.directories else None
        seen = SessionSeen(
            at=parse_time(line.start_time),
            session=known.session,
            agent="gemini",
            project=self._project or folder,
            title=line.summary,
            records_compactions=known.rewrites,
        )
        return (seen, *calls, *_unmetered(_after_last_call(messages)))

    def _message(self, line: GeminiRecord, id: str) -> Sequence[AnyEvent] | None:
        if line.type not in MESSAGE_KINDS:
            return None
        usage = usage_of(line.tokens)
        known = self._carry
        if usage is None:
            known.messages.setdefault(id, _kind_of(line))
            return tuple(_unmetered([line]))
        known.messages[id] = CALL
        known.calls[id] = None
        call = Call(
            at=parse_time(line.timestamp),
            id=id,
            usage=usage,
            model=line.model,
            thread=known.thread,
            can_compact=self._can_compact(),
        )
        return (call,)

    def _can_compact(self) -> bool:
        """Whether the client can cut its history, which it does before a later prompt only.

        Within the first prompt 0.61 went from 525,378 to 548,651 tokens in 12 calls, without a cut.
        """
        prompts = (kind == PROMPT for kind in self._carry.messages.values())
        return any(prompts) and any(prompts)

    def _patched(self, patch: Patch) -> Sequence[AnyEvent]:
        titled = (SessionSeen(title=patch.summary),) if patch.summary else ()
        if patch.messages is None:
            return titled
        known, before = self._carry, self._carry.messages
        calls = [c for c in _calls(patch.messages, known.thread) if c.id not in known.calls]
        place = find_summary(patch.messages)
        summary = known.summary if place is None else digest_summary(patch.messages[place])
        compacted = summary != known.summary
        recording = () if known.rewrites else (SessionSeen(records_compactions=True),)
        known.rewrites, known.summary = True, summary
        known.calls |= dict.fromkeys(call.id for call in calls)
        known.messages = self._conversation(patch.messages)
        at = parse_time(patch.last_updated)
        if compacted:
            return (*recording, *titled, *calls, Compacted(at=at, thread=known.thread))
        return (*recording, *titled, *calls, *self._went_back(before, at))

    def _conversation(self, messages: Iterable[GeminiMessage]) -> dict[str, int]:
        calls = self._carry.calls
        return {
            message.id: CALL if message.id in calls else _kind_of(message) for message in messages
        }

    def _rewound(self, to: str) -> Sequence[AnyEvent]:
        """Drop a message and all after it; an unknown message drops all."""
        before = self._carry.messages
        ids = list(before)
        left = ids[: ids.index(to)] if to in before else ()
        self._carry.messages = {id: before[id] for id in left}
        return self._went_back(before, None)

    def _went_back(self, before: dict[str, int], at: float | None) -> Sequence[AnyEvent]:
        """The events of a conversation that ends with another call than before."""
        now, thread = self._carry.messages, self._carry.thread
        last = _last_call(now)
        if last == _last_call(before):
            return ()
        if last is None and REPLY in now.values():
            return (Trimmed(at=at, thread=thread),)
        return (Rewound(at=at, to=last, thread=thread),)


def _kind_of(message: GeminiMessage | GeminiRecord) -> int:
    """What a message without a usage of its own is."""
    if message.type == "gemini":
        return REPLY
    start = bytes(message.content)[:NO_PROMPT_BYTES]
    is_prompt = message.type == "user" and not any(mark in start for mark in NO_PROMPT)
    return PROMPT if is_prompt else OTHER


def usage_of(tokens: GeminiTokens | None) -> Usage | None:
    """The usage of a message; None if it has none or only zeros, as an aborted reply."""
    if tokens is None or not (tokens.input or tokens.output or tokens.thoughts or tokens.tool):
        return None
    return from_subset(
        tokens.input + tokens.tool,
        tokens.cached,
        0,
        tokens.output + tokens.thoughts,
        tokens.thoughts,
    )


def _calls(messages: Iterable[GeminiMessage], thread: str) -> list[Call]:
    calls: list[Call] = []
    prompts = 0
    for message in messages:
        prompts += _kind_of(message) == PROMPT
        if (usage := usage_of(message.tokens)) is not None:
            call = Call(
                at=parse_time(message.timestamp),
                id=message.id,
                usage=usage,
                model=message.model,
                thread=thread,
                can_compact=prompts > 1,
            )
            calls.append(call)
    return calls


def _unmetered(replies: Iterable[GeminiMessage | GeminiRecord]) -> list[Unmetered]:
    """The replies without tokens; a resume writes them so, but never on lines of their own."""
    return [
        Unmetered(at=parse_time(reply.timestamp))
        for reply in replies
        if reply.type == "gemini" and reply.tokens is None
    ]


def _after_last_call(messages: Sequence[GeminiMessage]) -> Sequence[GeminiMessage]:
    metered = (place for place, m in enumerate(messages, 1) if usage_of(m.tokens) is not None)
    return messages[max(metered, default=0) :]


def _last_call(messages: dict[str, int]) -> str | None:
    return next((id for id in reversed(messages) if messages[id] == CALL), None)


def find_summary(messages: Sequence[GeminiMessage]) -> int | None:
    """The place of the summary in a compressed conversation, or None."""
    for place, answer in enumerate(messages[1:]):
        text = bytes(answer.content)
        if answer.type == "gemini" and ACKNOWLEDGED in text and len(text) < 100:
            return place
    return None


def digest_summary(summary: GeminiMessage) -> bytes:
    return blake2b(bytes(summary.content), digest_size=8).digest()
