"""The rows of a store: sessions, threads, calls, compactions, signals, handoff documents."""

from typing import Annotated, TypeAlias

import msgspec

from brimline.context.policy.signals import SignalKind
from brimline.context.usage import Tokens, Usage

# Of what machines report to a fleet's server: a sum of costs beyond the range of a float, or a time
# after the year 9999, would make each query that reads it fail.
MAX_COST_USD = 1e9
MAX_TIME_S = 253_402_300_800

Cost: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_COST_USD)]
Time: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=MAX_TIME_S)]


class SessionRow(msgspec.Struct, frozen=True):
    """A session. A field that is None leaves the stored value as it is.

    `became` is the session that continues it since it was cleared, at `became_at`. `problem` says
    why its figures may be missing; it is empty if there is none. `manager_id` is the
    id that an orchestrator has for it. On a fleet's server, `machine` is the installation whose
    daemon reports it, None if its client's telemetry does; `user` and `team` are those of that
    machine or of the telemetry. `receive` is what the machine accepts from the server.
    `client_report` is what its client reports of quotas and the prompt cache, as JSON. `env` are
    the client's variables that its limit depends on, as a JSON object; it stays on its machine.
    `is_fork`: it continues a copy of another session.
    """

    id: str
    agent: str
    seen_at: float
    host: str | None = None
    project: str | None = None
    model: str | None = None
    version: str | None = None
    title: str | None = None
    transcript: str | None = None
    parent: str | None = None
    ended_at: float | None = None
    became: str | None = None
    became_at: float | None = None
    problem: str | None = None
    manager_id: str | None = None
    user: str | None = None
    team: str | None = None
    machine: str | None = None
    receive: str | None = None
    client_report: str | None = None
    env: str | None = None
    is_fork: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it is over; one that was seen after its end was resumed."""
        return self.ended_at is not None and self.seen_at <= self.ended_at

    @property
    def continued_as(self) -> str | None:
        """The session that continues it; one that was seen after its clear was resumed."""
        if self.became_at is None or self.seen_at > self.became_at:
            return None
        return self.became


class ThreadRow(msgspec.Struct, frozen=True):
    """A thread as it is now. The version with the higher (cycle, seq) is the later one.

    `pending` is an estimate of the tokens that came in since the last call, `calls_left` a forecast
    of the calls until the limit. `title` is what a subagent is to do. `loop` is the number of
    compactions in a row with only a few calls between them, and `kept` what stayed after the last.
    `branch` is the git branch of the last call.
    """

    session: str
    thread: str
    cycle: int
    seq: int
    source: str
    state: str
    at: Time | None = None
    sent: int | None = None
    held: int | None = None
    window: int | None = None
    window_why: str | None = None
    limit: int | None = None
    limit_why: str | None = None
    percent: float | None = None
    percent_raw: float | None = None
    percent_of_limit: float | None = None
    peak_sent: int | None = None
    calls: int = 0
    model: str | None = None
    pending: int | None = None
    calls_left: int | None = None
    window_origin: str | None = None
    limit_origin: str | None = None
    title: str | None = None
    loop: int | None = None
    kept: int | None = None
    branch: str | None = None


SPENDINGS = "/spendings"  # behind the name of a thread: what it spent beside its calls
TOTAL_OF = "total of "  # before a model and tier: the spendings without an id, added up
PASS_BY = " pass by "  # between the id of a call and the model of another pass of it


class CallRow(msgspec.Struct, frozen=True):
    """One call, by (session, thread, call). The last copy counts, by its (cycle, seq).

    `cost` is in USD, with the call's other passes, None if no price is known; `miss_cost` is what a
    cache miss added to it, None if the call is none. `branch` is the project's git branch.
    `counted`: sums have it as a call; a copy of another session's call is in no sum, and has no
    cost. What a thread spent beside its calls, and the tokens of other passes, are in rows of
    another thread, which are not counted; sums have their tokens and cost.
    """

    session: str
    thread: str
    call: str
    seq: int
    cycle: int
    input: Tokens
    cache_read: Tokens
    cache_write: Tokens
    output: Tokens
    model: str | None = None
    at: Time | None = None
    cache_write_1h: Tokens = 0
    cost: Cost | None = None
    miss_cost: Cost | None = None
    branch: str | None = None
    counted: bool = True

    @property
    def is_spending(self) -> bool:
        """Whether it is no call, but what a thread spent beside its calls or in other passes."""
        return not self.counted and self.thread.endswith(SPENDINGS)

    @property
    def usage(self) -> Usage:
        return Usage(
            self.input,
            self.cache_read,
            self.cache_write,
            self.output,
            cache_write_1h=min(self.cache_write_1h, self.cache_write),
        )


class CompactionRow(msgspec.Struct, frozen=True):
    """One compaction, by (session, thread, cycle): the cycle that it ended.

    `before` is what the thread held, `after` what the first call after it sent; None if not known
    (yet). `inferred` is set if no record contains it, `overflow` if the API had refused a request
    that was too long.
    """

    session: str
    thread: str
    cycle: int
    at: Time | None = None
    trigger: str | None = None
    before: int | None = None
    after: int | None = None
    model: str | None = None
    version: str | None = None
    inferred: bool = False
    overflow: bool = False


class SignalRow(msgspec.Struct, frozen=True):
    """A signal of the policy; it fires once by (session, thread, cycle, kind, level, arm).

    `arm` is how often handoffs had re-armed the levels of the cycle before. A `level` of calls left
    is negative: -10 with 10 calls left.
    """

    session: str
    thread: str
    cycle: int
    kind: SignalKind
    at: float
    level: float = 0.0
    text: str = ""
    sent: int | None = None
    percent: float | None = None
    arm: int = 0


class HandoffRow(msgspec.Struct, frozen=True):
    """A handoff document with its text; the last one of a session counts.

    `calls` is how many calls its session had made by then, None if unknown.
    """

    id: str
    session: str
    at: float
    path: str
    sha256: str
    text: str
    author: str
    cycle: int
    calls: int | None
    draft: bool = False
    used_at: float | None = None
