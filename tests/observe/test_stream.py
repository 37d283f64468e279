"""Streams pass through unchanged, synchronous or not, and are observed while they flow."""

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
        """Something of its own."""
        return "closed"


class Helper(Stream):
    """A helper that gathers the message itself, as the text alone is read."""

    @property
    def current_message_snapshot(self) -> Any:
        """The message so far; there is none before the first event."""
        assert self.items
        return message("m9", 70_000)


class Manager:
    """What has to be entered to get the stream."""

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
    """The same, asynchronous."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in ITEMS:
            yield item


def test_items_are_unchanged() -> None:
    """Every item comes out as it went in, the same object, whether it tells anything or not."""
    tracker = Tracker()
    passed = list(tracker.track(Stream()))
    assert all(out is given for out, given in zip(passed, ITEMS, strict=True))
    assert tracker.reading.held == 60_500


def test_live() -> None:
    """The reading is current at every item."""
    tracker = Tracker()
    states = [tracker.reading.state for _ in tracker.track(iter(ITEMS))]
    assert states == ["streaming"] * 4 + ["measured"]


def test_thread() -> None:
    """A subagent's stream is observed for its own thread."""
    tracker = Tracker()
    list(tracker.track(Stream(), thread="helper"))
    assert tracker.reading.sent is None
    assert tracker.threads["helper"].sent == 60_000


def test_asynchronous() -> None:
    """An asynchronous stream is passed through alike."""

    async def go() -> Tracker:
        tracker = Tracker()
        passed = [item async for item in tracker.track(AsyncStream())]
        assert all(out is given for out, given in zip(passed, ITEMS, strict=True))
        return tracker

    assert asyncio.run(go()).reading.held == 60_500


def test_awaited() -> None:
    """A stream that has to be awaited first can be given before it is."""

    async def created() -> AsyncStream:
        return AsyncStream()

    async def go() -> Tracker:
        tracker = Tracker()
        async for _ in await tracker.track(created()):
            pass
        return tracker

    assert asyncio.run(go()).reading.held == 60_500


def test_entered() -> None:
    """A stream that is a context manager is entered and left as before."""
    tracker, stream = Tracker(), Stream()
    with tracker.track(stream) as tracked:
        assert len(list(tracked)) == len(ITEMS)
        assert not stream.left
    assert (stream.entered, stream.left) == (True, True)


def test_manager() -> None:
    """What entering gives is tracked; leaving is the manager's, exceptions too."""
    tracker, manager = Tracker(), Manager(Stream())
    with tracker.track(manager) as tracked:
        list(tracked)
        raise RuntimeError("the manager swallows this")
    assert manager.stream.left
    assert tracker.reading.held == 60_500


def test_asynchronous_manager() -> None:
    """The same, asynchronous."""

    async def go() -> tuple[Tracker, Manager]:
        tracker, manager = Tracker(), Manager(Stream())
        async with tracker.track(manager) as tracked:
            async for _ in tracked:
                pass
        return tracker, manager

    tracker, manager = asyncio.run(go())
    assert manager.stream.left
    assert tracker.reading.held == 60_500


def test_text_alone() -> None:
    """Where only a helper's text is read, its message is observed when it is left."""
    tracker = Tracker()
    with tracker.track(Manager(Helper())):
        pass
    assert tracker.reading.sent == 70_000


def test_nothing_came() -> None:
    """A helper that got nothing breaks nothing."""
    tracker = Tracker()
    with tracker.track(Manager(Helper([]))):
        pass
    assert tracker.reading.sent is None


def test_attributes() -> None:
    """Everything else is the stream's own."""
    tracked = Tracker().track(Stream())
    assert tracked.close() == "closed"
    with pytest.raises(AttributeError):
        _ = tracked.nothing_of_the_kind


def test_bad_counts_do_not_break_the_stream() -> None:
    """An item whose counts cannot be is passed on; the reading stays as it was."""
    tracker = Tracker()
    bad = {"type": "message_start", "message": message("m1", -5)}
    assert list(tracker.track([bad])) == [bad]
    assert tracker.reading.sent is None
