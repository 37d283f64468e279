"""What the monitor hears of an agent, and what it answers; no client's own words in it."""

from typing import Literal, TypeAlias

import msgspec

from brimline.events import Trigger
from brimline.usage import Usage

Happening: TypeAlias = Literal[
    "started",
    "prompt",
    "tool",
    "stopped",
    "compacting",
    "compacted",
    "cleared",
    "ended",
    "status",
]
"""`prompt`: a turn begins; `tool`: results are about to be read; `stopped`: a turn would end;
`status`: the client told its own figures."""


class Heard(msgspec.Struct, frozen=True):
    """One thing that an agent's hook or status line told.

    `id` is its own: what is told twice with the same id is heard once. `going_on` is set where a
    turn goes on because it was kept from ending before. Nobody waits for the answer of what is
    `late`: it comes out of the spool.
    """

    id: str
    agent: str
    session: str
    what: Happening
    at: float
    transcript: str | None = None
    project: str | None = None
    model: str | None = None
    version: str | None = None
    parent: str | None = None
    trigger: Trigger | None = None
    usage: Usage | None = None
    window: int | None = None
    going_on: bool = False
    late: bool = False


class Reply(msgspec.Struct, frozen=True):
    """What to tell the agent: added to its context, or as the reason to go on; and which messages.

    Messages are delivered when the hook says that it passed the answer on.
    """

    context: str | None = None
    go_on: str | None = None
    handed: tuple[str, ...] = ()
    handoff: str | None = None


NOTHING = Reply()
