"""A stream that is observed while it flows, and is otherwise what it was."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, cast

from brimline.errors import BrimlineError

LOGGER = logging.getLogger("brimline.observe")


class Tracked:
    """Stands before a stream of an SDK, synchronous or asynchronous, entered or not.

    Every item is passed on unchanged, after it was observed. An item that tells nothing, or nothing
    that can be read, is passed on all the same: the agent is never broken by being measured.
    Everything else is the stream's own.
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
        return self._seen(next(self._items))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._items is None:
            self._items = aiter(self._stream)
        return self._seen(await anext(self._items))

    def __await__(self) -> "Generator[Any, Any, Tracked]":
        return self._awaited().__await__()

    async def _awaited(self) -> "Tracked":
        return Tracked(await cast("Awaitable[object]", self._stream), self._observe)

    def __enter__(self) -> "Tracked":
        return self._within(self._stream.__enter__())

    def __exit__(self, *raised: Any) -> Any:
        self._last_word()
        return self._stream.__exit__(*raised)

    async def __aenter__(self) -> "Tracked":
        return self._within(await self._stream.__aenter__())

    async def __aexit__(self, *raised: Any) -> Any:
        self._last_word()
        return await self._stream.__aexit__(*raised)

    def _within(self, entered: object) -> "Tracked":
        """The stream that entering gave; the one who entered also leaves."""
        self._entered = self if entered is self._stream else Tracked(entered, self._observe)
        return self._entered

    def _last_word(self) -> None:
        """What a helper has gathered itself, where its text alone was read and no event."""
        inner = self._entered._stream if self._entered else self._stream
        try:
            gathered = inner.current_message_snapshot
        except (AttributeError, AssertionError):  # no helper, or nothing came yet
            return
        self._quietly(gathered)

    def _seen(self, item: Any) -> Any:
        self._quietly(item)
        return item

    def _quietly(self, item: object) -> None:
        try:
            self._observe(item)
        except BrimlineError as error:
            LOGGER.debug("an item of a stream tells no usage: %s", error)
