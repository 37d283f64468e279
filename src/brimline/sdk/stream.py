"""An SDK's stream, wrapped so that its items are observed, and the memory of those in progress."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from itertools import count
from typing import Any, cast

from brimline.agents import source
from brimline.agents.transcripts.source import Parser
from brimline.context.events import MAIN
from brimline.context.providers.anthropic import MessageStream
from brimline.context.providers.rows import get_path, get_text
from brimline.context.usage import ZERO, Usage
from brimline.errors import BrimlineError, InvalidUsage
from brimline.files.bounded_dict import BoundedDict

LOGGER = logging.getLogger("brimline.observe")

READ_TO_THE_END = ("get_final_", "until_done")  # methods of the SDKs' helpers that do
CLOSE = ("aclose", "close")

TRACK_STREAM = "A chunk has only a part of the usage: pass the whole stream to `track`."
MAX_REMEMBERED = 500  # lines and messages


class Tracked:
    """Wraps a synchronous or asynchronous stream, or a context manager of one.

    Every item is observed, then passed on unchanged, even if it cannot be read: measuring never
    breaks the agent. All other attributes are the stream's own; a helper's methods that read to the
    end, and its stream of texts, read through the wrapper. `end` is called when the stream has
    ended, failed, or was left before its end; perhaps more than once.
    """

    def __init__(
        self, stream: object, observe: Callable[[object], object], end: Callable[[], object]
    ) -> None:
        self._stream: Any = stream
        self._observe = observe
        self._end = end
        self._items: Any = None

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._stream, name)
        is_async = hasattr(self._stream, "__aiter__")
        if name == "text_stream":
            return self._texts_async() if is_async else self._texts()
        if name.startswith(READ_TO_THE_END):
            return self._reading_first_async(value) if is_async else self._reading_first(value)
        return self._ending_first(value) if name in CLOSE else value

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._items is None:
            self._items = iter(self._stream)
        try:
            item = next(self._items)
        except BaseException:
            self._end()
            raise
        return self._observe_item(item)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._items is None:
            self._items = aiter(self._stream)
        try:
            item = await anext(self._items)
        except BaseException:
            self._end()
            raise
        return self._observe_item(item)

    def __await__(self) -> "Generator[Any, Any, Tracked]":
        return self._awaited().__await__()

    async def _awaited(self) -> "Tracked":
        return Tracked(await cast("Awaitable[object]", self._stream), self._observe, self._end)

    def __enter__(self) -> "Tracked":
        return self._enter(self._stream.__enter__())

    def __exit__(self, *raised: Any) -> Any:
        self._end()
        return self._stream.__exit__(*raised)

    async def __aenter__(self) -> "Tracked":
        return self._enter(await self._stream.__aenter__())

    async def __aexit__(self, *raised: Any) -> Any:
        self._end()
        return await self._stream.__aexit__(*raised)

    def __del__(self) -> None:
        if self._items is not None:
            self._end()

    def _enter(self, entered: object) -> "Tracked":
        """Wrap the stream that entering returned."""
        return self if entered is self._stream else Tracked(entered, self._observe, self._end)

    def _observe_item(self, item: Any) -> Any:
        try:
            self._observe(item)
        except BrimlineError as error:
            LOGGER.debug("stream item without readable usage: %s", error)
        return item

    def _texts(self) -> Iterator[str]:
        return (text for event in self if (text := _text_of(event)) is not None)

    def _texts_async(self) -> AsyncIterator[str]:
        return (text async for event in self if (text := _text_of(event)) is not None)

    def _reading_first(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def read_to_the_end(*args: Any, **options: Any) -> Any:
            for _ in self:
                pass
            return method(*args, **options)

        return read_to_the_end

    def _ending_first(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def close(*args: Any, **options: Any) -> Any:
            self._end()
            return method(*args, **options)

        return close

    def _reading_first_async(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def read_to_the_end(*args: Any, **options: Any) -> Any:
            async for _ in self:
                pass
            return await method(*args, **options)

        return read_to_the_end


STREAM_METHODS = (
    "__next__",
    "__anext__",
    "__aiter__",
    "__enter__",
    "__aenter__",
    "__await__",
)


def is_stream(value: object) -> bool:
    """Whether a value may be a stream; a model of Pydantic, as answers are, iterates its fields."""
    return any(hasattr(type(value), name) for name in STREAM_METHODS)


def stream_key(answer: object) -> str | None:
    """The key under which a dict of `boto3` has its stream, or None.

    A body that has `read` is a whole answer in bytes.
    """
    if not isinstance(answer, Mapping):
        return None
    fields = cast("Mapping[str, object]", answer)
    for key in ("stream", "body"):
        value = fields.get(key)
        is_iterable = hasattr(value, "__iter__") or hasattr(value, "__aiter__")
        if is_iterable and not isinstance(value, (str, bytes, list, dict)):
            return None if hasattr(value, "read") else key
    return None


def _text_of(event: object) -> str | None:
    """The text that Anthropic's helper yields for an event."""
    is_text = get_path(event, "delta.type") == "text_delta"
    return get_text(event, "delta.text") if is_text else None


class StreamMemory:
    """The messages in progress, by thread. Objects that cannot be read change nothing.

    Each stream has a memory of its own: several may be read at once, in the same thread. All but
    the message in progress is shared with the memory that it was opened from.
    """

    def __init__(self, calls: int = 0) -> None:
        self._shared = _SharedMemory(calls)
        self._messages: dict[str, MessageStream] = {}
        self._chunks: dict[str, Usage] = {}
        self._is_stream = False
        self._ended: str | None = None

    def open_stream(self) -> "StreamMemory":
        """Return the memory of one stream."""
        opened = StreamMemory()
        opened._shared, opened._is_stream = self._shared, True
        return opened

    def add_chunk(self, message: str, usage: Usage) -> Usage:
        """Return the usage of a message after a chunk that has a part of it.

        Outside a stream a chunk is the whole message: it may be observed twice. Raises InvalidUsage
        if it has no prompt, so that it can be only a part.
        """
        if not self._is_stream:
            if not usage.sent:
                raise InvalidUsage("input_tokens", 0, "above 0", TRACK_STREAM)
            return usage
        self._chunks[message] = self._chunks.get(message, ZERO) + usage
        return self._chunks[message]

    def message_stream(self, thread: str = MAIN) -> MessageStream:
        """The Anthropic message being streamed in a thread."""
        return self._messages.setdefault(thread, MessageStream())

    def claude_stream(self) -> Parser:
        """The parser of Claude Code's stream, for the lines of the Claude Agent SDK."""
        shared = self._shared
        if shared.claude is None:
            shared.claude = source("claude").stream()
        return shared.claude

    def new_call_id(self) -> str:
        """An id for a call that has none."""
        return f"call-{next(self._shared.call_numbers)}"

    def mark_ended(self, call: str) -> None:
        """Note that the reply of a call has ended; its usage is still to come."""
        self._ended = call

    def is_ended(self, call: str | None) -> bool:
        """Whether the reply of this call has ended."""
        return call is not None and call == self._ended

    def mark_streamed(self, message: str) -> None:
        """Note that a message was streamed to its end."""
        self._shared.streamed[message] = None

    def is_streamed(self, message: str) -> bool:
        return message in self._shared.streamed

    def is_repeated(self, line: object) -> bool:
        """Whether a line of this id came before, among the last MAX_REMEMBERED."""
        if not isinstance(line, str):
            return False
        before = line in self._shared.lines
        self._shared.lines[line] = None
        return before


class _SharedMemory:
    """What all streams of a tracker share."""

    def __init__(self, calls: int) -> None:
        self.call_numbers = count(calls + 1)
        self.claude: Parser | None = None
        self.lines = BoundedDict[str, None](MAX_REMEMBERED)
        self.streamed = BoundedDict[str, None](MAX_REMEMBERED)
