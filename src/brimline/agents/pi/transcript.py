"""The events of a session: a tree of entries, of which the branch of the last one counts."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from brimline.agents.pi.records import QUIET, PiEntry, PiMessage, PiTokens
from brimline.agents.transcripts.source import parse_time
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Spent,
    Trimmed,
    Unmetered,
)
from brimline.files.foreign_json import JsonDecoder

Events: TypeAlias = Sequence[AnyEvent]

_entry = JsonDecoder(PiEntry)
_tokens = JsonDecoder(PiTokens | None)


class Tree(msgspec.Struct, omit_defaults=True):
    """Which call was the last on an entry's branch.

    `calls` has their ids, `nodes` for each entry the place in `calls` after the last of its branch.
    `cuts` are the entries between a compaction and the next call: they hold less than that call.
    """

    leaf: str | None = None
    last: int = 0
    cut: bool = False
    calls: list[str] = msgspec.field(default_factory=list[str])
    nodes: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    cuts: set[str] = msgspec.field(default_factory=set[str])

    def enter(self, entry: PiEntry) -> Events:
        """Go to an entry; the conversation went back if its parent is not the last entry.

        An unknown parent counts as the last entry: its record was broken.
        """
        parent = entry.parent_id
        if isinstance(parent, msgspec.UnsetType) or parent == self.leaf:
            return ()
        if parent is not None and parent not in self.nodes:
            return ()
        self.last = 0 if parent is None else self.nodes[parent]
        self.cut = parent in self.cuts
        at = parse_time(entry.timestamp)
        back = Rewound(at=at, to=self.calls[self.last - 1] if self.last else None)
        return (back, Trimmed(at=at)) if self.cut else (back,)

    def note(self, event: AnyEvent) -> None:
        """Remember a call or a compaction of the entry."""
        if isinstance(event, Call):
            self.calls.append(event.id)
            self.last, self.cut = len(self.calls), False
        elif isinstance(event, Compacted):
            self.cut = True

    def keep(self, entry: PiEntry) -> None:
        """Make the entry the leaf."""
        if entry.id is None:
            return
        self.leaf = entry.id
        self.nodes[entry.id] = self.last
        if self.cut:
            self.cuts.add(entry.id)


class PiCarry(msgspec.Struct, omit_defaults=True):
    """What the parser remembers between entries; `failed` is the last reply without tokens."""

    session: str | None = None
    failed: str | None = None
    model: str | None = None
    entries: int = 0
    tree: Tree = msgspec.field(default_factory=Tree)


class PiSessionParser:
    """Turns the entries of a session into events."""

    thread = MAIN

    def __init__(self, carry: bytes = b"") -> None:
        self._memory = msgspec.json.decode(carry, type=PiCarry) if carry else PiCarry()

    def carry(self) -> bytes:
        return msgspec.json.encode(self._memory)

    def feed(self, record: bytes) -> Events | None:
        entry = _entry.decode(record)
        if entry.type == "session":
            return self._session(entry)
        handle = _HANDLERS.get(entry.type)
        own_events = handle(entry, self._memory) if handle else ()
        events = (*self._memory.tree.enter(entry), *own_events)
        self._remember(entry, own_events)
        return events if events or handle or entry.type in QUIET else None

    def _session(self, entry: PiEntry) -> Events:
        if self._memory.session is not None:
            return ()
        self._memory.session = entry.id
        return (
            SessionSeen(
                at=parse_time(entry.timestamp),
                session=entry.id,
                agent="pi",
                project=entry.cwd,
                records_compactions=True,
            ),
        )

    def _remember(self, entry: PiEntry, events: Events) -> None:
        memory = self._memory
        memory.entries += 1
        if isinstance(entry.message, PiMessage) and entry.message.failed:
            memory.failed = entry.id
        for event in events:
            memory.tree.note(event)
            if isinstance(event, Call):
                memory.model = event.model
        memory.tree.keep(entry)


def _message(entry: PiEntry, memory: PiCarry) -> Events:
    message = entry.message
    if not isinstance(message, PiMessage) or message.role != "assistant":
        return ()
    if message.usage is None:
        return (Unmetered(at=parse_time(entry.timestamp)),)
    if message.usage.blank:
        return ()
    place = f"{memory.session}#{entry.id or memory.entries}"
    usage = message.usage.usage()
    return (
        Call(
            at=parse_time(entry.timestamp),
            id=message.call or place,
            usage=usage,
            model=message.model,
            provider=message.provider,
            cost=message.usage.dollars,
        ),
    )


def _spent(entry: PiEntry, memory: PiCarry) -> Events:
    """The usage of a summary or of a warmed cache, which is in no context."""
    tokens = _tokens.decode(entry.usage)
    if tokens is None or tokens.blank:
        return ()
    model = entry.model or memory.model
    at = parse_time(entry.timestamp)
    copied_id = f"{entry.id}@{at}" if entry.id else None  # the same in a fork's file
    return (Spent(at=at, usage=tokens.usage(), model=model, id=copied_id, cost=tokens.dollars),)


def _compacted(entry: PiEntry, memory: PiCarry) -> Events:
    done = Compacted(at=parse_time(entry.timestamp), before=entry.tokens_before)
    # In the middle of a turn Pi 0.87.1 makes two calls for it; the usage is their sum.
    return (*_spent(entry, memory), done)


def _edited(entry: PiEntry, memory: PiCarry) -> Events:
    """Something was removed; before a retry it is the failed reply, which held nothing."""
    if entry.target_id is not None and entry.target_id == memory.failed:
        return ()
    return (Trimmed(at=parse_time(entry.timestamp)),)


def _titled(entry: PiEntry, memory: PiCarry) -> Events:
    title = entry.name or entry.title
    return (SessionSeen(at=parse_time(entry.timestamp), title=title),) if title else ()


_HANDLERS: dict[str, Callable[[PiEntry, PiCarry], Events]] = {
    "message": _message,
    "compaction": _compacted,
    "branch_summary": _spent,
    "usage": _spent,
    "context_edit": _edited,
    "session_info": _titled,
    "title": _titled,
}
