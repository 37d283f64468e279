"""A session's messages as events."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from brimline.agents.opencode.records import (
    CHATGPT_PLAN,
    OpencodeMessage,
    OpencodePart,
    OpencodeTokens,
    SessionInfo,
)
from brimline.agents.transcripts.source import parse_time
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Ended,
    SessionSeen,
    Trigger,
    Unmetered,
    compaction_thread,
)
from brimline.context.usage import Usage

UNTITLED = "New session - "  # and the time: the client's title until the model gave one
DISJOINT_SINCE = (1, 16)  # the first version that is known not to count reasoning in `output`


class TranscriptCarry(msgspec.Struct):
    """What the parser remembers: the session's title, and the compactions so far."""

    title: str | None = None
    is_reported: bool = msgspec.field(default=False, name="told")  # the name in stored carries
    compacted: list[str] = msgspec.field(default_factory=list[str])


class OpencodeParser:
    """One session of opencode or a fork of it; its events belong to `session` and `thread`."""

    def __init__(
        self,
        carry: bytes = b"",
        session: str | None = None,
        thread: str = MAIN,
        agent: str = "opencode",
    ) -> None:
        self._carry = (
            msgspec.msgpack.decode(carry, type=TranscriptCarry) if carry else TranscriptCarry()
        )
        self._session, self.thread, self._agent = session, thread, agent
        self._version: str | None = None
        self._created = 0.0
        self._branch: str | None = None
        # Compactions, by the message that asked for them.
        self._requests: dict[str, OpencodePart] = {}

    def carry(self) -> bytes:
        return msgspec.msgpack.encode(self._carry)

    def session(self, info: SessionInfo) -> Sequence[AnyEvent]:
        """Return the session's event if it is new or its title changed; not a subagent's title."""
        self._version, self._branch = info.version, info.branch
        self._created = info.time.created or 0.0
        known, title = self._carry, info.title if self.thread == MAIN else None
        if title is not None and title.startswith(UNTITLED):
            title = None
        if known.is_reported and known.title == title:
            return ()
        known.is_reported, known.title = True, title
        seen = SessionSeen(
            at=parse_time(info.time.created),
            session=self._session or info.id,
            agent=self._agent,
            project=info.directory,
            version=info.version,
            title=title,
            records_compactions=True,
        )
        return (seen,)

    def message(
        self, id: str, message: OpencodeMessage, parts: Iterable[OpencodePart] = ()
    ) -> Sequence[AnyEvent] | None:
        """Return the events of a message; None if its role is unknown."""
        if message.role == "user":
            self.asked(id, parts)
            return ()
        if message.role != "assistant":
            return None
        thread = compaction_thread(self.thread) if message.compacts else self.thread
        is_copy = (message.time.created or self._created) < self._created  # a fork copies all times
        calls = _calls(id, message, parts, thread, self._version, self._branch, is_copy)
        if self._agent != "opencode":
            # Kilo CLI 7.7.9 adds what a subagent cost to the message that started it.
            calls = [msgspec.structs.replace(call, cost=None) for call in calls]
        if message.tokens is None and message.finish is not None:
            return (Unmetered(at=parse_time(message.time.completed)),)
        return (*calls, *self._compacted(id, message, thread))

    def asked(self, id: str, parts: Iterable[OpencodePart]) -> None:
        """Remember the trigger of a compaction, if the message is one."""
        for part in parts:
            if part.type == "compaction" and part.auto is not None:
                self._requests[id] = part

    def _compacted(self, id: str, message: OpencodeMessage, thread: str) -> Sequence[AnyEvent]:
        if not message.compacted or id in self._carry.compacted:
            return ()
        self._carry.compacted.append(id)
        at = parse_time(message.time.completed or message.time.created)
        request = self._requests.pop(message.parent or "", None)
        trigger: Trigger | None = None
        if request is not None:
            trigger = "auto" if request.auto else "manual"
        overflow = request is not None and request.overflow
        return (
            Ended(at=at, thread=thread),
            Compacted(at=at, thread=self.thread, trigger=trigger, overflow=overflow),
        )


def _calls(
    id: str,
    message: OpencodeMessage,
    parts: Iterable[OpencodePart],
    thread: str,
    version: str | None,
    branch: str | None,
    is_copy: bool,
) -> list[Call]:
    """The calls of a message: one, or one for each finished step if they are known."""
    steps = [part for part in parts if part.type == "step-finish"]
    ids = [id, *(step.id or id for step in steps[1:])]
    billed = [(step.tokens, step.cost) for step in steps] or [(message.tokens, message.cost)]
    at = parse_time(message.time.completed or message.time.created)
    provider = CHATGPT_PLAN if _is_by_plan(message) else message.provider
    return [
        Call(
            at=at,
            id=own,
            usage=usage,
            model=message.model,
            thread=thread,
            provider=provider,
            cost=cost or None,  # 0: opencode has no price
            is_copy=is_copy,
            branch=branch,
        )
        for own, (tokens, cost) in zip(ids, billed, strict=True)
        if (usage := usage_of(tokens, version)) is not None
    ]


def _is_by_plan(message: OpencodeMessage) -> bool:
    """Whether a ChatGPT plan pays: opencode 1.18.18 then sets every price to 0, and nothing else.

    Its messages have the same provider as with an API key.
    """
    return message.provider == "openai" and message.cost == 0


def usage_of(tokens: OpencodeTokens | None, version: str | None = None) -> Usage | None:
    """The usage of a call; None if it is running or failed.

    `version` is the one that created the session. A reasoning of 0 can mean that the provider does
    not report it.
    """
    if tokens is None:
        return None
    included = _is_reasoning_in_output(tokens, version)
    output = tokens.output if included else tokens.output + tokens.reasoning
    if not (tokens.input or tokens.cache.read or tokens.cache.write or output):
        return None
    return Usage(
        tokens.input, tokens.cache.read, tokens.cache.write, output, tokens.reasoning or None
    )


def _is_reasoning_in_output(tokens: OpencodeTokens, version: str | None) -> bool:
    """Whether `output` includes the reasoning: in 1.2 it does, from 1.16 on it does not.

    The total of the call shows it. The version is of the client that created the session, and a
    newer one may continue it: it decides only if there is no total, or one that fits neither.
    """
    if tokens.reasoning > tokens.output:
        return False
    others = tokens.input + tokens.cache.read + tokens.cache.write + tokens.output
    if tokens.total in (others, others + tokens.reasoning):
        return tokens.total == others
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < DISJOINT_SINCE
