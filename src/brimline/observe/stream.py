"""Wrap an SDK's stream to observe its items."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, cast

from brimline.errors import BrimlineError

LOGGER = logging.getLogger("brimline.observe")


class Tracked:
    """Wraps a synchronous or asynchronous stream, or a context manager of one.

    Every item is observed, then passed on unchanged, even if it cannot be read: measuring never
    breaks the agent. All other attributes are the stream's own.
    """

    def __init__(self, stream: object, observe: Callable[[object], object]) -> None:
        self._stream: Any = stream
        self._observe = observe
        self._items: Any = None
        self._entered: Tracked | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._items is None:
            self._items = iter(self._stream)
        return self._observe_item(next(self._items))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._items is None:
            self._items = aiter(self._stream)
        return self._observe_item(await anext(self._items))

    def __await__(self) -> "Generator[Any, Any, Tracked]":
        return self._awaited().__await__()

    async def _awaited(self) -> "Tracked":
        return Tracked(await cast("Awaitable[object]", self._stream), self._observe)

    def __enter__(self) -> "Tracked":
        return self._enter(self._stream.__enter__())

    def __exit__(self, *raised: Any) -> Any:
        self._observe_snapshot()
        return self._stream.__exit__(*raised)

    async def __aenter__(self) -> "Tracked":
        return self._enter(await self._stream.__aenter__())

    async def __aexit__(self, *raised: Any) -> Any:
        self._observe_snapshot()
        return await self._stream.__aexit__(*raised)

    def _enter(self, entered: object) -> "Tracked":
        """Wrap the stream that entering returned."""
        self._entered = self if entered is self._stream else Tracked(entered, self._observe)
        return self._entered

    def _observe_snapshot(self) -> None:
        """Observe the message that a helper gathered, in case only its text was iterated."""
        inner = self._entered._stream if self._entered else self._stream
        try:
            snapshot = inner.current_message_snapshot
        except (AttributeError, AssertionError):  # no helper, or no event yet
            return
        self._try_observe(snapshot)

    def _observe_item(self, item: Any) -> Any:
        self._try_observe(item)
        return item

    def _try_observe(self, item: object) -> None:
        try:
            self._observe(item)
        except BrimlineError as error:
            LOGGER.debug("stream item without readable usage: %s", error)
