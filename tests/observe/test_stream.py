"""Streams pass through unchanged, synchronous or not, and are observed on the way."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from brimline.observe import Tracker

from .answers import delta, message, start

ITEMS: list[Any] = [start("m1", 60_000), {"type": "text"}, "not ours", None, delta(500)]


class Stream:
    """A stream of an SDK: iterated, entered and closed."""

    def __init__(self, items: list[Any] = ITEMS) -> None:
        self.items = items
        self.entered, self.left = False, False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __enter__(self) -> "Stream":
        self.entered = True
        return self

    def __exit__(self, *raised: object) -> None:
        self.left = True

    def close(self) -> str:
        """A method of its own."""
        return "closed"


class Helper(Stream):
    """A helper that collects the message while only the text is read."""

    @property
    def current_message_snapshot(self) -> Any:
        """The message so far; None before the first event."""
        assert self.items
        return message("m9", 70_000)


class Manager:
    """A context manager that returns the stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __enter__(self) -> Stream:
        return self.stream

    def __exit__(self, *raised: object) -> bool:
        self.stream.left = True
        return True

    async def __aenter__(self) -> "AsyncStream":
        return AsyncStream()

    async def __aexit__(self, *raised: object) -> None:
        self.stream.left = True


class AsyncStream:
    """An asynchronous stream."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in ITEMS:
            yield item


def test_every_item_passes_through_as_the_same_object() -> None:
    tracker = Tracker()
    passed = list(tracker.track(Stream()))
    assert all(out is item for out, item in zip(passed, ITEMS, strict=True))
    assert tracker.reading.held == 60_500


def test_reading_is_current_at_every_item() -> None:
    tracker = Tracker()
    states = [tracker.reading.state for _ in tracker.track(iter(ITEMS))]
    assert states == ["streaming"] * 4 + ["measured"]


def test_stream_of_a_subagent_is_observed_for_its_thread() -> None:
    tracker = Tracker()
    list(tracker.track(Stream(), thread="helper"))
    assert tracker.reading.sent is None
    assert tracker.threads["helper"].sent == 60_000


def test_asynchronous_stream_passes_through_unchanged() -> None:
    async def go() -> Tracker:
        tracker = Tracker()
        passed = [item async for item in tracker.track(AsyncStream())]
        assert all(out is given for out, given in zip(passed, ITEMS, strict=True))
        return tracker

    assert asyncio.run(go()).reading.held == 60_500


def test_stream_may_be_given_before_it_is_awaited() -> None:
    async def created() -> AsyncStream:
        return AsyncStream()

    async def go() -> Tracker:
        tracker = Tracker()
        async for _ in await tracker.track(created()):
            pass
        return tracker

    assert asyncio.run(go()).reading.held == 60_500


def test_stream_that_is_a_context_manager_is_entered_and_left() -> None:
    tracker, stream = Tracker(), Stream()
    with tracker.track(stream) as tracked:
        assert len(list(tracked)) == len(ITEMS)
        assert not stream.left
    assert (stream.entered, stream.left) == (True, True)


def test_stream_of_a_context_manager_is_observed() -> None:
    """Leaving is the manager's, exceptions too."""
    tracker, manager = Tracker(), Manager(Stream())
    with tracker.track(manager) as tracked:
        list(tracked)
        raise RuntimeError("the manager swallows this")
    assert manager.stream.left
    assert tracker.reading.held == 60_500


def test_stream_of_an_asynchronous_context_manager_is_observed() -> None:
    async def go() -> tuple[Tracker, Manager]:
        tracker, manager = Tracker(), Manager(Stream())
        async with tracker.track(manager) as tracked:
            async for _ in tracked:
                pass
        return tracker, manager

    tracker, manager = asyncio.run(go())
    assert manager.stream.left
    assert tracker.reading.held == 60_500


def test_message_of_a_helper_is_observed_if_only_its_text_is_read() -> None:
    tracker = Tracker()
    with tracker.track(Manager(Helper())):
        pass
    assert tracker.reading.sent == 70_000


def test_helper_without_a_message_is_no_error() -> None:
    tracker = Tracker()
    with tracker.track(Manager(Helper([]))):
        pass
    assert tracker.reading.sent is None


def test_other_attributes_are_the_streams_own() -> None:
    tracked = Tracker().track(Stream())
    assert tracked.close() == "closed"
    with pytest.raises(AttributeError):
        _ = tracked.nothing_of_the_kind


def test_item_with_invalid_counts_passes_and_changes_no_reading() -> None:
    tracker = Tracker()
    bad = {"type": "message_start", "message": message("m1", -5)}
    assert list(tracker.track([bad])) == [bad]
    assert tracker.reading.sent is None
