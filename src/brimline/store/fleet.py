"""The figures of a fleet: what is counted of each group of sessions."""

from datetime import date
from typing import Literal, TypeAlias

import msgspec

from brimline.context.policy.levels import LevelMeasure

FleetGrouping: TypeAlias = Literal[
    "team", "host", "user", "project", "branch", "model", "version", "agent"
]

UsagePeriod: TypeAlias = Literal["day", "week", "month"]

SECONDS_PER_HOUR = 3_600
DEFAULT_ORGANISATION = "default"


class TokenOwner(msgspec.Struct, frozen=True):
    """Who has the token with this id: one machine, or anything; and what team that is of."""

    token: str
    machine: str | None
    team: str | None


class MachineReport(msgspec.Struct, frozen=True):
    """What a machine says of itself with a batch, by the random id of its installation.

    `version` is Brimline's, `receive` what the machine accepts from the server. `behind` sessions
    have changes that it has not sent, and the server stores `refused` ones not; `refusal` is why.
    `token` is the id of the token with which it reported.
    """

    id: str
    host: str | None
    user: str | None
    team: str | None
    version: str | None
    receive: str
    behind: int
    refused: int
    refusal: str | None
    last_at: float
    token: str | None = None


class FleetMachine(msgspec.Struct, frozen=True):
    """A machine's last report, when its first one came, and its clients' versions, by agent.

    `token_ends_at` is when its token expires, or was revoked; None if it does not end.
    """

    report: MachineReport
    first_at: float
    clients: dict[str, str]
    token_ends_at: float | None = None


class SessionKind(msgspec.Struct, frozen=True):
    """What decides the levels of sessions; `session` is set only for one with its own levels."""

    session: str
    agent: str
    model: str


class FillLevels(msgspec.Struct, frozen=True):
    """The first and the last level of sessions of a kind; None if they have none."""

    kind: SessionKind
    measure: LevelMeasure
    first: float | None
    last: float | None


class GroupCounts(msgspec.Struct, frozen=True):
    """The counts of a group's sessions; `key` is None for sessions without one.

    `seen` counts the sessions of the span, `sessions` those that are active, `filled` the active
    ones whose fill is known, `over_first` to `at_limit` those of them that are at least so full.
    """

    key: str | None
    seen: int = 0
    sessions: int = 0
    filled: int = 0
    over_first: int = 0
    over_last: int = 0
    at_limit: int = 0


class ActiveSessions(msgspec.Struct, frozen=True):
    """The counts of groups, the ids of the fullest sessions, and of those that need a handoff.

    Both lists begin with the fullest; `needs_handoff_count` sessions need one in all.
    """

    groups: list[GroupCounts]
    fullest: list[str]
    needs_handoff: list[str]
    needs_handoff_count: int


class GroupCompactions(msgspec.Struct, frozen=True):
    """The compactions of a group, and how many sessions lost work by one."""

    key: str | None
    compactions: int = 0
    lost: int = 0


class GroupCosts(msgspec.Struct, frozen=True):
    """What the calls of a group cost in USD; None if no price is known."""

    key: str | None
    calls: int = 0
    cost: float | None = None
    miss_cost: float | None = None


class UsageSum(msgspec.Struct, frozen=True):
    """What a group used in a period, which begins with a day in UTC.

    Without `in_period` it is the sum of all periods, without `of_group` that of all groups; then
    `period` or `key` is None. `cost` and `miss_cost` are in USD, None if no price is known.
    """

    period: date | None
    key: str | None
    in_period: bool
    of_group: bool
    sessions: int = 0
    calls: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cost: float | None = None
    miss_cost: float | None = None
