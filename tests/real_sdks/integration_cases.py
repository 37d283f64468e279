"""Cases that every integration goes through: what it reads is what was billed.

The programs of this folder print them, one a line.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from itertools import cycle
from typing import Any

import msgspec

from brimline import LevelReached, Tracker
from brimline.testing.fake_model import Billed, FakeModel, Ramp, Reply, Scenario

from .bill import LONG, LOOP, held, sent

Figures = tuple[int, int]

REFUSALS = ("rate_limited", "overloaded")
MAX_AT_ONCE = 6
PATIENCE_S = 60.0
CASE_TIMEOUT_S = 150.0

SMALL, LARGE = "Count the apples.", "Count the pears."
TWO = Scenario(
    main=(
        Reply(text="One. " * 20, when="apples", added=1_000, pace=0.01),
        Reply(text="Two. " * 20, when="pears", added=100_000, pace=0.01),
    )
)
"""Two conversations at once, of which one is much smaller."""

LEFT = Scenario(main=(Reply(text="One. " * 400, pace=0.02),), ramp=Ramp(start=50_000))
"""A stream that is left before its end."""


class Case(msgspec.Struct, frozen=True):
    """What was read in one case, and what was billed: sent and held, call by call."""

    name: str
    read: dict[str, list[Figures]]
    billed: dict[str, list[Figures]]
    states: list[str]
    warnings: list[str] = []


class Question(msgspec.Struct, frozen=True):
    """What a framework is asked, and where its calls are observed."""

    fake: FakeModel
    tracker: Tracker
    thread: str = "main"
    prompt: str = LONG


Ask = Callable[[Question], Awaitable[None]]


class Way(msgspec.Struct, frozen=True):
    """A way to use an integration; `leave` leaves its stream early.

    `early` says that the API reports the prompt before the answer has ended, `retries` that the
    framework asks again after a refusal, `threads` that two agents can be told apart.
    """

    ask: Ask
    leave: Ask | None = None
    early: bool = False
    retries: bool = True
    threads: bool = True


def figures(billed: Billed) -> Figures:
    return sent(billed), held(billed)


def read(name: str, tracker: Tracker, billed: dict[str, list[Figures]]) -> Case:
    threads = tracker.session.threads.items()
    return Case(
        name=name,
        read={
            thread: [(call.usage.sent, call.usage.held) for call in state.calls.values()]
            for thread, state in threads
        },
        billed=billed,
        states=[reading.state for reading in tracker.threads.values()],
    )


async def in_sequence(way: Way) -> Case:
    """Four calls, in as many runs as it takes."""
    tracker = Tracker()
    with FakeModel(LOOP) as fake:
        while len(fake.billed) < len(LOOP.main):
            await way.ask(Question(fake, tracker))
        return read("sequence", tracker, {"main": [figures(one) for one in fake.billed]})


async def at_once(way: Way) -> Case:
    """Two runs at once, on two threads of one tracker."""
    tracker = Tracker()
    with FakeModel(TWO) as fake:
        await asyncio.gather(
            way.ask(Question(fake, tracker, "small", SMALL)),
            way.ask(Question(fake, tracker, "large", LARGE)),
        )
        small, large = sorted(figures(one) for one in fake.billed)
    assert small[0] < 50_000 < large[0]
    return read("two at once", tracker, {"small": [small], "large": [large]})


async def retried(error: Any, way: Way) -> Case:
    """A call that is refused first, and counts once."""
    tracker = Tracker()
    replies = (Reply(error=error), Reply(text="It rains."))
    with FakeModel(Scenario(main=replies, ramp=Ramp(start=50_000))) as fake:
        await way.ask(Question(fake, tracker))
        return read(f"after {error}", tracker, {"main": [figures(one) for one in fake.billed]})


async def left(way: Way) -> Case:
    """A stream that is left: the prompt is exact where it was reported, otherwise nothing is."""
    tracker = Tracker()
    assert way.leave is not None
    with FakeModel(LEFT) as fake:
        await way.leave(Question(fake, tracker))
        (prompt,) = [sent(one) for one in fake.billed]
    if not way.early:
        return read("left", tracker, {})
    # How much of the answer came is known to nobody.
    case = read("left", tracker, {"main": [(prompt, prompt)]})
    prompts = {name: [(one[0], one[0]) for one in calls] for name, calls in case.read.items()}
    return msgspec.structs.replace(case, read=prompts)


def runs(ways: dict[str, Way]) -> Iterator[tuple[str, Coroutine[Any, Any, Case]]]:
    """Every case of every way; the refusals take turns, because each retry waits."""
    for (name, way), error in zip(ways.items(), cycle(REFUSALS), strict=False):
        yield name, in_sequence(way)
        if way.threads:
            yield name, at_once(way)
        if way.retries:
            yield name, retried(error, way)
        if way.leave:
            yield name, left(way)


async def play(name: str, run: Coroutine[Any, Any, Case], turns: asyncio.Semaphore) -> None:
    """Print a case; a few run at once, because they wait most of the time."""
    async with turns:
        try:
            case = await asyncio.wait_for(run, CASE_TIMEOUT_S)
        except TimeoutError as error:
            raise AssertionError(f"no end of a case of {name}") from error
    print_case(msgspec.structs.replace(case, name=f"{name}, {case.name}"))


def print_case(case: Case) -> None:
    print(msgspec.json.encode(case).decode(), flush=True)


async def play_all(ways: dict[str, Way], max_at_once: int = MAX_AT_ONCE) -> None:
    """Play every case."""
    turns = asyncio.Semaphore(max_at_once)
    await asyncio.gather(*(play(*run, turns) for run in runs(ways)))


async def play_unmeasured(name: str, ask: Ask, scenario: Scenario = LOOP) -> None:
    """Ask what cannot be measured: nothing is read or raised, the reason is logged once."""
    tracker, logged = Tracker(), LoggedTexts()
    logging.getLogger("brimline").addHandler(logged)
    with FakeModel(scenario) as fake:
        await ask(Question(fake, tracker))
    logging.getLogger("brimline").removeHandler(logged)
    print_case(msgspec.structs.replace(read(name, tracker, {}), warnings=logged.texts))


class StopAgentError(Exception):
    """What a listener raises to stop an agent."""


async def play_stopped(ask: Ask) -> None:
    """Ask an agent that a level stops: the listener's exception reaches the caller."""
    tracker = Tracker(window=1_000)

    @tracker.on_level
    def _(_: LevelReached) -> None:
        raise StopAgentError

    with FakeModel() as fake:
        try:
            await ask(Question(fake, tracker))
        except StopAgentError:
            billed = {"main": [figures(one) for one in fake.billed]}
            print_case(read("stopped", tracker, billed))


async def wait_for_calls(question: Question) -> None:
    """Some frameworks report a call a little after they have answered."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        threads = question.tracker.session.threads.values()
        if sum(len(thread.calls) for thread in threads) >= len(question.fake.billed):
            return
        await asyncio.sleep(0.01)


class LoggedTexts(logging.Handler):
    """Keeps the texts of warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
