"""Listeners of levels: asynchronous ones, and what they raise."""

import asyncio
import logging

import pytest

from brimline.sdk import LevelReached, Tracker

from .answers import message


def listening() -> tuple[Tracker, list[float]]:
    """A tracker with an asynchronous listener, and the levels that it got."""
    tracker = Tracker(window=100_000)
    reported: list[float] = []

    @tracker.on_level
    async def note(reached: LevelReached) -> None:
        await asyncio.sleep(0)
        reported.append(reached.level)

    return tracker, reported


async def test_asynchronous_listener_runs_in_the_event_loop() -> None:
    tracker, reported = listening()
    tracker.observe(message("m1", 55_000))
    assert reported == []
    await asyncio.sleep(0.01)
    assert reported == [50.0]


def test_asynchronous_listener_without_a_loop_runs_to_its_end() -> None:
    tracker, reported = listening()
    tracker.observe(message("m1", 55_000))
    assert reported == [50.0]


async def test_error_of_an_asynchronous_listener_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tracker = Tracker(window=100_000)

    @tracker.on_level
    async def fail(reached: LevelReached) -> None:
        raise RuntimeError("stop here")

    with caplog.at_level(logging.ERROR, logger="brimline.observe"):
        assert tracker.observe(message("m1", 55_000))
        await asyncio.sleep(0.01)
    (record,) = caplog.records
    assert "stop here" in str(record.exc_info)


def test_error_of_an_asynchronous_listener_without_a_loop_is_raised() -> None:
    tracker = Tracker(window=100_000)

    async def fail(reached: LevelReached) -> None:
        raise RuntimeError("stop here")

    assert tracker.on_level(fail) is fail
    with pytest.raises(RuntimeError, match="stop here"):
        tracker.observe(message("m1", 55_000))
