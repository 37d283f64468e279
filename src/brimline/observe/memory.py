"""State between observed objects: the streams in progress."""

from brimline.bounded_dict import BoundedDict
from brimline.events import MAIN
from brimline.providers.anthropic import MessageStream
from brimline.transcripts.source import Parser

MAX_LINES = 500


class StreamMemory:
    """The streams in progress, by thread. Objects that cannot be read change nothing."""

    def __init__(self, calls: int = 0) -> None:
        self._calls = calls
        self._messages: dict[str, MessageStream] = {}
        self._claude: Parser | None = None
        self._ended: str | None = None
        self._lines = BoundedDict[str, None](MAX_LINES)

    def message_stream(self, thread: str = MAIN) -> MessageStream:
        """The Anthropic message being streamed in a thread."""
        return self._messages.setdefault(thread, MessageStream())

    def claude_stream(self) -> Parser:
        """The parser of Claude Code's stream, for the lines of the Claude Agent SDK."""
        if self._claude is None:
            from brimline.agents import source

            self._claude = source("claude").stream()
        return self._claude

    def new_call_id(self) -> str:
        """An id for a call that has none."""
        self._calls += 1
        return f"call-{self._calls}"

    def mark_ended(self, call: str) -> None:
        """Note that the reply of a call has ended; its usage is still to come."""
        self._ended = call

    def is_ended(self, call: str | None) -> bool:
        """Whether the reply of this call has ended."""
        return call is not None and call == self._ended

    def is_repeated(self, line: object) -> bool:
        """Whether a line of this id came before, among the last MAX_LINES."""
        if not isinstance(line, str):
            return False
        before = line in self._lines
        self._lines[line] = None
        return before
