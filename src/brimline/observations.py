"""What the monitor hears of an agent, and what it answers; no client's own words in it."""

from typing import Literal, TypeAlias

import msgspec

from brimline.events import MAIN, AnyEvent, Trigger
from brimline.transcripts.source import Transcript
from brimline.usage import Usage

ObservationKind: TypeAlias = Literal[
    "started",
    "prompt",
    "tool",
    "stopped",
    "compacting",
    "compacted",
    "cleared",
    "ended",
    "status",
    "wrote",
    "pushed",
]
"""`prompt`: a turn begins; `tool`: results are about to be read; `stopped`: a turn would end;
`status`: the client told its own figures; `wrote`: a transcript grew; `pushed`: a program told
what happened in its own words, as events. Of the last two nobody waits for an answer."""

UNPROMPTED: frozenset[ObservationKind] = frozenset({"wrote", "pushed"})
"""What is no hook's word."""


Teller: TypeAlias = Literal["status line", "hook"]
"""Who told a usage that is in no file yet."""


EnvironmentVariables: TypeAlias = tuple[tuple[str, str], ...]
"""Variables and their values."""


class Pane(msgspec.Struct, frozen=True):
    """A tmux pane: the socket of its server, and its id, as `%3`."""

    socket: str
    id: str


class Observation(msgspec.Struct, frozen=True):
    """One thing that was told of a session, by a hook, a status line, its files or a program.

    `id` is its own: what is told twice with the same id is heard once. `at` is the producer's time.
    `thread` is a subagent where one of its hooks tells. `going_on` is set where a turn goes on
    because it was kept from ending before. Nobody waits for the answer of what is `late`: it comes
    out of the spool. `transcript` is the session's own file, as a hook names it; `file` one of its
    files, a subagent's too, as it was found. `pane` is where the agent runs, `host` the machine
    where that is another, `env` what of its environment its client goes by, None where that is not
    told.
    """

    id: str
    agent: str
    session: str
    what: ObservationKind
    at: float
    thread: str = MAIN
    transcript: str | None = None
    file: Transcript | None = None
    pane: Pane | None = None
    host: str | None = None
    env: EnvironmentVariables | None = None
    project: str | None = None
    model: str | None = None
    version: str | None = None
    parent: str | None = None
    trigger: Trigger | None = None
    usage: Usage | None = None
    by: Teller = "status line"
    window: int | None = None
    events: tuple[AnyEvent, ...] = ()
    going_on: bool = False
    late: bool = False


class Reply(msgspec.Struct, frozen=True):
    """What to tell the agent: added to its context, or as the reason to go on; and which messages.

    `handoff` is the document in it, of that session.

    Messages are delivered when the hook says that it passed the answer on.
    """

    context: str | None = None
    go_on: str | None = None
    handed: tuple[str, ...] = ()
    handoff: str | None = None
    session: str = ""


EMPTY_REPLY = Reply()

DUPLICATE = Reply()
"""The answer to what was heard before."""
