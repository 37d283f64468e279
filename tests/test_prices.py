"""What calls cost is what genai-prices says, for every model of the catalogue."""

from datetime import UTC, date, datetime, timedelta

import pytest
from genai_prices import Usage as Billed
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from brimline.prices import compute_cost, find_price, tier_bounds, tier_of, tier_thresholds
from brimline.usage import ZERO, Usage
from brimline.windows import catalogue

PROVIDERS = ("anthropic", "openai", "google", "deepseek", "mistral", "moonshotai", "x-ai", "zai",
             "minimax")  # fmt: skip
DAYS = ("2025-03-01", "2026-11-15")

PRICED = sorted(
    {id for table in (catalogue().exact, catalogue().prefix) for id, row in table.items()
     if row.prices}
)  # fmt: skip


def prompts(id: str) -> list[Usage]:
    """Calls of several sizes: with and without cache, at each threshold and just above it."""
    around = [size for step in tier_thresholds(id) for size in (step, step + 1)]
    cached = [Usage(3, size - 1_003, 1_000, 700) for size in around]
    return [Usage(7, 60_000, 9_000, 1), Usage(900_000, 0, 0, 9), *cached]


def billed(id: str, provider: str, day: str, usage: Usage) -> PriceCalculation:
    """What genai-prices says that a call costs."""
    return calc_price(
        Billed(
            input_tokens=usage.sent,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            output_tokens=usage.output,
        ),
        id,
        provider_id=provider,
        genai_request_timestamp=datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC),
    )


def provider_of(id: str) -> str | None:
    """The first provider of ours with whom genai-prices finds a model; None: it finds none."""
    for provider in PROVIDERS:
        try:
            billed(id, provider, DAYS[-1], ZERO)
        except LookupError:
            continue
        return provider
    return None


def days(id: str) -> list[str]:
    """The days to compare: an early one, a late one, and both sides of every change of a price."""
    row = catalogue().exact.get(id) or catalogue().prefix[id]
    changes = [date.fromisoformat(price.since) for price in row.prices if price.since]
    sides = [day + timedelta(side) for day in changes for side in (-1, 0)]
    return [*DAYS, *sorted({day.isoformat() for day in sides})]


@pytest.mark.parametrize("first", ["claude", "gpt", "gemini", ""])
def test_costs_what_the_catalogue_is_made_from(first: str) -> None:
    """Every model, on every day, at every size of prompt, costs what genai-prices says."""
    others = ("claude", "gpt", "gemini")
    ids = [id for id in PRICED if (id.startswith(first) if first else not id.startswith(others))]
    found = [(id, provider) for id in ids if (provider := provider_of(id))]
    assert len(found) > 0.9 * len(ids)
    wrong = [
        (id, day, usage, ours, true)
        for id, provider in found
        for day in days(id)
        for usage in prompts(id)
        if (ours := compute_cost(id, day, tier_of(id, usage), usage))
        != pytest.approx(true := float(billed(id, provider, day, usage).total_price), rel=1e-9)
    ]
    assert wrong == []


def test_most_are_found() -> None:
    """The comparison leaves out hardly a model."""
    assert len([id for id in PRICED if provider_of(id) is None]) <= 6


def test_dated_ids_cost_the_same() -> None:
    """An id with its date, a provider's path or the mark of a long window is the same model."""
    usage = Usage(10, 150_000, 2_000, 400)
    expected = compute_cost("claude-sonnet-4-5", DAYS[-1], 0, usage)
    assert expected is not None
    for id in (
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5[1m]",
        "anthropic/Claude-Sonnet-4-5",
    ):
        assert compute_cost(id, DAYS[-1], 0, usage) == expected


@pytest.mark.parametrize("model", [None, "my-local-model", "<synthetic>"])
def test_unknown_models(model: str | None) -> None:
    """What a model costs that nobody knows is unknown, and not nothing."""
    assert tier_thresholds(model) == ()
    assert tier_of(model, Usage(900_000, 0, 0, 1)) == 0
    assert find_price(model, DAYS[-1], 0) is None
    assert compute_cost(model, DAYS[-1], 0, Usage(1, 0, 0, 1)) is None


def test_tiers() -> None:
    """A prompt is in the highest tier whose threshold it exceeds: at the threshold it is not."""
    tiers = {sent: tier_of("claude-sonnet-4-5", Usage(sent, 0, 0, 1))
             for sent in (0, 1, 200_000, 200_001, 999_999)}  # fmt: skip
    assert tiers == {0: 0, 1: 0, 200_000: 0, 200_001: 200_000, 999_999: 200_000}
    assert tier_thresholds("claude-sonnet-4-5") == (200_000,)


def test_tier_around() -> None:
    """Every prompt lies above the beginning of its tier and up to its end."""
    for sent in (0, 1, 199_999, 200_000, 200_001, 5_000_000):
        above, up_to = tier_bounds("claude-sonnet-4-5", sent)
        assert above < sent <= up_to


def test_price_before_the_first() -> None:
    """A day before a model's first price has none, unless it has always been so."""
    always = find_price("claude-sonnet-4-5", "1999-01-01", 0)
    assert always is not None
    assert always.since == ""
    later = [
        (id, row.prices[0].since)
        for table in (catalogue().exact, catalogue().prefix)
        for id, row in table.items()
        if row.prices and row.prices[0].since
    ]
    for id, since in later:
        assert find_price(id, "1999-01-01", 0) is None
        assert find_price(id, since, 0) is not None


def test_sums_cost_what_their_calls_cost() -> None:
    """Calls of one day and tier may be added up before they are priced."""
    calls = [Usage(3, 40_000 + 1_000 * i, 500, 100 + i) for i in range(20)]
    model, day = "claude-opus-4-5", DAYS[-1]
    each = [compute_cost(model, day, tier_of(model, call), call) for call in calls]
    together = compute_cost(model, day, 0, sum(calls, ZERO))
    assert together == pytest.approx(sum(price for price in each if price is not None))
