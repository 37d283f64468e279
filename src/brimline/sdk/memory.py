"""State between observed objects: the streams in progress."""

from itertools import count

from brimline.agents import source
from brimline.agents.transcripts.source import Parser
from brimline.context.events import MAIN
from brimline.context.providers.anthropic import MessageStream
from brimline.context.usage import ZERO, Usage
from brimline.errors import InvalidUsage
from brimline.files.bounded_dict import BoundedDict

TRACK_STREAM = "A chunk has only a part of the usage: pass the whole stream to `track`."
MAX_REMEMBERED = 500  # lines and messages


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
