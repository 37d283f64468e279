"""What a daemon sends to `POST /v1/uplink` of a fleet's server, the reply, and how both are going.

Daemons and servers of neighbouring versions talk to each other: unknown fields are ignored, a new
field has a default, and what may get new values is a `str`. That holds for the rows too.
"""

from typing import Annotated, TypeAlias

import msgspec

from brimline.store.rows import CallRow, CompactionRow, ThreadRow, Time

PATH = "/v1/uplink"
ENROL_PATH = "/v1/enrol"

# A daemon sends up to 2,000 rows. 150,000 sessions in one request took 400 MB of a server's memory.
MAX_ITEMS = msgspec.Meta(max_length=10_000)
DOCUMENT_LIFETIME_S = 24 * 3_600.0  # one that no machine has fetched by then stays at the server
# Of texts that a server sends to a machine: in a reply, and pending for a session or a machine. Of
# documents, which stay pending until a compaction: in DOCUMENT_LIFETIME_S.
MAX_REPLY_MESSAGES, MAX_SESSION_PENDING, MAX_MACHINE_PENDING = 100, 20, 200
# Of the messages in a reply, as JSON; the rest comes with the next one. With a document, of which
# JSON may make twice as much, a reply is within MAX_REPLY_BYTES of the machine's HTTP client.
MAX_MESSAGES_BYTES = 1 << 20
# Longer than any name or title; each viewer gets it with each view of its session.
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=4_000)]
TokenHash: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class UplinkSignal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A signal that fired on the machine, without its text."""

    thread: str
    cycle: int
    kind: str
    at: Time
    level: float = 0.0
    sent: int | None = None
    percent: float | None = None
    arm: int = 0


class UplinkHandoff(msgspec.Struct, frozen=True, omit_defaults=True):
    """A handoff document of the machine, without its text and path."""

    id: str
    at: Time
    author: str
    sha256: str
    cycle: int = 0
    calls: int | None = None
    draft: bool = False
    used_at: Time | None = None


class UplinkSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session as it is on the machine, with the calls that changed since the last batch."""

    id: str
    agent: str
    seen_at: float
    project: Name | None = None
    model: Name | None = None
    version: Name | None = None
    title: Name | None = None
    parent: Name | None = None
    ended_at: Time | None = None
    became: Name | None = None
    became_at: Time | None = None
    manager_id: Name | None = None
    is_fork: bool = False
    threads: list[ThreadRow] = []
    calls: list[CallRow] = []
    compactions: list[CompactionRow] = []
    signals: list[UplinkSignal] = []
    handoffs: list[UplinkHandoff] = []


class UplinkBatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sessions that changed. `machine` is the random id of the installation.

    `delivered` are the server's messages that reached an agent, `held` those that wait on the
    machine, `refused` those that it does not accept, and `documents` the server's documents that it
    has or does not accept: none of them is sent again. `receive` is what it accepts; `is_first` if
    the daemon has sent no batch before. `stamp` grows from batch to batch. `behind` sessions had
    changes when this batch was made, its own among them; `refused_sessions` are those that the
    server did not store.
    """

    machine: str
    host: Name | None = None
    version: Name | None = None
    user: Name | None = None
    team: Name | None = None
    sessions: Annotated[list[UplinkSession], MAX_ITEMS] = []
    delivered: Annotated[list[str], MAX_ITEMS] = []
    held: Annotated[list[str], MAX_ITEMS] = []
    documents: Annotated[list[str], MAX_ITEMS] = []
    refused: Annotated[list[str], MAX_ITEMS] = []
    receive: Name = "off"
    is_first: bool = False
    stamp: int = 0
    behind: int = 0
    refused_sessions: int = 0


class UplinkMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that a person sent to a session; the machine labels it with the sender.

    Clocks differ, so that its expiry is a number of seconds from now.
    """

    id: str
    session: str
    text: str
    sender: str
    urgency: str = "sequential"
    blocks_stop: bool = False
    expires_in_s: float | None = None


class UplinkDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A handoff document that a person wrote for a session, with the name of its file."""

    id: str
    session: str
    text: str
    author: str
    name: str = "handoff.md"


class MachineEnrolment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The token that a machine has made: the SHA-256 of its text, in hex; and whose it is.

    `earlier` is that of the one which it replaces: only the machine itself knows it.
    """

    machine: str
    hash: TokenHash
    host: Name | None = None
    earlier: TokenHash | None = None


class MachineEnrolled(msgspec.Struct, frozen=True, omit_defaults=True):
    """The server has stored the machine's token, and what it reports is of the team."""

    machine: str
    expires_at: float
    team: str | None = None


class ServerProblem(msgspec.Struct, frozen=True):
    """An error response of a fleet's server; those of other programs lack one of its fields."""

    error: str
    hint: str | None


class UplinkReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What waits for the machine's sessions, until the machine reports it as held or delivered.

    `cancelled` are messages that the machine holds and must not deliver any more. `refused` are
    sessions that the server could not store, with the reason: they need not be sent again.
    `machine` is that of the batch: the answer of anything but a fleet's server does not have it.
    `stamp` is the highest stamp of the machine's earlier batches with sessions that the server has;
    servers of earlier versions do not know it. `dropped` is set by the machine: how many messages
    and documents were too large to decode.
    """

    messages: list[UplinkMessage] = []
    documents: list[UplinkDocument] = []
    cancelled: list[str] = []
    refused: dict[str, str] = {}
    machine: str = ""
    stamp: int | None = None
    dropped: int = 0


class UplinkStatus(msgspec.Struct, frozen=True):
    """The state of the uplink: `behind` sessions have changes that the server does not have.

    `lag_s` is how long the server has been behind, 0 if it has everything. `problem` is why the
    last batch was not taken. `receive` is what this machine accepts from the server; it has refused
    `refused` messages and documents, the last of them because of `refusal`. `refused_sessions` are
    those that the server does not store, with the reason. The counts are since the daemon's start.
    """

    url: str
    behind: int = 0
    lag_s: float = 0.0
    last_success_at: float | None = None
    problem: str | None = None
    batches: int = 0
    failures: int = 0
    calls: int = 0
    sent_bytes: int = 0
    received: int = 0
    receive: str = "off"
    refused: int = 0
    refusal: str | None = None
    refused_sessions: dict[str, str] = {}
