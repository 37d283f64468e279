"""What a client reports of quotas and the prompt cache: merged, stored, and as it is later."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.client_report import (
    MAX_MISSES,
    NO_REPORT,
    REPEAT_S,
    ClientReport,
    MissCause,
    PromptCache,
    Quota,
    Quotas,
    ReportedMiss,
    SpendLimit,
    decode_report,
)

NOW = 1_790_000_000.0
FIVE_HOURS = Quota(62.0, NOW + 3_600)
SEVEN_DAYS = Quota(44.5, NOW + 90_000)
SPEND = SpendLimit(108.0, NOW + 7_200, used_usd=216.0, limit_usd=200.0, period="monthly")
QUOTAS = Quotas(NOW, FIVE_HOURS, SEVEN_DAYS, SPEND)
CACHE = PromptCache(at=NOW, warm=True, ttl="5m", expires_at=NOW + 300, requests=3)


def test_quota_that_was_reset_is_unknown() -> None:
    assert QUOTAS.current(NOW) == QUOTAS
    later = QUOTAS.current(NOW + 3_600)
    assert later == Quotas(NOW, None, SEVEN_DAYS, SPEND)
    assert later is not None
    assert list(later.known) == ["7d", "spend"]
    assert QUOTAS.current(NOW + 100_000) is None


def test_cache_goes_cold_without_a_report() -> None:
    assert CACHE.current(NOW + 299) == CACHE
    assert CACHE.current(NOW + 300).warm is False
    assert PromptCache(warm=True).current(NOW).warm is True


def test_next_change_is_the_first_end_that_is_still_to_come() -> None:
    report = ClientReport(QUOTAS, CACHE)
    assert report.next_change(NOW) == NOW + 300
    assert report.next_change(NOW + 300) == NOW + 3_600
    assert report.next_change(NOW + 100_000) is None
    assert NO_REPORT.next_change(NOW) is None
    assert ClientReport(prompt_cache=PromptCache()).next_change(NOW) is None


def test_report_without_a_part_leaves_what_was_reported_before() -> None:
    report = NO_REPORT.update(QUOTAS, None).update(None, CACHE)
    assert report == ClientReport(QUOTAS, CACHE)
    assert report.update(None, None) is report


def test_repeated_report_is_no_change_for_a_while() -> None:
    report = ClientReport(QUOTAS, CACHE)
    soon, late = NOW + REPEAT_S - 1, NOW + REPEAT_S
    again = (msgspec.structs.replace(QUOTAS, at=soon), msgspec.structs.replace(CACHE, at=soon))
    assert report.update(*again) is report
    later = (msgspec.structs.replace(QUOTAS, at=late), msgspec.structs.replace(CACHE, at=late))
    assert report.update(*later) == ClientReport(*later)
    other = msgspec.structs.replace(CACHE, at=soon, requests=4)
    assert report.update(None, other) == ClientReport(QUOTAS, other)


def missed(at: float, *causes: str, requests: int = 1) -> PromptCache:
    """A cache whose last miss was at a time."""
    cause = MissCause(causes) if causes else None
    return PromptCache(at=at, last_miss_at=at, last_miss_cause=cause, requests=requests)


def test_misses_with_causes_are_kept_each_once_and_the_last_of_them() -> None:
    report = NO_REPORT.update(None, missed(NOW, "model_changed"))
    report = report.update(None, missed(NOW, "model_changed", requests=2))
    report = report.update(None, missed(NOW + 5))
    assert report.misses == (ReportedMiss(NOW, ("model_changed",)),)
    for number in range(MAX_MISSES + 3):
        report = report.update(None, missed(NOW + 10 + number, "tools_changed"))
    assert len(report.misses) == MAX_MISSES
    assert report.misses[0].at == NOW + 13


def test_stored_report_is_read_as_it_was_written() -> None:
    report = ClientReport(QUOTAS, CACHE).update(None, missed(NOW + 1, "model_changed"))
    assert decode_report(report.encode()) == report
    assert NO_REPORT.encode() is None


@pytest.mark.parametrize("text", [None, "", "{", '{"quotas": 5}', '{"prompt_cache": {"warm": 1}}'])
def test_unreadable_report_is_none(text: str | None) -> None:
    assert decode_report(text) == NO_REPORT


@given(st.text())
def test_any_stored_text_is_a_report_or_none(text: str) -> None:
    assert isinstance(decode_report(text), ClientReport)
