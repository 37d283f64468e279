"""What must be remembered from one observed object to the next: streams that are under way."""

from brimline.bounded_dict import BoundedDict
from brimline.events import MAIN
from brimline.providers.anthropic import MessageStream
from brimline.transcripts.source import Parser

LINES = 500


class Memory:
    """The streams under way, by thread. Feeding one what it cannot read changes nothing here."""

    def __init__(self, calls: int = 0) -> None:
        self._calls = calls
        self._messages: dict[str, MessageStream] = {}
        self._claude: Parser | None = None
        self._ended: str | None = None
        self._lines = BoundedDict[str, None](LINES)

    def message(self, thread: str = MAIN) -> MessageStream:
        """The Anthropic message that streams in a thread."""
        return self._messages.setdefault(thread, MessageStream())

    def claude(self) -> Parser:
        """Claude Code's stream, which the Claude Agent SDK hands on line by line."""
        if self._claude is None:
            from brimline.agents import source

            self._claude = source("claude").stream()
        return self._claude

    def unnamed(self) -> str:
        """An id for a call that has none of its own."""
        self._calls += 1
        return f"call-{self._calls}"

    def end(self, call: str) -> None:
        """The reply of a call has ended; its usage is still to come."""
        self._ended = call

    def ended(self, call: str | None) -> bool:
        """Whether that was said of this call."""
        return call is not None and call == self._ended

    def told(self, line: object) -> bool:
        """Whether a line of this id was there before; the last few hundred are remembered."""
        if not isinstance(line, str):
            return False
        before = line in self._lines
        self._lines[line] = None
        return before
