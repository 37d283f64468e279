"""What the demo's story is written in: who is in it, and what happens at which second."""

from typing import TypeAlias

import msgspec

from brimline.events import MAIN, AnyEvent, Trigger
from brimline.observations import ObservationKind
from brimline.usage import Usage

LAPTOP, SERVER = "laptop", "build-1"


class Role(msgspec.Struct, frozen=True):
    """A session of the story. One that is `hooked` is told its messages; of others they wait."""

    id: str
    agent: str
    model: str
    project: str
    version: str | None = None
    title: str | None = None
    host: str = LAPTOP
    parent: str | None = None
    hooked: bool = True


class Tell(msgspec.Struct, frozen=True):
    """Something is heard of a session. Its events have the story's seconds for a time."""

    at: float
    role: Role
    what: ObservationKind = "pushed"
    events: tuple[AnyEvent, ...] = ()
    thread: str = MAIN
    trigger: Trigger | None = None
    usage: Usage | None = None


class Say(msgspec.Struct, frozen=True):
    """Somebody sends the session a message."""

    at: float
    role: Role
    text: str
    urgent: bool = False


class HandOver(msgspec.Struct, frozen=True):
    """A document is handed over; a draft is ours, others are the agent's."""

    at: float
    role: Role
    text: str
    path: str
    draft: bool = False


Act: TypeAlias = Tell | Say | HandOver
"""What happens. `at` is a second of the story; what was before its beginning is below 0."""
