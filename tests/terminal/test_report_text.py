"""Quotas and the prompt cache as text."""

import time

import pytest

from brimline.context.client_report import PromptCache, Quota, Quotas
from brimline.terminal.report_text import describe_cache, describe_quotas, format_moment

NOON = time.mktime((2026, 11, 17, 12, 0, 0, 0, 0, -1))  # a Tuesday


@pytest.mark.parametrize(
    ("hours", "text"),
    [(2.5, "14:30"), (-3, "09:00"), (21, "Wed 09:00"), (100, "Sat 16:00"), (15 * 24, "2 Dec")],
)
def test_moment_has_its_day_if_that_is_not_today(hours: float, text: str) -> None:
    assert format_moment(NOON + hours * 3_600, NOON) == text


def test_quotas_have_what_is_used_their_reset_and_the_age_of_the_report() -> None:
    quotas = Quotas(NOON - 180, Quota(62.0, NOON + 9_000), Quota(41.25, NOON + 75_600))
    assert describe_quotas(quotas, NOON) == (
        "5h 62.0% used, resets 14:30; 7d 41.2% used, resets Wed 09:00 (reported 3m ago)"
    )


def test_cache_is_warm_or_expired_with_what_is_written_again() -> None:
    warm = PromptCache(
        warm=True, expires_at=NOON + 300, recache_tokens_if_cold=82_000, hit_ratio=0.9
    )
    assert describe_cache(warm, NOON) == (
        "warm until 12:05 (reported), 82K tokens to write again if it expires, "
        "90.0% of the input read from it"
    )
    cold = PromptCache(
        origin="computed", warm=False, expires_at=NOON - 60, recache_tokens_if_cold=82_000
    )
    assert describe_cache(cold, NOON) == (
        "expired 11:59 (computed), 82K tokens to write again with the next call"
    )
    assert describe_cache(PromptCache(warm=False, expires_at=NOON - 60), NOON) == (
        "expired 11:59 (reported)"
    )


def test_cache_that_expired_days_ago_is_not_described() -> None:
    cache = PromptCache(origin="computed", warm=False, expires_at=NOON)
    assert describe_cache(cache, NOON + 86_400) == "expired Tue 12:00 (computed)"
    assert describe_cache(cache, NOON + 86_401) is None


def test_cache_that_is_not_used_or_unknown_is_not_cold() -> None:
    unused = PromptCache(warm=False, caching_observed=False)
    assert describe_cache(unused, NOON) == "none: no reply reported cached tokens"
    assert describe_cache(PromptCache(warm=False, caching_observed=True), NOON) is None
    assert describe_cache(PromptCache(expires_at=NOON), NOON) is None
