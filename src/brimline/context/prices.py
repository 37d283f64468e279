"""The cost of calls: by the catalogue's prices, else by the client.

Importing genai-prices would cost 0.3 s.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache, lru_cache
from math import fsum
from typing import NamedTuple

from brimline.context.events import Call, Spent
from brimline.context.usage import Usage
from brimline.context.window import Price, find_priced_model

MILLION = 1_000_000
UNBOUNDED = 1 << 62
UNKNOWN_DAY = "unknown"  # after every day: the latest price counts


class Cost(NamedTuple):
    """What calls cost in USD; `by_client` if the client computed it."""

    dollars: float
    by_client: bool = False


def day_of(at: float | None) -> str:
    """Return the local day, as 2026-11-15."""
    if at is None:
        return UNKNOWN_DAY
    return time.strftime("%Y-%m-%d", time.localtime(at))


@cache
def tier_thresholds(model: str | None) -> tuple[int, ...]:
    """Return the prompt sizes above which all tokens of a call have another price."""
    return tuple(sorted({price.above for price in _prices(model)} - {0}))


def tier_bounds(model: str | None, sent: int) -> tuple[int, int]:
    """Return the sizes between which a prompt's tier lies: above the first, up to the second."""
    steps = (-1, *tier_thresholds(model), UNBOUNDED)
    at = bisect_left(steps, sent)
    return steps[at - 1], steps[at]


def tier_of(model: str | None, usage: Usage) -> int:
    """Return the highest threshold that a call's prompt exceeds; 0 for none."""
    return max(0, tier_bounds(model, usage.sent)[0])


def cost_of(billed: Call | Spent) -> Cost | None:
    """Return the cost of a call, or of what was spent beside calls; None if it is unknown.

    Of a spending that is not one call's, the sizes of the prompts are unknown. The store has no
    service tier, and no other passes: what it has as the cost is not computed again.
    """
    if billed.stored_cost is not None:
        return Cost(billed.stored_cost)
    usage = billed.usage
    tier = 0 if billed.id is None else tier_of(billed.model, usage)
    return find_cost(billed.model, day_of(billed.at), tier, usage, billed.service_tier, billed.cost)


def sum_costs(billed: Iterable[Call | Spent]) -> float | None:
    """Return what calls and spendings cost together; None without any, or if one has no price."""
    costs = [cost_of(each) for each in billed]
    known = [cost.dollars for cost in costs if cost is not None]
    return fsum(known) if known and len(known) == len(costs) else None


def find_cost(
    model: str | None,
    day: str,
    tier: int,
    usage: Usage,
    service_tier: str | None = None,
    client_cost: float | None = None,
) -> Cost | None:
    """Return the cost of calls of one model, day and tier; None if it is unknown.

    It is by the catalogue. What the client recorded counts if the catalogue has no price, or none
    of cached tokens: input may cost ten times as much.
    """
    price = find_price(model, day, tier, service_tier)
    if client_cost is not None and (price is None or price.cache_read is None):
        return Cost(client_cost, by_client=True)
    return None if price is None else Cost(_multiply(price, usage))


def compute_cost(
    model: str | None, day: str, tier: int, usage: Usage, service_tier: str | None = None
) -> float | None:
    """Return the cost in USD of calls by the catalogue alone; None if the price is unknown."""
    price = find_price(model, day, tier, service_tier)
    return None if price is None else _multiply(price, usage)


def _multiply(price: Price, usage: Usage) -> float:
    return (
        usage.input * price.input
        + usage.cache_read * price.cached
        + (usage.cache_write - usage.cache_write_1h) * price.cache_write
        + usage.cache_write_1h * price.cache_write_1h
        + usage.output * price.output
    ) / MILLION


def price_of(call: Call) -> Price | None:
    """Return the catalogue's price of a call's tokens; None if it has none."""
    tier = tier_of(call.model, call.usage)
    return find_price(call.model, day_of(call.at), tier, call.service_tier)


@lru_cache(4096)  # a year of ten models; the names are the clients' own
def find_price(
    model: str | None, day: str, tier: int, service_tier: str | None = None
) -> Price | None:
    """Return the latest valid price of a model on a day, at the highest tier reached.

    A service tier without a price of its own has the standard price.
    """
    valid = [
        price
        for price in _prices(model)
        if price.since <= day and price.above <= tier and price.service_tier in (None, service_tier)
    ]
    return max(
        valid,
        key=lambda price: (price.service_tier is not None, price.since, price.above),
        default=None,
    )


def _prices(model: str | None) -> tuple[Price, ...]:
    row = find_priced_model(model) if model else None
    return row.prices if row else ()
