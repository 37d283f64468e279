"""Plays the story to a monitor, at speed, again and again."""

import asyncio
import math
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from brimline.demo.past_sessions import before
from brimline.demo.sessions import ALL, LAP, OVERRIDES
from brimline.demo.steps import Act, HandOver, Say, Tell
from brimline.handoff import Document
from brimline.inbox import BRIMLINE
from brimline.monitor.handoffs import HandoffMoment, HandoffRecovery
from brimline.monitor.monitor import Monitor
from brimline.monitor.rules import Rules
from brimline.observations import Observation
from brimline.store.base import Store
from brimline.survey.report import TranscriptSummary
from brimline.survey.summary import summarise
from brimline.transcripts.source import Transcript

SPEED = 20.0
"""An hour of the story takes three minutes."""

RULES = Rules(overrides=OVERRIDES)


def story() -> list[Act]:
    """All acts in the order in which they happen."""
    acts = [*before(), *(act for session in ALL for act in session())]
    return sorted(acts, key=lambda act: act.at)


class Player:
    """What was before the story's beginning happened when it says, the rest comes at speed."""

    def __init__(self, store: Store, clock: Callable[[], float], speed: float = SPEED) -> None:
        self._clock = clock
        self._speed = speed
        self._acts = story()
        self._begun = 0.0
        self._next = 0
        self._playing: float | None = None
        self.heard = 0
        self.monitor = Monitor(store, self.now, RULES)
        self._recovery = HandoffRecovery(store, self.now)

    def now(self) -> float:
        """The time, also while something of the past is told."""
        return self._clock() if self._playing is None else self._playing

    def moment(self, at: float) -> float:
        """When a second of the story is, or was."""
        return self._begun + (at if at < 0 else at / self._speed)

    async def begin(self, at: float = 0.0) -> None:
        """Forget all, and play the story up to one of its seconds, which is now."""
        await self.monitor.forget(math.inf)
        self._next, self._begun = 0, self._clock() - at / self._speed
        while self._next < len(self._acts) and self._acts[self._next].at <= at:
            await self._play()

    async def run(self) -> None:
        """Go on from there, for ever."""
        while True:
            while self._next < len(self._acts):
                await self._until(self._acts[self._next].at)
                await self._play()
            await self._until(LAP)
            await self.begin()

    async def _until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self.moment(at) - self._clock()))

    async def _play(self) -> None:
        act = self._acts[self._next]
        self._next += 1
        self._playing = self.moment(act.at)
        try:
            await self._happen(act)
        finally:
            self._playing = None

    async def _happen(self, act: Act) -> None:
        role = act.role
        match act:
            case Tell():
                await self.monitor.mark_delivered(await self.monitor.observe(self._heard(act)))
            case Say():
                await self.monitor.send(role.id, act.text, "urgent" if act.urgent else "sequential")
            case HandOver(draft=True):
                document, when = self._document(act), self._when(role.id)
                await self._recovery.save(role.id, when, document, BRIMLINE, draft=True)
            case HandOver():
                await self.monitor.hand_over(role.id, self._document(act), role.agent)
            case _:
                assert_never(act)

    def _when(self, session: str) -> HandoffMoment:
        watched = self.monitor.state_of(session)
        return (
            HandoffMoment(self.now(), watched.cycle, watched.calls)
            if watched
            else HandoffMoment(self.now())
        )

    def _document(self, act: HandOver) -> Document:
        return Document.of(act.text, act.path, self.now())

    def _heard(self, act: Tell) -> Observation:
        self.heard += 1
        role = act.role
        return Observation(
            id=f"demo-{self.heard}",
            agent=role.agent,
            session=role.id,
            kind=act.what,
            at=self.now(),
            thread=act.thread,
            host=role.host,
            project=role.project,
            model=role.model if act.what == "started" else None,
            version=role.version,
            parent=role.parent,
            trigger=act.trigger,
            usage=act.usage,
            events=tuple(
                event if event.at is None else replace(event, at=self.moment(event.at))
                for event in act.events
            ),
        )

    def items(self) -> list[TranscriptSummary]:
        """What every session adds up to, as a history has it."""
        found = [(role, self.monitor.state_of(role.id)) for role in {a.role for a in self._acts}]
        return [
            TranscriptSummary(
                Transcript(role.agent, f"{role.project}/{role.id}", 0.0, 0, role.id),
                summarise(watched.folded),
            )
            for role, watched in found
            if watched is not None
        ]
