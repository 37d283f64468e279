"""The events that sources yield, in the order of the client that wrote them."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from brimline.context.client_report import Quotas
from brimline.context.usage import Tokens, Usage

MAIN = "main"  # the session's own thread; others are subagents

_COMPACTION = "compaction"
API_COMPACTION = "compaction"  # the kind of an `Edited` that summarised the prompt
_SUMMARY_PREFIX = "acompact-"  # Claude Code's name of a thread that only writes a summary

Trigger: TypeAlias = Literal["auto", "manual"]
TRIGGERS: Mapping[str | None, Trigger] = {"auto": "auto", "manual": "manual"}  # by a client's words


def compaction_thread(thread: str = MAIN) -> str:
    """The thread for the calls that compact another thread: they are billed, but hold nothing."""
    return _COMPACTION if thread == MAIN else f"{thread}/{_COMPACTION}"


def is_compaction_thread(thread: str) -> bool:
    is_own = thread == _COMPACTION or thread.endswith(f"/{_COMPACTION}")
    return is_own or thread.startswith(_SUMMARY_PREFIX)


class Event(msgspec.Struct, frozen=True, tag=True, kw_only=True, gc=False):
    """The base of events; `at` is the client's time in seconds since the epoch, if known."""

    at: float | None = None


class SessionSeen(Event, frozen=True):
    """Properties of a session; None leaves a property as it was.

    `records_compactions` is whether the source reports compactions; if not, a fall of the occupancy
    is the only sign. `effort` is how much the model is to think, in the client's words. `quotas`
    are those of the account that it uses. `is_fork`: it continues a copy of another session.
    `is_resumed`: the client was started again, and continues it.
    """

    session: str | None = None
    agent: str | None = None
    project: str | None = None
    version: str | None = None
    title: str | None = None
    records_compactions: bool | None = None
    effort: str | None = None
    quotas: Quotas | None = None
    is_fork: bool | None = None
    is_resumed: bool | None = None


class Call(Event, frozen=True):
    """One model call's usage. A later copy with the same id replaces an earlier one.

    `final` is False while the reply still streams and its output count may grow; such a copy never
    replaces a final one. `asked_for` is the model as the user named it, if that says more than the
    provider's answer. `provider` is the client's name of who served it: windows differ by that.
    `service_tier` is None for the standard one. `cost` is in USD, by the client. `is_compacted`:
    its prompt begins with a summary, as that of every call after it; None if unknown. `is_copy`:
    the session is a fork, and has copied the call of its original under another id. `branch` is the
    project's git branch at that time; None if unknown, and on a detached head. `can_compact`: the
    client was able to compact before it. `stored_cost` is what the store has as its cost in USD,
    with its other passes, and `stored_miss_cost` what a cache miss added to that.
    """

    id: str
    usage: Usage
    model: str | None = None
    asked_for: str | None = None
    thread: str = MAIN
    final: bool = True
    provider: str | None = None
    service_tier: str | None = None
    cost: float | None = None
    is_compacted: bool | None = None
    is_copy: bool = False
    branch: str | None = None
    can_compact: bool = True
    stored_cost: float | None = None
    stored_miss_cost: float | None = None


class Added(Event, frozen=True):
    """What the client adds to what the last call held, before it compares that with its limit.

    By its own estimates: `pending` came in after that call, `earlier_reasoning` is that of earlier
    turns, which the call's usage does not contain. The next call ends both.
    """

    pending: Tokens = 0
    earlier_reasoning: Tokens = 0
    thread: str = MAIN


class Spent(Event, frozen=True):
    """Tokens billed without an occupancy: of passes and calls other than the thread's own.

    With an `id` they are those of one call: a later copy of the same id, model and service tier
    replaces an earlier one. Without it they are of an unknown number of calls. `service_tier` is
    None for the standard one. `cost` is in USD, by the client; `stored_cost` is what the store has.
    """

    usage: Usage
    model: str | None = None
    thread: str = MAIN
    id: str | None = None
    service_tier: str | None = None
    cost: float | None = None
    stored_cost: float | None = None


class Unmetered(Event, frozen=True):
    """A reply of the model without a usage that we know: perhaps the client's format changed."""


class Compacting(Event, frozen=True):
    """The client starts to compact."""

    thread: str = MAIN
    trigger: Trigger | None = None


class Compacted(Event, frozen=True):
    """The client compacted; the occupancy is unknown until the next call.

    `before` is what the context held by the client's own figure, `after` its estimate of what is
    left. Events with the same time are the same compaction. `overflow`: the API had refused a
    request that was too long, so that this is no sign of where the client compacts. `summary_call`
    is the thread's last call, if it turned out to have written the summary: it compacted the
    thread, and is no part of it. `is_late`: calls after it may have come before it, so that its
    time tells its place; if these showed no fall there, it is not added.
    """

    thread: str = MAIN
    trigger: Trigger | None = None
    before: Tokens | None = None
    after: Tokens | None = None
    overflow: bool = False
    summary_call: str | None = None
    is_late: bool = False


class Trimmed(Event, frozen=True):
    """A part of the context was dropped without a summary: a fall follows that is no compaction."""

    thread: str = MAIN


class Edited(Event, frozen=True):
    """The provider's API itself cut or summarised the prompt of a call; may come before the call.

    A compaction begins a new cycle before the call; a cut only if much less was sent. `tokens` is
    how much was removed, if the API reports it.
    """

    call: str
    kind: str
    tokens: Tokens | None = None
    thread: str = MAIN


class Cleared(Event, frozen=True):
    """The conversation was cleared within the same session."""

    thread: str = MAIN


class Rewound(Event, frozen=True):
    """The conversation went back to what call `to` held, or to the empty start if None."""

    to: str | None
    thread: str = MAIN


class WindowReported(Event, frozen=True):
    """The client reported the window's size, of one model or of the thread's own.

    `is_evidence`: it did not report the size of this model, but other records of it prove it.
    `max_output` is the model's longest reply and `input_limit` its longest prompt, if the client
    reported them too.
    """

    tokens: Tokens
    model: str | None = None
    thread: str = MAIN
    is_evidence: bool = False
    max_output: Tokens | None = None
    input_limit: Tokens | None = None


class Ended(Event, frozen=True):
    """The thread ended."""

    thread: str = MAIN


AnyEvent: TypeAlias = (
    SessionSeen
    | Call
    | Added
    | Spent
    | Unmetered
    | Compacting
    | Compacted
    | Trimmed
    | Edited
    | Cleared
    | Rewound
    | WindowReported
    | Ended
)
