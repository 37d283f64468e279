"""What calls cost, by the catalogue's prices. Importing genai-prices itself would cost 0.3 s."""

from bisect import bisect_left
from functools import cache

from brimline.usage import Usage
from brimline.windows import Price, find_model

MILLION = 1_000_000
ENDLESS = 1 << 62


@cache
def thresholds(model: str | None) -> tuple[int, ...]:
    """The prompt sizes above which all of a call's tokens have another price."""
    return tuple(sorted({price.above for price in _prices(model)} - {0}))


def tier_around(model: str | None, sent: int) -> tuple[int, int]:
    """The tier of a prompt: above which size it begins, and up to which it reaches."""
    steps = (-1, *thresholds(model), ENDLESS)
    at = bisect_left(steps, sent)
    return steps[at - 1], steps[at]


def tier_of(model: str | None, usage: Usage) -> int:
    """The highest threshold that a call's prompt exceeds; 0 for none."""
    return max(0, tier_around(model, usage.sent)[0])


def cost(model: str | None, day: str, tier: int, usage: Usage) -> float | None:
    """The price in dollars of calls that lie in one day and tier; None where it is not known."""
    price = price_at(model, day, tier)
    if price is None:
        return None
    return (
        usage.input * price.input
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
        + usage.output * price.output
    ) / MILLION


def price_at(model: str | None, day: str, tier: int) -> Price | None:
    """The price of a model on a day: the latest that had begun, at the highest tier reached."""
    begun = [price for price in _prices(model) if price.since <= day and price.above <= tier]
    return max(begun, key=lambda price: (price.since, price.above), default=None)


def _prices(model: str | None) -> tuple[Price, ...]:
    row = find_model(model) if model else None
    return row.prices if row else ()
