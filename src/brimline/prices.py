"""The cost of calls by the catalogue's prices. Importing genai-prices would cost 0.3 s."""

import time
from bisect import bisect_left
from functools import cache

from brimline.usage import Usage
from brimline.windows import Price, find_model

MILLION = 1_000_000
UNBOUNDED = 1 << 62
UNKNOWN_DAY = "unknown"  # after every day: the latest price counts


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


def compute_cost(
    model: str | None, day: str, tier: int, usage: Usage, service_tier: str | None = None
) -> float | None:
    """Return the cost in USD of calls of one day and tier; None if the price is unknown."""
    price = find_price(model, day, tier, service_tier)
    if price is None:
        return None
    return (
        usage.input * price.input
        + usage.cache_read * price.cache_read
        + (usage.cache_write - usage.cache_write_1h) * price.cache_write
        + usage.cache_write_1h * price.cache_write_1h
        + usage.output * price.output
    ) / MILLION


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
    row = find_model(model) if model else None
    return row.prices if row else ()
