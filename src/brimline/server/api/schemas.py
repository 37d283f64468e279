"""What the HTTP API is told, and what it answers beside sessions."""

from typing import Annotated

import msgspec

from brimline.events import AnyEvent
from brimline.observations import Pane
from brimline.store.problems import StoreProblem

MAX_EVENTS = 1_000
"""So many events can be told at once."""


class Health(msgspec.Struct, frozen=True):
    """How the daemon is."""

    status: str


class DaemonStatus(msgspec.Struct, frozen=True):
    """What a running daemon says of itself; `demo` is set where it shows recorded sessions.

    `hooks` is when the last hook or status line of each agent was heard since it runs. `problems`
    is what happened to the store's file, as long as that is to be shown.
    """

    version: str
    pid: int
    since: float
    address: str
    heard: int
    malformed: int
    dropped: int
    demo: bool = False
    hooks: dict[str, float] = {}
    problems: list[StoreProblem] = []


class PageLink(msgspec.Struct, frozen=True):
    """An address that opens the page in a browser, once and within an hour."""

    url: str


class Sent(msgspec.Struct, frozen=True):
    """A message that was queued."""

    id: str


class Cancelled(msgspec.Struct, frozen=True):
    """Whether a message still waited when it was cancelled."""

    cancelled: bool


class Taken(msgspec.Struct, frozen=True):
    """How many events were new, and how many were known already."""

    taken: int
    known: int


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to be queued."""

    text: str
    urgent: bool = False
    sender: str = "user"


class NewHandoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document to be handed over, by its path on this machine."""

    path: str
    author: str = "agent"


class NewClear(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that a session is to go on from, fresh; the pane is known where hooks told it."""

    path: str
    pane: Pane | None = None


class NewEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of a session. `id` is the producer's: what is told again has no effect again."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    agent: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    event: AnyEvent
    project: str | None = None
    parent: str | None = None


class NewEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events in the producer's order."""

    events: Annotated[list[NewEvent], msgspec.Meta(max_length=MAX_EVENTS)]


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered."""

    error: str
    hint: str | None = None
