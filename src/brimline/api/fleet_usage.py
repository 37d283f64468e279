"""What a fleet used, by day, week or month and by group, also after its sessions are forgotten."""

import csv
import io
import time
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.fleet import GROUPINGS
from brimline.api.openapi import Endpoint
from brimline.api.responses import RequestRefused, json_response, read_choice
from brimline.sessions.report import period_of, periods_between
from brimline.settings import seconds
from brimline.store.fleet import FleetGrouping, UsagePeriod, UsageSum
from brimline.terminal.text import spreadsheet_value

if TYPE_CHECKING:
    from brimline.store.postgres.fleet import FleetFigures

DEFAULT_SINCE = "30d"
MAX_DAYS = 3_700
MAX_GROUPS = 100
PERIODS: tuple[UsagePeriod, ...] = get_args(UsagePeriod)
SECONDS_PER_DAY = 86_400


class FleetUsageSum(msgspec.Struct, frozen=True):
    """What one group used, by its key; that is None for sessions without one, and for a total.

    `sent` are the input tokens of all calls, from the cache or not. Calls that a fork copied are
    not counted again. `cost` and `miss_cost` are in USD, None if no price is known.
    """

    key: str | None
    sessions: int
    calls: int
    sent: int
    input: int
    cache_read: int
    cache_write: int
    output: int
    cost: float | None
    miss_cost: float | None


class FleetPeriod(msgspec.Struct, frozen=True):
    """A day, as 2026-11-19, a week, as 2026-W47, or a month, as 2026-11."""

    key: str
    total: FleetUsageSum
    groups: list[FleetUsageSum]


class FleetUsage(msgspec.Struct, frozen=True):
    """What the fleet used on the days in UTC from `first` to `last`.

    `groups` are sorted by cost, the highest first; `more_groups` are left out, here and in the
    periods. The total and the periods' totals have all.
    """

    by: FleetGrouping
    per: UsagePeriod
    first: str
    last: str
    total: FleetUsageSum
    groups: list[FleetUsageSum]
    more_groups: int
    periods: list[FleetPeriod]


class FleetUsageRoutes:
    """The routes of an organisation's usage."""

    endpoints = (
        Endpoint("GET", "/v1/fleet/usage", "usage",
                 "Get what was used by day, week or month (per) and group (by), in a span (since) "
                 "or from one day to another.",
                 FleetUsage, query=("by", "per", "since", "from", "to")),
        Endpoint("GET", "/v1/fleet/usage.csv", "table",
                 "Get the same as CSV, with all groups.", str, media="text/csv; charset=utf-8",
                 query=("by", "per", "since", "from", "to")),
    )  # fmt: skip

    def __init__(self, figures: "FleetFigures", clock: Callable[[], float] = time.time) -> None:
        self._figures, self._clock = figures, clock

    async def usage(self, request: Request) -> Response:
        by, per, first, last = self._read_query(request)
        sums = await self._figures.usage(by, per, first, last)
        return json_response(build_usage(by, per, first, last, sums))

    async def table(self, request: Request) -> Response:
        by, per, first, last = self._read_query(request)
        sums = await self._figures.usage(by, per, first, last)
        text = write_csv(by, per, sums)
        return Response(text, media_type="text/csv")

    def _read_query(self, request: Request) -> tuple[FleetGrouping, UsagePeriod, date, date]:
        by: FleetGrouping = read_choice(request, "by", GROUPINGS)
        per: UsagePeriod = read_choice(request, "per", PERIODS)
        today = datetime.fromtimestamp(self._clock(), UTC).date()
        last = _read_day(request, "to", today)
        span_s = seconds(request.query_params.get("since", DEFAULT_SINCE), place="query")
        days = min(span_s // SECONDS_PER_DAY, MAX_DAYS)
        first = _read_day(request, "from", last - timedelta(days=max(0, int(days) - 1)))
        if not 0 <= (last - first).days < MAX_DAYS:
            reason = f"expected at most {MAX_DAYS:,} days, the first one first"
            raise RequestRefused(422, f"query, from: {reason}")
        return by, per, first, last


def _read_day(request: Request, name: str, default: date) -> date:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise RequestRefused(422, f"query, {name}: expected a day such as 2026-11-19") from error


def build_usage(
    by: FleetGrouping, per: UsagePeriod, first: date, last: date, sums: Iterable[UsageSum]
) -> FleetUsage:
    """Return the usage with every period, also those in which nothing was used."""
    total, groups = _sum_of(UsageSum(None, None, False, False)), list[FleetUsageSum]()
    totals: dict[str, FleetUsageSum] = {}
    parts: dict[str, list[FleetUsageSum]] = {}
    for each in sums:
        period = None if each.period is None else period_of(per, each.period.isoformat())
        if period is not None:
            if each.of_group:
                parts.setdefault(period, []).append(_sum_of(each))
            else:
                totals[period] = _sum_of(each)
        elif each.of_group:
            groups.append(_sum_of(each))
        else:
            total = _sum_of(each)
    groups.sort(key=_by_cost)
    shown = {each.key for each in groups[:MAX_GROUPS]}
    keys = periods_between(per, first.isoformat(), last.isoformat())
    nothing = _sum_of(UsageSum(None, None, True, False))
    return FleetUsage(
        by=by,
        per=per,
        first=first.isoformat(),
        last=last.isoformat(),
        total=total,
        groups=groups[:MAX_GROUPS],
        more_groups=max(0, len(groups) - MAX_GROUPS),
        periods=[
            FleetPeriod(
                key,
                totals.get(key, nothing),
                sorted((part for part in parts.get(key, []) if part.key in shown), key=_by_cost),
            )
            for key in keys
        ],
    )


def _sum_of(each: UsageSum) -> FleetUsageSum:
    return FleetUsageSum(
        key=each.key,
        sessions=each.sessions,
        calls=each.calls,
        sent=each.input + each.cache_read + each.cache_write,
        input=each.input,
        cache_read=each.cache_read,
        cache_write=each.cache_write,
        output=each.output,
        cost=each.cost,
        miss_cost=each.miss_cost,
    )


def _by_cost(each: FleetUsageSum) -> tuple[float, int, str]:
    return -(each.cost or 0.0), -each.sent, each.key or ""


FIGURES = (
    "sessions", "calls", "input", "cache_read", "cache_write", "output", "cost", "miss_cost",
)  # fmt: skip


def write_csv(by: FleetGrouping, per: UsagePeriod, sums: Iterable[UsageSum]) -> str:
    """Return a line for each group in each period, in their order."""
    rows = [each for each in sums if each.in_period and each.of_group]
    rows.sort(key=lambda each: (each.period or date.min, each.key or ""))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((per, by, *FIGURES))
    for each in rows:
        period = "" if each.period is None else period_of(per, each.period.isoformat())
        figures = (getattr(each, name) for name in FIGURES)
        writer.writerow(map(spreadsheet_value, (period, each.key, *figures)))
    return out.getvalue()
