"""Play the story to a monitor, faster than real time, again and again."""

import asyncio
import math
from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Transcript
from brimline.handoff import Document
from brimline.monitor.handoffs import HandoffMoment, HandoffRecovery
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.server.demo.script import (
    LAP_S,
    OVERRIDES,
    HandoffStep,
    MessageStep,
    ObserveStep,
    Step,
    build_story,
)
from brimline.sessions.report import TranscriptSummary
from brimline.sessions.summary import summarise
from brimline.store.base import Store
from brimline.store.rows import HandoffRow

DEMO_SPEED = 20.0  # an hour of the story takes three minutes

RULES = Rules(overrides=OVERRIDES)


class Player:
    """Plays steps before the start of the story at once, and the others at speed."""

    def __init__(self, store: Store, clock: Callable[[], float], speed: float = DEMO_SPEED) -> None:
        self._clock = clock
        self._speed = speed
        self._steps = build_story()
        self._begun = 0.0
        self._next = 0
        self._playing: float | None = None
        self.observed = 0
        self.monitor = Monitor(store, self.now, RULES)
        self._recovery = HandoffRecovery(store, self.now)

    def now(self) -> float:
        """Return the time of the step that is played, else the current time."""
        return self._clock() if self._playing is None else self._playing

    def moment(self, at: float) -> float:
        """Return the real time of a second of the story."""
        return self._begun + (at if at < 0 else at / self._speed)

    async def begin(self, at: float = 0.0) -> None:
        """Start the story, and play it up to a second, which is now."""
        await self.monitor.forget(math.inf)
        self._next, self._begun = 0, self._clock() - at / self._speed
        while self._next < len(self._steps) and self._steps[self._next].at <= at:
            await self._play()

    async def run(self) -> None:
        """Play on from there, for ever."""
        while True:
            while self._next < len(self._steps):
                await self._until(self._steps[self._next].at)
                await self._play()
            await self._until(LAP_S)
            await self.begin()

    async def _until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self.moment(at) - self._clock()))

    async def _play(self) -> None:
        step = self._steps[self._next]
        self._next += 1
        self._playing = self.moment(step.at)
        try:
            await self._apply(step)
        finally:
            self._playing = None

    async def _apply(self, step: Step) -> None:
        session = step.session
        match step:
            case ObserveStep():
                await self.monitor.mark_delivered(
                    await self.monitor.observe(self._observation(step))
                )
            case MessageStep():
                urgency = "urgent" if step.urgent else "sequential"
                await self.monitor.send(session.id, step.text, urgency)
            case HandoffStep(draft=True):
                await self.save_draft(session.id, step.text, step.path)
            case HandoffStep():
                await self.monitor.hand_over(session.id, self._document(step), session.agent)
            case _:
                assert_never(step)

    async def save_draft(self, session: str, text: str, path: str) -> HandoffRow:
        """Return a draft of ours as a row, which is saved unless the agent wrote a document."""
        document = Document.of(text, path, self.now())
        return await self._recovery.save_draft(session, self._when(session), document)

    def _when(self, session: str) -> HandoffMoment:
        watched = self.monitor.state_of(session)
        return (
            HandoffMoment(self.now(), watched.cycle, watched.calls)
            if watched
            else HandoffMoment(self.now())
        )

    def _document(self, step: HandoffStep) -> Document:
        return Document.of(step.text, step.path, self.now())

    def _observation(self, step: ObserveStep) -> Observation:
        self.observed += 1
        session = step.session
        return Observation(
            id=f"demo-{self.observed}",
            agent=session.agent,
            session=session.id,
            kind=step.what,
            at=self.now(),
            thread=step.thread,
            host=session.host,
            project=session.project,
            model=session.model if step.what == "started" else None,
            version=session.version,
            parent=session.parent,
            trigger=step.trigger,
            usage=step.usage,
            events=tuple(
                event if event.at is None else replace(event, at=self.moment(event.at))
                for event in step.events
            ),
        )

    def session_ids(self) -> set[str]:
        """Return the ids of all sessions, which the history has by `items`."""
        return {step.session.id for step in self._steps}

    def items(self) -> list[TranscriptSummary]:
        """Return the summary of every session, for the history."""
        sessions = {step.session for step in self._steps}
        watched_sessions = [(each, self.monitor.state_of(each.id)) for each in sessions]
        return [
            TranscriptSummary(
                Transcript(session.agent, f"{session.project}/{session.id}", 0.0, 0, session.id),
                summarise(watched.folded),
            )
            for session, watched in watched_sessions
            if watched is not None
        ]
