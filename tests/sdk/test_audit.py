"""Each update is one structured log record with its inputs."""

import logging
from typing import Any, cast

import pytest

from brimline.sdk import Tracker
from brimline.sdk.audit import log_update

from .answers import message


def test_record_has_components_formulas_reading_and_calls(caplog: pytest.LogCaptureFixture) -> None:
    tracker = Tracker(window=200_000, agent="arbiter")
    with caplog.at_level(logging.INFO, logger="brimline.observe"):
        tracker.observe(message("m1", 10, 5, usage={"cache_creation_input_tokens": 20_000}))
        tracker.observe(message("m2", 20, 7, usage={"cache_read_input_tokens": 20_000}))
        tracker.observe(message("m2", 20, 7, usage={"cache_read_input_tokens": 20_000}))
    first, second = caplog.records
    assert first.getMessage() == "context of main"
    fields = vars(second)
    assert {name: fields[name] for name in (
        "max_cache_read", "sum_input", "sum_output", "sum_cache_creation", "unique_calls",
        "formula_max_cache_read_plus_sums", "formula_sum_cache_creation",
        "sent", "held", "percent", "window", "state", "call_id", "context_thread", "agent",
        "formula_max_cache_read_plus_sums_percent", "formula_sum_cache_creation_percent",
    )} == {
        "max_cache_read": 20_000, "sum_input": 30, "sum_output": 12,
        "sum_cache_creation": 20_000, "unique_calls": 2,
        "formula_max_cache_read_plus_sums": 20_042, "formula_sum_cache_creation": 20_042,
        "sent": 20_020, "held": 20_027, "percent": 10.0, "window": 200_000,
        "state": "measured", "call_id": "m2", "context_thread": "main", "agent": "arbiter",
        "formula_max_cache_read_plus_sums_percent": 10.0,
        "formula_sum_cache_creation_percent": 10.0,
    }  # fmt: skip


def test_disabled_logging_computes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="brimline.observe"):
        Tracker().observe(message("m1", 10))
        log_update(None, cast("Any", None), cast("Any", None))  # the figures of None would raise
    assert caplog.records == []


def test_record_of_a_reset_has_none_for_unknown(caplog: pytest.LogCaptureFixture) -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 10))
    with caplog.at_level(logging.INFO, logger="brimline.observe"):
        tracker.reset()
    (record,) = caplog.records
    assert (vars(record)["sent"], vars(record)["window"]) == (None, 200_000)


def test_formulas_start_again_after_a_reset(caplog: pytest.LogCaptureFixture) -> None:
    tracker = Tracker()
    tracker.observe(message("m1", 10, usage={"cache_read_input_tokens": 90_000}))
    with caplog.at_level(logging.INFO, logger="brimline.observe"):
        tracker.reset()
        tracker.observe(message("m2", 20, 7))
    empty, first = (vars(record) for record in caplog.records)
    names = ("unique_calls", "max_cache_read", "formula_max_cache_read_plus_sums")
    assert [empty[name] for name in names] == [0, 0, None]
    assert [first[name] for name in names] == [1, 0, 27]
