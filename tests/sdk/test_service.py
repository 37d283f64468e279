"""The context service: the tests of its design, then further properties."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimline
from brimline import Tracker
from brimline.context.window import ResolveContext, window_of
from brimline.errors import InvalidUsage
from brimline.sdk.service import (
    DEFAULT_CONTEXT_WINDOW,
    MODEL_CONTEXT_WINDOWS,
    ContextService,
    ContextStats,
    TokenUsage,
)

# The design's own tests.


def test_known_models_have_context_windows() -> None:
    assert "claude-sonnet" in MODEL_CONTEXT_WINDOWS
    assert "claude-opus" in MODEL_CONTEXT_WINDOWS


def test_total_input_includes_cache_tokens() -> None:
    usage = TokenUsage(input_tokens=1000, cache_creation_tokens=200, cache_read_tokens=300)
    assert usage.total_input == 1500


def test_percentage_never_exceeds_100() -> None:
    svc = ContextService()
    svc.update(input_tokens=300_000)
    assert svc.get_percentage() == 100.0
    assert svc.get_percentage_raw() > 100.0


def test_percentage_is_never_below_0() -> None:
    svc = ContextService()
    assert svc.get_percentage() == 0.0


def test_known_model_has_its_context_window() -> None:
    svc = ContextService(model="claude-sonnet")
    assert svc.context_window_size == 200_000


def test_unknown_model_uses_the_default_window() -> None:
    svc = ContextService(model="unknown-model-xyz")
    assert svc.context_window_size == DEFAULT_CONTEXT_WINDOW


def test_summary_has_percentage_and_window() -> None:
    svc = ContextService()
    svc.update(input_tokens=50_000)
    summary = svc.format_summary()
    assert "25.0%" in summary
    assert "200K" in summary


def test_summary_warns_above_the_limit() -> None:
    svc = ContextService()
    svc.update(input_tokens=250_000)
    summary = svc.format_summary()
    assert "WARNING" in summary


def test_is_near_limit_is_set_at_80_percent() -> None:
    svc = ContextService()
    svc.update(input_tokens=160_000)
    stats = svc.get_stats()
    assert stats.is_near_limit is True


def test_update_from_dict_takes_the_sdks_format() -> None:
    svc = ContextService()
    svc.update_from_dict(
        {
            "input_tokens": 1000,
            "output_tokens": 500,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 50,
        }
    )
    assert vars(svc)["_usage"].total_input == 1150


# Windows.


@pytest.mark.parametrize("model", MODEL_CONTEXT_WINDOWS)
def test_windows_of_the_design_agree_with_the_catalogue(model: str) -> None:
    resolved = window_of(ResolveContext(model=model))
    assert resolved is None or resolved.tokens == MODEL_CONTEXT_WINDOWS[model]
    assert ContextService(model).context_window_size == MODEL_CONTEXT_WINDOWS[model]
    assert ContextService(model.upper()).context_window_size == MODEL_CONTEXT_WINDOWS[model]


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("claude-opus-5-5", 1_000_000),
        ("claude-opus-5-5-20260801", 1_000_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("anthropic/claude-sonnet-4-5", 200_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
        ("sonnet[1m]", 1_000_000),
        ("gpt-5", 400_000),
        ("", 200_000),
    ],
)
def test_other_models_have_the_catalogues_window(model: str, size: int) -> None:
    service = ContextService(model)
    assert (service.model, service.context_window_size) == (model, size)


def test_set_window_goes_before_the_models() -> None:
    service = ContextService("claude-sonnet", window=50_000)
    service.update(input_tokens=40_000)
    assert (service.context_window_size, service.get_percentage()) == (50_000, 80.0)


@pytest.mark.parametrize("window", [0, -1, 1.5, "200000", True, math.nan], ids=repr)
def test_invalid_window_is_refused(window: Any) -> None:
    with pytest.raises(InvalidUsage) as caught:
        ContextService(window=window)
    assert caught.value.field == "window"


# Figures.


def test_reply_counts_in_the_total_but_not_in_the_percentage() -> None:
    usage = TokenUsage(1, 2, 4, 8)
    assert (usage.total_input, usage.total) == (13, 15)


def test_stats_have_all_figures_and_their_json() -> None:
    service = ContextService()
    service.update(3, 900, 10_000, 80_497)
    stats = service.get_stats()
    assert stats == ContextStats(45.3, 45.3, 90_500, 200_000, False, False)
    assert stats.to_dict() == {
        "percentage": 45.3,
        "total_input_tokens": 90_500,
        "context_window_size": 200_000,
        "is_near_limit": False,
    }
    assert service.format_summary() == "Context: 45.3% of 200K"


@pytest.mark.parametrize(
    ("sent", "near", "over"),
    [
        (159_800, False, False),
        (160_000, True, False),
        (200_000, True, False),
        (200_001, True, True),
    ],
)
def test_near_begins_at_80_percent_and_over_with_one_token_too_many(
    sent: int, near: bool, over: bool
) -> None:
    service = ContextService()
    service.update(input_tokens=sent)
    stats = service.get_stats()
    assert (stats.is_near_limit, stats.is_over_limit) == (near, over)
    assert ("WARNING" in service.format_summary()) is over


def test_update_replaces_the_last_and_reset_clears_it() -> None:
    service = ContextService("claude-opus-5-5")
    service.update(input_tokens=500_000)
    service.update(cache_read_tokens=100_000)
    assert service.format_summary() == "Context: 10.0% of 1M"
    service.reset()
    assert service.get_stats() == ContextStats(0.0, 0.0, 0, 1_000_000, False, False)


def test_missing_or_null_cache_counts_are_0() -> None:
    service = ContextService()
    service.update_from_dict(
        {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": None, "speed": "fast"}
    )
    assert service.get_stats().total_input_tokens == 7


def test_all_zero_usage_is_no_tokens() -> None:
    service = ContextService()
    service.update_from_dict({"input_tokens": 0, "output_tokens": 0})
    assert service.get_percentage() == 0.0


# Bad counts.

BAD: list[Any] = [-1, "7", 7.0, math.nan, True, [1]]
ANSWER: dict[str, object] = {
    "input_tokens": 1,
    "output_tokens": 2,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 4,
}
STATS: dict[str, object] = {
    "tokens": {"input": 1, "output": 2, "cache_creation": 3, "cache_read": 4},
    "context_percentage": 0.0,
    "context_window_size": 200_000,
}


@pytest.mark.parametrize("value", [*BAD, None], ids=repr)
@pytest.mark.parametrize(
    "field", ["input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens"]
)
def test_invalid_count_is_refused_by_name_and_changes_nothing(field: str, value: Any) -> None:
    service = ContextService()
    service.update(input_tokens=50_000)
    with pytest.raises(InvalidUsage) as caught:
        service.update(**{"input_tokens": 1, field: value})
    assert caught.value.field == field
    assert service.get_percentage() == 25.0


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("field", ANSWER)
def test_invalid_count_in_a_dict_is_refused_by_its_key(field: str, value: Any) -> None:
    service = ContextService()
    service.update(input_tokens=50_000)
    with pytest.raises(InvalidUsage) as caught:
        service.update_from_dict({**ANSWER, field: value})
    assert caught.value.field == field
    assert service.get_percentage() == 25.0


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
def test_usage_without_prompt_or_reply_is_refused_and_changes_nothing(field: str) -> None:
    service = ContextService()
    service.update(input_tokens=50_000)
    left = {name: count for name, count in ANSWER.items() if name != field}
    with pytest.raises(InvalidUsage, match="it is missing") as caught:
        service.update_from_dict(left)
    assert caught.value.field == field
    assert service.get_percentage() == 25.0


# A run's stats.

COUNTS = st.integers(0, 2_000_000)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.integers(1, 2_000_000))
def test_run_stats_decode_to_the_same_figures(
    sent: int, output: int, cache_write: int, read: int, window: int
) -> None:
    service = ContextService("claude-opus", window)
    service.update(sent, output, cache_write, read)
    stats = json.loads(json.dumps(service.run_stats()))
    again = ContextService.from_run_stats(stats, model="claude-opus")
    assert again.get_stats() == service.get_stats()
    assert again.run_stats() == service.run_stats()
    assert again.model == "claude-opus"


def test_run_stats_have_the_shape_of_the_design() -> None:
    service = ContextService()
    service.update(1_000, 2_000, 9_000, 80_000)
    assert service.run_stats() == {
        "tokens": {"input": 1_000, "output": 2_000, "cache_creation": 9_000, "cache_read": 80_000},
        "context_percentage": 45.0,
        "context_window_size": 200_000,
    }


def test_run_stats_without_tokens_have_a_window_only() -> None:
    assert ContextService().run_stats() == {"context_window_size": 200_000}
    assert ContextService.from_run_stats({}).context_window_size == 200_000
    read = ContextService.from_run_stats({"tokens": None}, model="claude-opus-5-5")
    assert (read.context_window_size, read.get_percentage()) == (1_000_000, 0.0)


def test_unbounded_percentage_of_an_older_program_is_not_used() -> None:
    tokens = {"input": 1_400_000, "output": 0, "cache_creation": 0, "cache_read": 0}
    stats = {"tokens": tokens, "context_percentage": 700.0, "message_count": 10}
    service = ContextService.from_run_stats(stats)
    assert (service.get_percentage(), service.get_percentage_raw()) == (100.0, 700.0)
    assert service.run_stats()["context_percentage"] == 100.0


@pytest.mark.parametrize("value", [*BAD, None], ids=repr)
@pytest.mark.parametrize("field", ["input", "output", "cache_creation", "cache_read"])
def test_invalid_count_of_run_stats_is_refused_by_its_place(field: str, value: Any) -> None:
    tokens = {"input": 1, "output": 2, "cache_creation": 3, "cache_read": 4, field: value}
    with pytest.raises(InvalidUsage) as caught:
        ContextService.from_run_stats({**STATS, "tokens": tokens})
    assert caught.value.field == f"tokens.{field}"


@pytest.mark.parametrize("value", [*BAD, 0], ids=repr)
def test_invalid_window_of_run_stats_is_refused(value: Any) -> None:
    with pytest.raises(InvalidUsage) as caught:
        ContextService.from_run_stats({**STATS, "context_window_size": value})
    assert caught.value.field == "context_window_size"


def test_tokens_that_are_only_a_sum_give_no_occupancy() -> None:
    with pytest.raises(InvalidUsage, match=r"tokens\.input"):
        ContextService.from_run_stats({"tokens": 5_000})


def test_empty_usage_is_zero_as_in_the_earlier_design() -> None:
    service = ContextService()
    service.update(input_tokens=5_000)
    service.update_from_dict({})
    assert service.get_percentage() == 0.0


def test_withdrawn_model_keeps_its_own_window() -> None:
    assert ContextService("gemini-3-pro").context_window_size == 1_048_576
    assert Tracker(model="gemini-3-pro").reading.window is None


def test_names_of_the_earlier_design_are_public() -> None:
    assert brimline.DEFAULT_CONTEXT_WINDOW == DEFAULT_CONTEXT_WINDOW
    assert brimline.MODEL_CONTEXT_WINDOWS["claude-sonnet"] == 200_000
