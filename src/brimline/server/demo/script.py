"""The sample sessions of the demo, from story.toml, as steps one after the other."""

import random
import tomllib
from collections.abc import Iterator
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import msgspec
from msgspec.structs import replace

from brimline.agents.observations import ObservationKind
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Ended,
    SessionSeen,
    Trigger,
)
from brimline.context.usage import Usage
from brimline.context.window import Overrides

LAPTOP, SERVER = "laptop", "build-1"
HOUR_S = 3_600.0
EMPTY_CONTEXT_TOKENS = 14_000
CALLS_PER_TURN = 6
CACHE_WRITE_AGENTS = frozenset({"claude", "anthropic-sdk"})  # billed for writes to the cache

LAP_S = 3_600.0  # after this the story starts again
PAST_DAYS = 28
DAY_S = 24 * HOUR_S


class DemoSession(msgspec.Struct, frozen=True):
    """A session of the demo; messages of one without hooks stay pending."""

    id: str
    agent: str
    model: str
    project: str
    version: str | None = None
    title: str | None = None
    host: str = LAPTOP
    parent: str | None = None
    has_hooks: bool = True


class ObserveStep(msgspec.Struct, frozen=True):
    """An observation; its events have seconds of the story as times."""

    at: float
    session: DemoSession
    what: ObservationKind = "pushed"
    events: tuple[AnyEvent, ...] = ()
    thread: str = MAIN
    trigger: Trigger | None = None
    usage: Usage | None = None


class MessageStep(msgspec.Struct, frozen=True):
    at: float
    session: DemoSession
    text: str
    urgent: bool = False


class HandoffStep(msgspec.Struct, frozen=True):
    """A handoff document of the agent, or a draft of ours."""

    at: float
    session: DemoSession
    text: str
    path: str
    draft: bool = False


Step: TypeAlias = ObserveStep | MessageStep | HandoffStep  # `at` < 0: before the story starts


class DemoScript:
    """Builds the steps of one session; `at` is the current second. Every run is the same."""

    def __init__(self, session: DemoSession, at: float) -> None:
        self.session = session
        self.at = at
        self.model = session.model
        self.steps: list[Step] = []
        self._random = random.Random(session.id)
        self._sent: dict[str, int] = {}
        self._calls = 0
        seen = SessionSeen(
            at=at,
            session=session.id,
            agent=session.agent,
            project=session.project,
            version=session.version,
            title=session.title,
            records_compactions=True,
        )
        self._observe("started" if session.has_hooks else "pushed", (seen,))

    def _observe(
        self, what: ObservationKind, events: tuple[AnyEvent, ...] = (), thread: str = MAIN
    ) -> None:
        self.steps.append(ObserveStep(self.at, self.session, what, events, thread))

    def wait_until(self, second: float) -> None:
        self.at = second

    def pause(self, seconds: float) -> None:
        self.at += seconds

    def switch_model(self, model: str) -> None:
        self.model = model

    def work(self, to: int, calls: int, until: float, thread: str = MAIN) -> None:
        """Make calls evenly until a time; the last one sends `to` tokens."""
        pace = (until - self.at) / calls
        for sent in list(self._growth(self._sent.get(thread, EMPTY_CONTEXT_TOKENS), to, calls)):
            self._call(sent, pace, thread)

    def work_for(self, to: int, calls: int, seconds: float) -> None:
        """Make calls evenly for some seconds; the last one sends `to` tokens."""
        self.work(to, calls, self.at + seconds)

    def _growth(self, start: int, to: int, calls: int) -> Iterator[int]:
        """Yield uneven growth, as tool results cause it."""
        shares = [self._random.uniform(0.2, 1.0) ** 2 for _ in range(calls)]
        total = sum(shares)
        return (start + round((to - start) * grown / total) for grown in accumulate(shares))

    def _call(self, sent: int, pace: float, thread: str) -> None:
        usage = self._usage(sent, thread)
        self._calls += 1
        call = Call(at=self.at, id=f"msg_{self._calls:04}", usage=usage, model=self.model,
                    thread=thread)  # fmt: skip
        if self.at >= 0:  # live calls stream
            partial = replace(usage, output=usage.output // 8)
            self._observe("pushed", (replace(call, usage=partial, final=False),), thread)
        self.at += pace / 2
        self._observe(self._kind_after_call(), (call,), thread)
        self.at += pace / 2

    def _kind_after_call(self) -> ObservationKind:
        """Return which hook follows a call: after a tool, or a prompt that begins a turn."""
        if not self.session.has_hooks:
            return "pushed"
        return "prompt" if self._calls % CALLS_PER_TURN == 0 else "tool"

    def _usage(self, sent: int, thread: str) -> Usage:
        cached = min(self._sent.get(thread, 0), sent)
        self._sent[thread] = sent
        output = self._random.randint(90, 900)
        if self.session.agent in CACHE_WRITE_AGENTS:
            return Usage(min(4, sent - cached), cached, max(0, sent - cached - 4), output)
        return Usage(sent - cached, cached, 0, output)

    def spawn(self, thread: str, model: str, to: int, calls: int, until: float) -> None:
        """Let a subagent work in parallel to the next steps."""
        own_model, at, self.model = self.model, self.at, model
        self.work(to, calls, until, thread)
        self.at, self.model = at, own_model

    def finish(self, thread: str) -> None:
        self._observe("pushed", (Ended(at=self.at, thread=thread),))

    def compact(self, seconds: float, left: int, trigger: Trigger = "auto") -> None:
        """Compact for some seconds, down to `left` tokens."""
        before = self._sent[MAIN]
        self.steps.append(ObserveStep(self.at, self.session, "compacting", trigger=trigger))
        self.at += seconds
        compacted = Compacted(at=self.at, trigger=trigger, before=before, after=left)
        self._observe("compacted", (compacted,))
        self._sent[MAIN] = left

    def clear(self) -> None:
        self._observe("cleared", (Cleared(at=self.at),))
        self._sent.pop(MAIN, None)

    def status(self, to: int) -> None:
        """Report a call by the status line before the transcript has it."""
        usage = Usage(4, self._sent[MAIN], to - self._sent[MAIN] - 4, 0)
        self.steps.append(ObserveStep(self.at, self.session, "status", usage=usage))

    def say(self, text: str, urgent: bool = False) -> None:
        self.steps.append(MessageStep(self.at, self.session, text, urgent))

    def hand_over(self, text: str, path: str, draft: bool = False) -> None:
        self.steps.append(HandoffStep(self.at, self.session, text, path, draft))

    def as_past(self) -> list[Step]:
        """Return the session as one observation of all its events, and its end."""
        events = [step.events for step in self.steps if isinstance(step, ObserveStep)]
        whole = ObserveStep(self.at, self.session, "prompt", tuple(chain.from_iterable(events)))
        return [whole, ObserveStep(self.at, self.session, "ended")]


STORY: dict[str, Any] = tomllib.loads((Path(__file__).parent / "story.toml").read_text("utf-8"))
OVERRIDES = Overrides(windows=STORY["windows"])
SESSIONS: dict[str, DemoSession] = {
    name: msgspec.convert(entry, DemoSession) for name, entry in STORY["sessions"].items()
}


def build_story() -> list[Step]:
    """Return the steps of all sessions, in the order of their times."""
    current = chain.from_iterable(map(_session_steps, SESSIONS))
    return sorted([*_past_steps(), *current], key=lambda step: step.at)


def _session_steps(name: str) -> list[Step]:
    entry = STORY["sessions"][name]
    script = DemoScript(SESSIONS[name], entry["start"])
    for step in entry["steps"]:
        arguments = {key: value for key, value in step.items() if key not in ("do", "document")}
        if "document" in step:
            arguments["text"] = STORY["documents"][step["document"]]
        getattr(script, step["do"])(**arguments)
    return script.steps


def _past_steps() -> Iterator[Step]:
    """Yield sessions of the last weeks, oldest first; there are few on weekends."""
    chance = random.Random(PAST_DAYS)
    for day in range(PAST_DAYS, 0, -1):
        count = chance.randint(0, 1) if day % 7 in (2, 3) else chance.randint(2, 5)
        for _ in range(count):
            start = -day * DAY_S + chance.uniform(-3, 4) * HOUR_S
            yield from _past_session(start, chance).as_past()


def _past_session(start: float, chance: random.Random) -> DemoScript:
    past = STORY["past"]
    client = chance.choice(past["clients"])
    project = chance.choice(past["projects"])
    session = DemoSession(
        id=str(UUID(int=chance.getrandbits(128), version=4)),
        agent=client["agent"],
        model=client["model"],
        project=f"/home/dev/work/{project}",
        version=client["version"],
        title=chance.choice(past["titles"]),
        host=chance.choice((LAPTOP, LAPTOP, SERVER)),
    )
    script = DemoScript(session, start)
    for _ in range(chance.choice((0, 0, 0, 1, 1, 2))):
        full = client["full"] - chance.randint(0, 2_400)
        script.work_for(full, chance.randint(30, 44), chance.uniform(0.5, 1.2) * HOUR_S)
        script.compact(60.0, client["left"] + chance.randint(-4_000, 4_000))
    to = round(client["full"] * chance.uniform(0.35, 0.9))
    script.work_for(to, chance.randint(16, 40), chance.uniform(0.3, 1.0) * HOUR_S)
    return script
