"""Answers that a framework reports: refused ones are logged once, and never raised."""

import logging
import subprocess
import sys

import pytest

from brimline import LevelReached, Tracker
from brimline.integrations.answer_observer import AnswerObserver

USAGE = {"input_tokens": 90_000, "output_tokens": 500}
PART = {
    "type": "AIMessageChunk",
    "id": "x",
    "response_metadata": {},
    "usage_metadata": {"input_tokens": 90_000, "output_tokens": 0, "total_tokens": 90_000},
}


def test_answer_is_observed_in_its_thread() -> None:
    tracker = Tracker()
    observer = AnswerObserver(tracker, "reviewer")
    observer.observe(USAGE)
    observer.observe(USAGE, "writer")
    assert {name: reading.sent for name, reading in tracker.threads.items()} == {
        "reviewer": 90_000,
        "writer": 90_000,
    }


def test_refused_answers_are_logged_once_for_each_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = Tracker()
    observer = AnswerObserver(tracker)
    for _ in range(2):
        observer.observe({**USAGE, "input_tokens": -1})
        observer.observe("no answer")
    first, second = [record.getMessage() for record in caplog.records]
    assert first.startswith("a model call is not measured: usage field 'input_tokens'")
    assert "str" in second
    assert not tracker.threads


def test_exception_of_a_listener_is_raised() -> None:
    """It may stop a loop, as in `observe`."""
    tracker = Tracker(window=100_000)

    def stop(_: LevelReached) -> None:
        raise RuntimeError("stop")

    tracker.on_level(stop)
    with pytest.raises(RuntimeError, match="stop"):
        AnswerObserver(tracker).observe(USAGE)


def test_aborted_answer_ends_its_call() -> None:
    tracker = Tracker()
    AnswerObserver(tracker).observe_aborted(PART)
    assert (tracker.reading.sent, tracker.reading.state) == (90_000, "measured")


def test_aborted_answer_without_usage_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    tracker = Tracker()
    with caplog.at_level(logging.WARNING):
        AnswerObserver(tracker).observe_aborted({**PART, "usage_metadata": None})
    assert list(tracker.unread_streams.values()) == [1]


FRAMEWORKS = (
    "agents",
    "claude_agent_sdk",
    "langchain_core",
    "litellm",
    "opentelemetry",
    "pydantic_ai",
)


def test_import_of_the_package_imports_no_framework() -> None:
    script = "import sys, brimline.integrations; from brimline import Tracker; print(*sys.modules)"
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert not set(completed.stdout.split()) & set(FRAMEWORKS)
