"""What a tracker read at each step of a program that runs in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from brimline import LevelReached, Reading, Tracker

from .bill import ataped

Figures = tuple[int | None, int | None, str]


class Step(msgspec.Struct, frozen=True):
    """One thing that an SDK handed out, and what was read after it."""

    kind: str
    same: bool
    """Whether `track` passed on the very object that the SDK gave."""
    twice: bool
    """Whether a second tracker that observes everything twice reads the same."""
    readings: dict[str, Reading]
    levels: tuple[float, ...]
    """The levels told so far."""
    session: str | None
    """The id of the session, once it is known."""


class Reporter:
    """A tracker that prints each of its steps as a line of JSON."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.tracker, self._twice = Tracker(levels=levels), Tracker(levels=levels)
        self._levels: list[LevelReached] = []
        self.tracker.on_level(self._levels.append)

    async def follow(self, stream: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Read a stream through `track`, and say what was read after each item."""
        tape: list[Any] = []
        async for item in self.tracker.track(ataped(stream, tape)):
            self._say(item, same=item is tape[-1])
            yield item

    def take(self, seen: object) -> None:
        """Observe something, and say what was read after it."""
        self.tracker.observe(seen)
        self._say(seen, same=True)

    def _say(self, seen: object, *, same: bool) -> None:
        for _ in range(2):
            self._twice.observe(seen)
        step = Step(
            kind=type(seen).__name__,
            same=same,
            twice=self._twice.threads == self.tracker.threads,
            readings=dict(self.tracker.threads),
            levels=tuple(one.level for one in self._levels),
            session=self.tracker.session.id,
        )
        print(msgspec.json.encode(step).decode(), flush=True)


def read_steps(lines: str) -> list[Step]:
    """The steps that a program printed; every object was passed on as it was."""
    decoder = msgspec.json.Decoder(Step)
    steps = [decoder.decode(line) for line in lines.splitlines() if line.startswith("{")]
    assert all(step.same for step in steps)
    return steps


def figures(steps: Sequence[Step], thread: str = "main") -> list[Figures]:
    """Sent, held and state of a thread, each once as long as they lasted."""
    found = [step.readings[thread] for step in steps if thread in step.readings]
    told = [(reading.sent, reading.held, str(reading.state)) for reading in found]
    return [one for one, _ in groupby(told)]
