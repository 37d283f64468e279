"""What a source can say. A source is an iterator of these, in the producer's order."""

from typing import Literal, TypeAlias

import msgspec

from brimline.usage import Tokens, Usage

MAIN = "main"
"""The name of a session's own thread."""

_SUMMING = "compaction"

Trigger: TypeAlias = Literal["auto", "manual"]


def compaction_thread(thread: str = MAIN) -> str:
    """The thread that counts the calls by which another is compacted: billed, but nothing held."""
    return _SUMMING if thread == MAIN else f"{thread}/{_SUMMING}"


def is_compaction_thread(thread: str) -> bool:
    """Whether a thread is such a one."""
    return thread == _SUMMING or thread.endswith(f"/{_SUMMING}")


class Event(msgspec.Struct, frozen=True, tag=True, kw_only=True, gc=False):
    """The base: `at` is the producer's time in seconds since the epoch, where it is known."""

    at: float | None = None


class SessionSeen(Event, frozen=True):
    """What is known about a session; a field that is None says nothing new.

    `records_compactions` tells whether the source would say so if a compaction happened; where it
    would not, a fall of the occupancy is the only sign.
    """

    session: str | None = None
    agent: str | None = None
    project: str | None = None
    version: str | None = None
    title: str | None = None
    records_compactions: bool | None = None


class Call(Event, frozen=True):
    """One model call's usage. A later copy with the same id replaces an earlier one.

    `final` is False while the reply still streams: its output count is not the last. Such a copy
    never replaces one that is final.
    `asked_for` is the model as the user named it, where that says more than the provider's answer.
    """

    id: str
    usage: Usage
    model: str | None = None
    asked_for: str | None = None
    thread: str = MAIN
    final: bool = True


class Spent(Event, frozen=True):
    """Tokens billed over an unknown number of calls: a total, and no occupancy."""

    usage: Usage
    model: str | None = None
    thread: str = MAIN


class Compacting(Event, frozen=True):
    """The client has begun to compact."""

    thread: str = MAIN
    trigger: Trigger | None = None


class Compacted(Event, frozen=True):
    """The client compacted; the occupancy is unknown until the next call.

    `before` is what the client says the context held, `after` what it estimates that is left. Told
    again with the same time, it is the same compaction.
    """

    thread: str = MAIN
    trigger: Trigger | None = None
    before: Tokens | None = None
    after: Tokens | None = None


class Trimmed(Event, frozen=True):
    """A part of the context was dropped without a summary: no compaction, but a fall follows."""

    thread: str = MAIN


class Edited(Event, frozen=True):
    """The provider's API itself cut or summed up the prompt of a call, before or after it is told.

    The fall that comes of it is no client's compaction. `tokens` is how much was taken out, where
    the API says so.
    """

    call: str
    kind: str
    tokens: Tokens | None = None
    thread: str = MAIN


class Cleared(Event, frozen=True):
    """The conversation began anew in the same session."""

    thread: str = MAIN


class Rewound(Event, frozen=True):
    """The conversation went back: what is held now is what call `to` held, None the empty start."""

    to: str | None
    thread: str = MAIN


class WindowReported(Event, frozen=True):
    """The client said how large the window is; for one model, or for the thread's own."""

    tokens: Tokens
    model: str | None = None
    thread: str = MAIN


class Ended(Event, frozen=True):
    """The thread is over."""

    thread: str = MAIN


AnyEvent: TypeAlias = (
    SessionSeen
    | Call
    | Spent
    | Compacting
    | Compacted
    | Trimmed
    | Edited
    | Cleared
    | Rewound
    | WindowReported
    | Ended
)
