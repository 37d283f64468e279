"""A tracker beside the fake that bills the same calls, compared at every step."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

from brimline import LevelReached, Reading, Tracker
from brimline.context.events import MAIN
from brimline.testing.fake_model import Billed, FakeModel, Ramp, Reply, Scenario, ToolCall

WEATHER = ToolCall("get_weather", {"city": "Paris"})
THOUGHT = "The user wants the weather, so the tool is to be called. " * 4
LONG = "You tell the weather. " * 300
"""Instructions that are long enough to be cached everywhere."""

LOOP = Scenario(
    main=(
        Reply(text="I look it up.", reasoning=THOUGHT, tools=(WEATHER,)),
        Reply(tools=(WEATHER, WEATHER)),
        Reply(text="Once more.", tools=(WEATHER,)),
        Reply(text="It rains in Paris."),
    ),
    ramp=Ramp(start=150_000, step=200_000),
)
"""Four calls in a loop of tools, which fill a window of a million to 15, 35, 55 and 75 per cent."""

LEVELS = [50, 65]
"""The levels that are reached on the way."""

Tokens = tuple[int, int, int, int]


class Beside:
    """A tracker and the fake whose answers it observes."""

    def __init__(
        self, fake: FakeModel, tracker: Tracker | None = None, *, same_ids: bool = True
    ) -> None:
        self.fake = fake
        self._same_ids = same_ids
        self.tracker = tracker or Tracker()
        self.levels: list[LevelReached] = []
        self.states: list[str] = []
        """What the state was during the last stream, each once as long as it lasted."""
        self.tracker.on_level(self.levels.append)

    def take(self, answer: object, thread: str = MAIN) -> None:
        """Observe a whole answer: it is what was billed last, and nothing new a second time."""
        assert self.tracker.observe(answer, thread)
        self.check(thread)
        self.take_again(answer, thread)

    def take_again(self, seen: object, thread: str = MAIN) -> None:
        """Observe something once more; nothing is changed by it."""
        before = self.tracker.state()
        assert not self.tracker.observe(seen, thread)
        assert self.tracker.state() == before

    def flow(self, stream: Iterable[Any], thread: str = MAIN) -> list[Any]:
        """Read a stream through `track`: each item is the SDK's own, the reading never wrong."""
        tape: list[Any] = []
        states: list[str] = []
        for item in self.tracker.track(taped(stream, tape), thread):
            assert item is tape[-1]
            states.append(self.see(item, thread))
        return self._end(tape, states, thread)

    async def aflow(self, stream: AsyncIterable[Any], thread: str = MAIN) -> list[Any]:
        """The same of an asynchronous stream."""
        tape: list[Any] = []
        states: list[str] = []
        async for item in self.tracker.track(ataped(stream, tape), thread):
            assert item is tape[-1]
            states.append(self.see(item, thread))
        return self._end(tape, states, thread)

    def see(self, item: object, thread: str = MAIN) -> str:
        """The state after an item of a stream: while it streams, the prompt is exact already."""
        self.take_again(item, thread)
        reading = self.reading(thread)
        if reading.state == "streaming":
            assert reading.sent == sent(self.billed(thread)[-1])
        return reading.state

    def _end(self, tape: list[Any], states: list[str], thread: str) -> list[Any]:
        self.check(thread)
        for item in tape:
            self.tracker.observe(item, thread)
        self.check(thread)
        self.states = [state for state, _ in groupby(states)]
        return tape

    def check(self, thread: str = MAIN) -> None:
        """Every call of the thread is the one that was billed, and the reading is the last one."""
        billed = self.billed(thread)
        calls = self.tracker.session.threads[thread].calls.values()
        assert [buckets(call.usage) for call in calls] == [buckets(one.usage) for one in billed]
        if self._same_ids:
            assert [call.id for call in calls] == [one.id for one in billed]
        reading = self.reading(thread)
        figures = (reading.sent, reading.held, reading.state)
        assert figures == (sent(billed[-1]), held(billed[-1]), "measured")

    def check_loop(self, window: int) -> None:
        """After the loop: every call was seen, each level was told once, the window is right."""
        self.check()
        assert len(self.billed()) == len(LOOP.main)
        assert [reached.level for reached in self.levels] == LEVELS
        found = self.reading().window
        assert found is not None
        assert (found.tokens, self.tracker.peak) == (window, self.reading().sent)

    def reading(self, thread: str = MAIN) -> Reading:
        """The reading of a thread."""
        return self.tracker.reading if thread == MAIN else self.tracker.threads[thread]

    def billed(self, thread: str = MAIN) -> list[Billed]:
        """What was billed to a thread: the main one, a subagent by its id, the compactions."""
        return [one for one in self.fake.billed if thread == (one.agent_id or one.thread)]


def buckets(usage: Any) -> Tokens:
    """The four buckets that everyone tells, of Brimline's usage or the fake's."""
    return usage.input, usage.cache_read, usage.cache_write, usage.output


def sent(one: Billed) -> int:
    """The prompt of a billed call."""
    return one.usage.input + one.usage.cache_read + one.usage.cache_write


def held(one: Billed) -> int:
    """What was held after a billed call."""
    return sent(one) + one.usage.output


@asynccontextmanager
async def opened(client: Any) -> AsyncGenerator[Any]:
    """An SDK's client, synchronous or not, that is closed in the end."""
    try:
        yield client
    finally:
        await awaited(client.close())


async def awaited(answer: Any) -> Any:
    """What a client answers, at once or when it is awaited."""
    return (await answer) if inspect.isawaitable(answer) else answer


def taped(stream: Iterable[Any], tape: list[Any]) -> Iterator[Any]:
    """A stream whose items are kept as they come."""
    for item in stream:
        tape.append(item)
        yield item


async def ataped(stream: AsyncIterable[Any], tape: list[Any]) -> AsyncIterator[Any]:
    """The same of an asynchronous one."""
    async for item in stream:
        tape.append(item)
        yield item
