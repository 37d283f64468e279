"""The fleet view: figures of all active sessions by group, and who needs attention."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.openapi import Endpoint
from brimline.api.responses import (
    RequestRefused,
    json_response,
    read_choice,
    read_number,
    read_since,
)
from brimline.api.views import SessionRows, SessionView, Views
from brimline.monitor.user_rules import Rules
from brimline.settings import seconds
from brimline.store.fleet import (
    SECONDS_PER_HOUR,
    FillLevels,
    FleetGrouping,
    FleetMachine,
    GroupCompactions,
    GroupCosts,
    GroupCounts,
    SessionKind,
)

if TYPE_CHECKING:
    from brimline.store.postgres.fleet import FleetFigures
    from brimline.store.postgres.machines import MachineTable

DEFAULT_SINCE = "1h"
MAX_SPAN_S = 7 * 86_400
MAX_LISTED = 100
MAX_GROUPS = 500
MAX_MACHINES = 10_000
GROUPINGS: tuple[FleetGrouping, ...] = get_args(FleetGrouping)


class FleetGroup(msgspec.Struct, frozen=True):
    """The sessions of one team, host, user, project, branch, model, version or agent, or all.

    `key` is None for sessions without one, and for the total; a branch follows its project's name.
    A session counts for the branch of its last call, a call for its own. `sessions` counts active
    ones, `seen` also those that ended in the span, `filled` the active ones whose fill is known.
    `over_first`, `over_last` and `at_limit` count those of `filled` that are at least so full, and
    the percentages are their shares. `lost` sessions were compacted without a handoff;
    `lost_percent` is their share of `seen`. `cost` and `miss_cost` are in USD, None if no price is
    known.
    """

    key: str | None
    sessions: int
    seen: int
    filled: int
    over_first: int
    over_last: int
    at_limit: int
    over_first_percent: float | None
    over_last_percent: float | None
    at_limit_percent: float | None
    compactions: int
    compactions_per_hour: float
    lost: int
    lost_percent: float | None
    calls: int
    cost: float | None
    miss_cost: float | None


class FleetView(msgspec.Struct, frozen=True):
    """The fleet since `since`, which is a full hour.

    `groups` are sorted by their active sessions, the most first; `more_groups` are left out.
    `fullest` are the active sessions nearest to their limits; they and `needs_handoff` are sessions
    as in `GET /v1/sessions`, sorted by `rank`, with their main threads alone. `needs_handoff_count`
    sessions need a handoff in all.
    """

    by: FleetGrouping
    at: float
    since: float
    total: FleetGroup
    groups: list[FleetGroup]
    more_groups: int
    fullest: list[SessionView]
    needs_handoff: list[SessionView]
    needs_handoff_count: int


class MachineView(msgspec.Struct, frozen=True):
    """A machine whose daemon reports to the server, by the random id of its installation.

    `version` is Brimline's, `clients` has the versions of its agents. `receive` is what it accepts
    from the server. `behind` sessions have changes that it has not sent; the server has not stored
    `refused` sessions, the last one because of `refusal`. `token` is the id of the token with which
    it reported last, which is valid until `token_ends_at`, if it ends.
    """

    id: str
    host: str | None
    user: str | None
    team: str | None
    version: str | None
    clients: dict[str, str]
    receive: str
    behind: int
    refused: int
    refusal: str | None
    first_at: float
    last_at: float
    token: str | None
    token_ends_at: float | None


class FleetRoutes:
    """The routes of the fleet view and of the machines, of one organisation."""

    endpoints = (
        Endpoint("GET", "/v1/fleet", "fleet",
                 "Get the figures of all active sessions by group, and who needs a handoff.",
                 FleetView, query=("by", "since", "limit")),
        Endpoint("GET", "/v1/machines", "machines",
                 "List the machines that report to this server, the longest silent first.",
                 list[MachineView], query=("silent",)),
    )  # fmt: skip

    def __init__(
        self,
        figures: "FleetFigures",
        views: Views,
        machines: "MachineTable",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._figures, self._views, self._machines = figures, views, machines
        self._clock = clock

    async def fleet(self, request: Request) -> Response:
        by: FleetGrouping = read_choice(request, "by", GROUPINGS)
        now = self._clock()
        since = read_since(request, DEFAULT_SINCE, now)
        if now - since > MAX_SPAN_S:
            raise RequestRefused(422, "query, since: expected at most 7d")
        since -= since % SECONDS_PER_HOUR
        listed = min(read_number(request, "limit") or MAX_LISTED, MAX_LISTED)
        figures = self._figures
        active, compactions, costs = await asyncio.gather(
            figures.active(by, since, listed),
            figures.compactions(by, since),
            figures.costs(by, since),
        )
        views = await self._views_of([*active.fullest, *active.needs_handoff])
        groups = _build_groups(active.groups, compactions, costs, (now - since) / SECONDS_PER_HOUR)
        view = FleetView(
            by=by,
            at=now,
            since=since,
            total=groups.pop(),
            groups=groups[:MAX_GROUPS],
            more_groups=max(0, len(groups) - MAX_GROUPS),
            fullest=_by_rank(views, active.fullest),
            needs_handoff=_by_rank(views, active.needs_handoff),
            needs_handoff_count=active.needs_handoff_count,
        )
        return json_response(view)

    async def machines(self, request: Request) -> Response:
        """List all machines, or with `silent` those without a report for this time."""
        now = self._clock()
        span = request.query_params.get("silent")
        silent_since = None if span is None else now - seconds(span, place="query")
        listed = await self._machines.list(MAX_MACHINES, silent_since)
        return json_response([_build_machine(each) for each in listed])

    async def _views_of(self, sessions: Iterable[str]) -> Mapping[str, SessionView]:
        rows = await self._figures.rows(list(dict.fromkeys(sessions)))
        return {
            each[0].id: self._views.build(await self._views.with_causes(SessionRows(*each)))
            for each in rows
        }


def _build_machine(machine: FleetMachine) -> MachineView:
    report = msgspec.structs.asdict(machine.report)
    return MachineView(
        **report,
        first_at=machine.first_at,
        clients=machine.clients,
        token_ends_at=machine.token_ends_at,
    )


def _by_rank(views: Mapping[str, SessionView], ids: Iterable[str]) -> list[SessionView]:
    """Return these sessions in the order of every list; those that are gone are left out."""
    known = (views[id] for id in ids if id in views)
    return sorted(known, key=lambda view: (view.rank, view.session.id))


def fill_levels(rules: Rules, kind: SessionKind) -> FillLevels:
    """Return the first and last level of a kind of sessions by the rules."""
    whose = kind.session, kind.agent, kind.model or None
    levels = rules.levels_of(*whose)
    first, last = (levels[0], levels[-1]) if levels else (None, None)
    return FillLevels(kind, rules.measure_of(*whose), first, last)


def _build_groups(
    counts: Sequence[GroupCounts],
    compactions: Sequence[GroupCompactions],
    costs: Sequence[GroupCosts],
    hours: float,
) -> list[FleetGroup]:
    """Return the groups, the largest first, and the total as the last."""
    of_key = _by_key(counts), _by_key(compactions), _by_key(costs)
    keys = {key: None for parts in of_key for key in parts}
    groups = [
        _build_group(
            of_key[0].get(key, GroupCounts(key)),
            of_key[1].get(key, GroupCompactions(key)),
            of_key[2].get(key, GroupCosts(key)),
            hours,
        )
        for key in keys
    ]
    groups.sort(key=lambda group: (-group.sessions, -(group.cost or 0.0), group.key or ""))
    parts = (
        _total(counts, GroupCounts),
        _total(compactions, GroupCompactions),
        _total(costs, GroupCosts),
    )
    return [*groups, _build_group(*parts, hours)]


def _build_group(
    counts: GroupCounts, compactions: GroupCompactions, costs: GroupCosts, hours: float
) -> FleetGroup:
    return FleetGroup(
        key=counts.key,
        sessions=counts.sessions,
        seen=counts.seen,
        filled=counts.filled,
        over_first=counts.over_first,
        over_last=counts.over_last,
        at_limit=counts.at_limit,
        over_first_percent=_percent(counts.over_first, counts.filled),
        over_last_percent=_percent(counts.over_last, counts.filled),
        at_limit_percent=_percent(counts.at_limit, counts.filled),
        compactions=compactions.compactions,
        compactions_per_hour=round(compactions.compactions / hours, 1),
        lost=compactions.lost,
        lost_percent=_percent(compactions.lost, counts.seen),
        calls=costs.calls,
        cost=costs.cost,
        miss_cost=costs.miss_cost,
    )


class _Keyed(Protocol):
    @property
    def key(self) -> str | None: ...


KeyedT = TypeVar("KeyedT", bound=_Keyed)
PartT = TypeVar("PartT", GroupCounts, GroupCompactions, GroupCosts)


def _by_key(parts: Iterable[KeyedT]) -> dict[str | None, KeyedT]:
    return {part.key: part for part in parts}


def _total(parts: Sequence[PartT], kind: type[PartT]) -> PartT:
    """Return the sums of all groups; of unknown values alone, the sum is unknown."""
    sums: dict[str, Any] = {}
    for field in kind.__struct_fields__[1:]:
        known = [value for part in parts if (value := getattr(part, field)) is not None]
        if known:
            sums[field] = sum(known)
    return kind(None, **sums)


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None
