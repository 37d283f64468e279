"""What the fake model billed: one record per answered call, kept in memory and as JSON lines."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

Api = Literal["anthropic-messages", "openai-responses", "openai-chat", "gemini"]
Thread = Literal["main", "subagent", "compaction", "router", "title"]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one call in disjoint buckets; `reasoning` is a part of `output`."""

    input: int
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class BilledBlock(msgspec.Struct, frozen=True):
    """One block of a prompt, as the client sent it, and its tokens."""

    tokens: int
    content: Any


class Billed(msgspec.Struct, frozen=True, kw_only=True, tag="billed", tag_field="record"):
    """One answered model call; `raw` is the usage object exactly as the client got it last.

    An answer that took several passes is billed at its last one. A compaction that the API itself
    made has its own record, before its answer's, if the API reports its usage.
    """

    sequence: int
    api: Api
    id: str
    model: str
    usage: Usage
    raw: dict[str, Any]
    thread: Thread = "main"
    agent_id: str | None = None  # the subagent's or child session's own id, if the client sends one
    # The session id that the client sent with the request, if it sends one.
    session_id: str | None = None
    blocks: tuple[BilledBlock, ...] = ()  # of the prompt, if the scenario lists them


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused", tag_field="record"):
    """One model call that was answered with an HTTP error and cost nothing."""

    after: int  # the sequence number of the last call billed before this one
    api: Api
    status: int
    thread: Thread = "main"


Record = Billed | Refused


class BillingLog:
    """Records in the order of answering; appended to a file of JSON lines if one is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._records: list[Record] = []
        self._last = 0
        if path is not None and path.exists():
            self._last = max((one.sequence for one in read_billed(path)), default=0)

    @property
    def billed(self) -> tuple[Billed, ...]:
        """Every call that this log billed."""
        with self._lock:
            return tuple(one for one in self._records if isinstance(one, Billed))

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Every call that was answered with an error."""
        with self._lock:
            return tuple(one for one in self._records if isinstance(one, Refused))

    def next_sequence(self) -> int:
        """Reserve the next sequence number; it continues from the last one in the file."""
        with self._lock:
            self._last += 1
            return self._last

    @property
    def last_sequence(self) -> int:
        """The sequence number given out last, 0 before the first."""
        with self._lock:
            return self._last

    def add(self, record: Record) -> None:
        """Keep one record and append it to the file."""
        with self._lock:
            self._records.append(record)
            if self._path is not None:
                with self._path.open("ab") as file:
                    file.write(msgspec.json.encode(record) + b"\n")


def read_records(path: Path) -> tuple[Record, ...]:
    """Every record of a billing log file; empty if there is no file."""
    if not path.exists():
        return ()
    decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)
    return tuple(decoder.decode(line) for line in path.read_bytes().splitlines() if line)


def read_billed(path: Path) -> tuple[Billed, ...]:
    """The billed calls of a billing log file, by sequence number."""
    return in_sequence(one for one in read_records(path) if isinstance(one, Billed))


def in_sequence(records: Iterable[Billed]) -> tuple[Billed, ...]:
    """The same records, by sequence number."""
    return tuple(sorted(records, key=lambda one: one.sequence))
