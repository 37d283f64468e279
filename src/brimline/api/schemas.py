"""Request and response bodies of the HTTP API, except sessions."""

from typing import Annotated

import msgspec

from brimline.agents.observations import Pane
from brimline.context.events import AnyEvent
from brimline.daemon.uplink.protocol import UplinkStatus
from brimline.store.problems import StoreProblem
from brimline.store.rows import HandoffRow

MAX_EVENTS = 1_000  # in one request
MAX_ID_CHARS, MAX_AGENT_CHARS = 200, 100


class Health(msgspec.Struct, frozen=True):
    """The state of the daemon."""

    status: str


class DaemonStatus(msgspec.Struct, frozen=True):
    """The status of a running daemon; `demo` is set if it shows recorded sessions.

    `late` counts hooks and status lines that ended because their input did not come in time.
    `hooks` is the time of the last hook or status line of each agent since the daemon started.
    `problems` are recent problems with the store's file. `uplink` is None without one. `fleet` is
    set by a fleet's server, which has no local files.
    """

    version: str
    pid: int
    since: float
    address: str
    heard: int
    malformed: int
    dropped: int
    late: int = 0
    demo: bool = False
    hooks: dict[str, float] = {}
    problems: list[StoreProblem] = []
    uplink: UplinkStatus | None = None
    fleet: bool = False


class PageLink(msgspec.Struct, frozen=True):
    """A URL that opens the page in a browser, once and within an hour."""

    url: str


class Sent(msgspec.Struct, frozen=True):
    """A message that was queued; `typed` into the agent's pane if `wake` asked for it.

    `not_typed` says why it was not. `undeliverable` says why nothing will deliver it, and how to
    change that: the message stays queued until it expires.
    """

    id: str
    typed: bool = False
    not_typed: str | None = None
    undeliverable: str | None = None


class Cancelled(msgspec.Struct, frozen=True):
    """Whether the message was still pending."""

    cancelled: bool


class Taken(msgspec.Struct, frozen=True):
    """How many events were new, and how many were duplicates."""

    taken: int
    known: int


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to queue; with `blocks_stop` the agent's turn does not end before it is read.

    With `wake` it is typed into the agent's tmux pane if the agent is idle and its input empty.
    """

    text: str
    urgent: bool = False
    sender: str = "user"
    blocks_stop: bool = False
    wake: bool = False


class DeliveredMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The messages that reached the agent, by their ids."""

    ids: Annotated[list[str], msgspec.Meta(max_length=MAX_EVENTS)]


class NewHandoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A handoff document, by its path on this machine."""

    path: str
    author: str = "agent"


class NewHandoffText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A handoff document by its text, for a session of another machine."""

    text: str
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)] = "handoff.md"


class SavedHandoff(HandoffRow, frozen=True, kw_only=True):
    """A saved handoff; `undeliverable` says why nothing will deliver it, and how to change that."""

    undeliverable: str | None = None


class NewClear(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document to continue from after a clear; `pane` may be omitted if hooks reported it."""

    path: str
    pane: Pane | None = None


class Continuation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The session that continues another: it gets its pins and its pending messages."""

    session: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]


class NewEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of a session; an `id` that was seen before has no effect."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARS)]
    agent: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_AGENT_CHARS)]
    event: AnyEvent
    project: str | None = None
    parent: str | None = None


class NewEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events in order."""

    events: Annotated[list[NewEvent], msgspec.Meta(max_length=MAX_EVENTS)]


class Problem(msgspec.Struct, frozen=True):
    """Why a request failed, and what to do."""

    error: str
    hint: str | None = None
