"""A stream that a tracker follows: the call whose reply it is, and why it could not be measured."""

from collections.abc import Sequence

import msgspec

from brimline.context.events import AnyEvent, Call, Trimmed
from brimline.errors import InvalidUsage, SummedUsage
from brimline.sdk.shapes import read_events
from brimline.sdk.stream import StreamMemory


class ObservedStream:
    """One tracked stream: its own memory, and the call whose reply it is."""

    def __init__(self, kind: type, thread: str, memory: StreamMemory) -> None:
        self.kind = f"{kind.__module__}.{kind.__qualname__}"
        self._thread = thread
        self._memory = memory
        self._call: Call | None = None
        self._is_empty = True
        self._error: InvalidUsage | None = None

    def read(self, item: object) -> Sequence[AnyEvent]:
        self._is_empty = False
        try:
            events = read_events(item, self._memory, self._thread)
        except SummedUsage:
            raise
        except InvalidUsage as error:
            self._error = error
            raise
        call = next((e for e in reversed(events) if isinstance(e, Call)), None)
        if call is not None:
            self._call, self._error = call, None
        return events

    def end(self) -> Sequence[AnyEvent]:
        """End the call if the stream was left early: no more of its reply will come.

        If the last usage was unreadable, it is unknown what the thread holds.
        """
        events: list[AnyEvent] = []
        if self._call is not None and not self._call.final:
            self._call = msgspec.structs.replace(self._call, final=True)
            events.append(self._call)
        if self._error is not None:
            events.append(Trimmed(thread=self._thread))
        return events

    def problem(self) -> str | None:
        """Why it was not measured: it had items, but no usage, or an unreadable one. Only once."""
        is_unread = self._call is None and not self._is_empty
        error, self._error, self._is_empty = self._error, None, True
        if error is not None:
            return f"unreadable usage in a stream of type {self.kind}: {error}"
        return f"no usage found in a stream of type {self.kind}" if is_unread else None
