"""Sends every change of a session to all open streams: encoded once, a few times per second."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

from brimline.api.session_cache import (
    RECENT_S,
    Frame,
    SessionCache,
    in_pieces,
    session_event,
)
from brimline.daemon.log_limit import RateLimitedLog
from brimline.errors import StoreFailed

POLL_INTERVAL_S = 0.5  # changes in this time are sent together
HEARTBEAT_S = 15.0  # without changes, a comment is sent
MAX_BACKLOG_BYTES = 4 << 20  # of the frames for slow viewers, for all of them together
ALIVE = b": alive\n\n"


class ChangeBroadcaster:
    """One poll of the store and one list of frames for any number of viewers.

    The poll runs only while there are viewers. A frame that all of them have is dropped with the
    next one. A viewer that falls behind the backlog gets whole views instead, so nothing is
    buffered for it.
    """

    def __init__(
        self,
        cache: SessionCache,
        stopping: Callable[[], bool],
        clock: Callable[[], float] = time.time,
        interval_s: float = POLL_INTERVAL_S,
        heartbeat_s: float = HEARTBEAT_S,
        max_backlog_bytes: int = MAX_BACKLOG_BYTES,
    ) -> None:
        self._cache, self._stopping, self._clock = cache, stopping, clock
        self._interval_s, self._heartbeat_s = interval_s, heartbeat_s
        self._max_backlog_bytes = max_backlog_bytes
        self._frames: deque[Frame] = deque()
        self.backlog_bytes = 0
        self._next = 0  # the number of the next frame
        self._viewers: dict[asyncio.Event, int] = {}  # the number of the frame that each needs
        self._poll: asyncio.Task[None] | None = None
        self._log = RateLimitedLog()
        cache.publish = self._publish

    async def follow(self, after: int) -> AsyncGenerator[bytes, None]:
        """Yield whole views of what changed after a mark, then every change until the daemon stops.

        With mark 0 the views are those of the last day.
        """
        wake, poll = asyncio.Event(), self._running_poll()
        self._viewers[wake] = self._next
        seen_since = 0.0 if after else self._clock() - RECENT_S
        try:
            while not poll.done():
                await self._cache.turns.take()
                number, mark = self._next, self._cache.mark
                self._viewers[wake] = number
                changed = self._cache.changed_after(after, seen_since)
                async for piece in in_pieces(self._whole_views(changed), self._cache.turns):
                    yield piece
                after, seen_since = max(after, mark), 0.0
                async for frame in self._frames_from(number, wake, poll):
                    yield frame.data
                    after = max(after, frame.mark)
        finally:
            del self._viewers[wake]

    def _whole_views(self, changed: Sequence[tuple[int, str]]) -> Iterator[bytes]:
        """Yield each session as it is now, with the mark of when it was listed.

        A client that resumes from that mark gets all later changes.
        """
        for mark, id in changed:
            if (session := self._cache.get(id)) is not None:
                yield session_event(mark, session.json)

    async def _frames_from(
        self, number: int, wake: asyncio.Event, poll: asyncio.Task[None]
    ) -> AsyncGenerator[Frame, None]:
        """Yield frames from a number on, until one is dropped or the poll ends."""
        while not poll.done():
            if number == self._next:
                wake.clear()
                await wake.wait()
                continue
            await self._cache.turns.take()
            place = number - (self._next - len(self._frames))
            if place < 0:
                return
            yield self._frames[place]
            number += 1
            self._viewers[wake] = number

    def _publish(self, frame: Frame) -> None:
        if not self._viewers:
            return
        self._frames.append(frame)
        self._next += 1
        self.backlog_bytes += len(frame.data)
        needed = self._next - min(self._viewers.values())
        while len(self._frames) > needed or self.backlog_bytes > self._max_backlog_bytes:
            self.backlog_bytes -= len(self._frames.popleft().data)
        self._wake_all()

    def _wake_all(self) -> None:
        for wake in self._viewers:
            wake.set()

    def _running_poll(self) -> asyncio.Task[None]:
        if self._poll is None or self._poll.done():
            self._poll = asyncio.create_task(self._keep_polling())
            self._poll.add_done_callback(self._on_poll_end)
        return self._poll

    async def _keep_polling(self) -> None:
        """Publish what changes while there are viewers."""
        published_at, number = time.monotonic(), self._next
        while self._viewers and not self._stopping():
            try:
                await self._cache.update()
            except StoreFailed as error:
                self._log.warn("cannot read changes for open pages, will retry", error)
            if self._next > number:
                published_at, number = time.monotonic(), self._next
            elif time.monotonic() - published_at > self._heartbeat_s:
                self._publish(Frame(0, ALIVE))
            await asyncio.sleep(self._interval_s)

    def _on_poll_end(self, poll: asyncio.Task[None]) -> None:
        """End all streams with the poll; clients reconnect."""
        self._frames.clear()
        self.backlog_bytes = 0
        self._wake_all()
        if not poll.cancelled() and isinstance(error := poll.exception(), Exception):
            self._log.warn("the stream of changes failed, open pages reconnect", error)
