"""Costs equal those of genai-prices, for every model of the catalogue."""

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from genai_prices import Usage as Billed
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from brimline.context.events import Call, Spent
from brimline.context.prices import (
    Cost,
    compute_cost,
    cost_of,
    day_of,
    find_price,
    price_of,
    tier_bounds,
    tier_of,
    tier_thresholds,
)
from brimline.context.usage import ZERO, Usage
from brimline.context.window import catalogue

PROVIDERS = ("anthropic", "openai", "google", "deepseek", "mistral", "moonshotai", "x-ai", "zai",
             "minimax")  # fmt: skip
DAYS = ("2025-03-01", "2026-11-15")
NOON = datetime.fromisoformat("2026-11-15T12:00:00").timestamp()

PRICED = sorted(
    {id for table in (catalogue().exact, catalogue().prefix) for id, row in table.items()
     if row.prices}
)  # fmt: skip


def prompts(id: str) -> list[Usage]:
    """Calls of several sizes: with and without cache, at each threshold and just above it."""
    threshold_sizes = [size for step in tier_thresholds(id) for size in (step, step + 1)]
    cached = [Usage(3, size - 1_003, 1_000, 700) for size in threshold_sizes]
    hour = Usage(7, 60_000, 9_000, 1, cache_write_1h=8_000)
    return [Usage(7, 60_000, 9_000, 1), Usage(900_000, 0, 0, 9), hour, *cached]


def billed(
    id: str, provider: str, day: str, usage: Usage, service_tier: str | None = None
) -> PriceCalculation:
    """The cost of a call by genai-prices."""
    return calc_price(
        Billed(
            input_tokens=usage.sent,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            cache_write_1h_tokens=usage.cache_write_1h,
            output_tokens=usage.output,
        ),
        id,
        provider_id=provider,
        genai_request_timestamp=datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC),
        price_context={"service_tier": service_tier} if service_tier else None,
    )


def provider_of(id: str) -> str | None:
    """The first of our providers with which genai-prices finds a model, or None."""
    for provider in PROVIDERS:
        try:
            billed(id, provider, DAYS[-1], ZERO)
        except LookupError:
            continue
        return provider
    return None


def days(id: str) -> list[str]:
    """The days to compare: an early one, a late one, and both sides of every price change."""
    row = catalogue().exact.get(id) or catalogue().prefix[id]
    changes = [date.fromisoformat(price.since) for price in row.prices if price.since]
    sides = [day + timedelta(side) for day in changes for side in (-1, 0)]
    return [*DAYS, *sorted({day.isoformat() for day in sides})]


@pytest.mark.parametrize("first", ["claude", "gpt", "gemini", ""])
def test_every_model_costs_what_genai_prices_says(first: str) -> None:
    families = ("claude", "gpt", "gemini")
    ids = [id for id in PRICED if (id.startswith(first) if first else not id.startswith(families))]
    compared = [(id, provider) for id in ids if (provider := provider_of(id))]
    assert len(compared) > 0.9 * len(ids)
    wrong = [
        (id, day, usage, ours, true)
        for id, provider in compared
        for day in days(id)
        for usage in prompts(id)
        if (ours := compute_cost(id, day, tier_of(id, usage), usage))
        != pytest.approx(true := float(billed(id, provider, day, usage).total_price), rel=1e-9)
    ]
    assert wrong == []


def test_comparison_covers_nearly_every_model() -> None:
    assert len([id for id in PRICED if provider_of(id) is None]) <= 6


def test_variants_of_a_model_id_cost_the_same() -> None:
    usage = Usage(10, 150_000, 2_000, 400)
    expected = compute_cost("claude-sonnet-4-5", DAYS[-1], 0, usage)
    assert expected is not None
    for id in (
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5[1m]",
        "anthropic/Claude-Sonnet-4-5",
    ):
        assert compute_cost(id, DAYS[-1], 0, usage) == expected


def test_cache_write_for_an_hour_costs_twice_the_input() -> None:
    model, day = "claude-opus-4-5", DAYS[-1]
    hour = compute_cost(model, day, 0, Usage(0, 0, 1_000, 0, cache_write_1h=1_000))
    assert hour == compute_cost(model, day, 0, Usage(2_000, 0, 0, 0))
    half = compute_cost(model, day, 0, Usage(0, 0, 1_000, 0, cache_write_1h=500))
    assert half == pytest.approx(5e-6 * (2 * 500 + 1.25 * 500))


@pytest.mark.parametrize("service_tier", ["priority", "fast", "flex", "default", "other"])
def test_service_tier_costs_what_genai_prices_says(service_tier: str) -> None:
    """A tier that has no price costs what the standard tier costs."""
    ids = [id for id in PRICED if id.startswith(("gpt-5", "gpt-4", "o3", "o4"))]
    compared = [id for id in ids if provider_of(id) == "openai"]
    for id, day in ((id, day) for id in compared for day in ("2026-10-11", "2026-10-12", DAYS[-1])):
        for usage in prompts(id):
            ours = compute_cost(id, day, tier_of(id, usage), usage, service_tier)
            true = billed(id, "openai", day, usage, service_tier).total_price
            assert ours == pytest.approx(float(true), rel=1e-9), (id, day, usage)


@pytest.mark.parametrize(
    ("model", "multiple"),
    [("claude-opus-4-6", 6), ("claude-opus-4-8", 2), ("claude-opus-5", 2), ("claude-opus-4-5", 1)],
)
def test_fast_mode_multiplies_every_price(model: str, multiple: int) -> None:
    usage = Usage(1_000, 40_000, 9_000, 700, cache_write_1h=8_000)
    standard = compute_cost(model, DAYS[-1], 0, usage)
    assert standard is not None
    fast = compute_cost(model, DAYS[-1], 0, usage, "fast")
    assert fast == pytest.approx(multiple * standard)


@pytest.mark.parametrize("model", [None, "my-local-model", "<synthetic>"])
def test_cost_of_an_unknown_model_is_unknown(model: str | None) -> None:
    assert tier_thresholds(model) == ()
    assert tier_of(model, Usage(900_000, 0, 0, 1)) == 0
    assert find_price(model, DAYS[-1], 0) is None
    assert compute_cost(model, DAYS[-1], 0, Usage(1, 0, 0, 1)) is None


def test_cost_of_the_client_counts_if_cached_tokens_have_no_price() -> None:
    """The catalogue would bill them as input, which may be ten times as much."""
    model, usage = "mistral-large-latest", Usage(1_000, 90_000, 0, 100)
    price = find_price(model, DAYS[-1], 0)
    assert price is not None
    assert (price.cache_read, price.cached) == (None, price.input)
    recorded = Call(at=NOON, id="c", usage=usage, model=model, cost=0.05)
    assert cost_of(recorded) == Cost(0.05, by_client=True)
    unrecorded = cost_of(msgspec.structs.replace(recorded, cost=None))
    assert unrecorded == Cost((91_000 * price.input + 100 * price.output) / 1e6)


def test_spending_costs_what_a_call_costs_except_for_the_tier_of_its_sum() -> None:
    model, usage = "claude-sonnet-4-5", Usage(250_000, 0, 0, 10)
    call = Call(at=NOON, id="c", usage=usage, model=model, service_tier="fast")
    spent = Spent(at=NOON, id="c", usage=usage, model=model, service_tier="fast")
    assert cost_of(spent) == cost_of(call)
    total = cost_of(msgspec.structs.replace(spent, id=None))  # of prompts of unknown sizes
    expected = compute_cost(model, day_of(NOON), 0, usage)
    assert total is not None
    assert total.dollars == expected
    assert cost_of(call) != total


def test_call_has_the_price_of_its_day_and_without_a_time_the_latest() -> None:
    day, latest = DAYS[0], "9999-12-31"
    model = next(id for id in PRICED if find_price(id, day, 0) != find_price(id, latest, 0))
    call = Call(id="c", usage=Usage(1, 0, 0, 1), model=model)
    assert price_of(call) == find_price(model, latest, 0)
    noon = datetime.fromisoformat(f"{day}T12:00:00").timestamp()
    assert price_of(msgspec.structs.replace(call, at=noon)) == find_price(model, day, 0)


@pytest.mark.parametrize("cost", [None, 0.5])
def test_cost_of_an_unknown_model_is_the_clients(cost: float | None) -> None:
    call = Call(at=NOON, id="c", usage=Usage(1, 0, 0, 1), model="gpt-5.3-codex-spark", cost=cost)
    assert cost_of(call) == (None if cost is None else Cost(cost, by_client=True))
    assert price_of(call) is None


def test_prompt_at_a_threshold_is_in_the_lower_tier() -> None:
    tiers = {sent: tier_of("claude-sonnet-4-5", Usage(sent, 0, 0, 1))
             for sent in (0, 1, 200_000, 200_001, 999_999)}  # fmt: skip
    assert tiers == {0: 0, 1: 0, 200_000: 0, 200_001: 200_000, 999_999: 200_000}
    assert tier_thresholds("claude-sonnet-4-5") == (200_000,)


def test_prompt_is_within_the_bounds_of_its_tier() -> None:
    for sent in (0, 1, 199_999, 200_000, 200_001, 5_000_000):
        above, up_to = tier_bounds("claude-sonnet-4-5", sent)
        assert above < sent <= up_to


def test_day_before_the_first_price_has_none() -> None:
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
    calls = [Usage(3, 40_000 + 1_000 * i, 500, 100 + i) for i in range(20)]
    model, day = "claude-opus-4-5", DAYS[-1]
    each = [compute_cost(model, day, tier_of(model, call), call) for call in calls]
    together = compute_cost(model, day, 0, sum(calls, ZERO))
    assert together == pytest.approx(sum(price for price in each if price is not None))
