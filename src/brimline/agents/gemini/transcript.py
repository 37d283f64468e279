"""A chat's records as events."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import msgspec

from brimline.agents.gemini.records import (
    MESSAGE_KINDS,
    GeminiMessage,
    GeminiRecord,
    GeminiTokens,
    Patch,
)
from brimline.events import MAIN, AnyEvent, Call, Compacted, Rewound, SessionSeen, Trimmed
from brimline.transcripts.source import parse_time
from brimline.usage import Usage, from_subset

_record = msgspec.json.Decoder(GeminiRecord)

# What Gemini CLI puts in the model's mouth after the summary of a compression.
ACKNOWLEDGED = b'"Got it. Thanks for the additional context!"'

# What a message of the conversation is: a reply whose usage is known is a call.
OTHER, REPLY, CALL = 0, 1, 2


class GeminiCarry(msgspec.Struct):
    """What the parser remembers from one record to the next.

    `messages` is the conversation as the client would load it, in order; `calls` are all that were
    ever told: a resume empties the conversation and writes it again without their usage.
    `summary` is the digest of the last compression's summary: a resume writes it again too.
    """

    session: str | None = None
    thread: str = MAIN
    rewrites: bool = False
    summary: bytes = b""
    messages: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    calls: dict[str, None] = msgspec.field(default_factory=dict[str, None])


class ChatParser:
    """Gemini CLI's chats: lines that are written again, and the older whole documents.

    What the file's place tells is given: the session that a subagent belongs to, its thread, the
    project.
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

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        """The events of one record; the kinds in the order in which the client tries them."""
        line = _record.decode(record)
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
        return (seen, *calls)

    def _message(self, line: GeminiRecord, id: str) -> Sequence[AnyEvent] | None:
        if line.type not in MESSAGE_KINDS:
            return None
        usage = usage_of(line.tokens)
        known = self._carry
        if usage is None:
            known.messages.setdefault(id, REPLY if line.type == "gemini" else OTHER)
            return ()
        known.messages[id] = CALL
        known.calls[id] = None
        at = parse_time(line.timestamp)
        return (Call(at=at, id=id, usage=usage, model=line.model, thread=known.thread),)

    def _patched(self, patch: Patch) -> Sequence[AnyEvent]:
        titled = (SessionSeen(title=patch.summary),) if patch.summary else ()
        if patch.messages is None:
            return titled
        known, before = self._carry, self._carry.messages
        told = _calls(patch.messages, known.thread)
        calls = [call for call in told if call.id not in known.calls]
        summary = _summary_of(patch.messages) or known.summary
        compacted = summary != known.summary
        recording = () if known.rewrites else (SessionSeen(records_compactions=True),)
        known.rewrites, known.summary = True, summary
        known.calls |= dict.fromkeys(call.id for call in calls)
        known.messages = self._conversation(patch.messages)
        at = parse_time(patch.last_updated)
        if compacted:
            return (*recording, *titled, *calls, Compacted(at=at, thread=known.thread))
        return (*recording, *titled, *calls, *self._back(before, at))

    def _conversation(self, messages: Iterable[GeminiMessage]) -> dict[str, int]:
        calls = self._carry.calls
        return {
            message.id: CALL if message.id in calls else int(message.type == "gemini")
            for message in messages
        }

    def _rewound(self, to: str) -> Sequence[AnyEvent]:
        """The conversation before a message; a message that is not there empties it."""
        before = self._carry.messages
        order = list(before)
        kept = order[: order.index(to)] if to in before else ()
        self._carry.messages = {id: before[id] for id in kept}
        return self._back(before, None)

    def _back(self, before: dict[str, int], at: float | None) -> Sequence[AnyEvent]:
        """What is held now that the conversation ends with another call than before."""
        now, thread = self._carry.messages, self._carry.thread
        last = _last_call(now)
        if last == _last_call(before):
            return ()
        if last is None and REPLY in now.values():
            return (Trimmed(at=at, thread=thread),)
        return (Rewound(at=at, to=last, thread=thread),)


def usage_of(tokens: GeminiTokens | None) -> Usage | None:
    """The usage of a message; None where there is none, or only zeros: an aborted reply."""
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
    found: list[Call] = []
    for message in messages:
        usage = usage_of(message.tokens)
        if usage is not None:
            at = parse_time(message.timestamp)
            call = Call(at=at, id=message.id, usage=usage, model=message.model, thread=thread)
            found.append(call)
    return found


def _last_call(messages: dict[str, int]) -> str | None:
    return next((id for id in reversed(messages) if messages[id] == CALL), None)


def _summary_of(messages: Sequence[GeminiMessage]) -> bytes | None:
    """The digest of the summary that begins a compressed conversation; None where none does."""
    for summary, answer in pairwise(messages):
        said = bytes(answer.content)
        if answer.type == "gemini" and ACKNOWLEDGED in said and len(said) < 100:
            return blake2b(bytes(summary.content), digest_size=8).digest()
    return None
