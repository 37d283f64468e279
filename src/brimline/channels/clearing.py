"""`handoff --clear`: a session that goes on fresh, in its own pane, from its document.

    waiting    the intent is on the disk; the turn goes on
    clearing   the turn has ended: an empty composer, `/clear`, the client's word and a changed pane
    prompting  "Read PATH and continue from where you left off."
    done, or failed with the pane as it was

Each step is on the disk before it is done, so that a daemon that was killed goes on from it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from brimline.channels.intents import ENDED, Intent, Step, keep, kept, tidy
from brimline.channels.screen import is_cleared, rows_of
from brimline.channels.tmux import WHY, Looked, Tmux, squeezed
from brimline.errors import CommandFailed
from brimline.events import MAIN
from brimline.handoff import Document
from brimline.monitor.heard import Heard, Pane

COMMAND = "/clear"

TELLS = {"claude": True, "codex": False}
"""The agents that are cleared so, and whether their hook tells it at once: that of Codex comes with
the next prompt, so its pane alone has to do."""

UNTOLD = f"{COMMAND} was typed, and no hook told that it was cleared"

Told = Callable[[Intent], Awaitable[None]]


class Pace(msgspec.Struct, frozen=True):
    """How many seconds: between two looks, for a turn to end on the screen, for a clear."""

    every: float = 0.2
    idle: float = 30.0
    cleared: float = 15.0


class Clearing:
    """Every session that is to be cleared; driven by what the hooks tell, and by the pane.

    `told` gets each intent that ended, done or failed.
    """

    def __init__(self, state: Path, tmux: Tmux, clock: Callable[[], float], told: Told,
                 pace: Pace | None = None) -> None:  # fmt: skip
        self._state, self._tmux, self._clock, self._told = state, tmux, clock, told
        self._pace = pace or Pace()
        self._open: dict[str, Intent] = {}
        self._writing = asyncio.Lock()
        self._cleared: dict[str, asyncio.Event] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def begin(self, session: str, agent: str, pane: Pane, document: Document) -> Intent:
        """Keep the intent; it is carried out when the turn ends, or at once where none is on."""
        if agent not in TELLS:
            reason = f"{agent} has no clear that can be confirmed"
            raise CommandFailed(COMMAND, reason, "`--spawn` starts it anew.")
        self._stop(session)
        self._cleared.pop(session, None)
        now = self._clock()
        intent = Intent(session, agent, pane, document.path, now, since=now)
        await self._keep(intent)
        self._run(session, self._unless_at_work(session))
        return intent

    @property
    def busy(self) -> bool:
        """Whether any session is to be cleared."""
        return bool(self._open)

    async def hear(self, heard: Heard) -> None:
        """Be driven by what hooks tell; what a subagent does is not a session's turn."""
        if heard.thread != MAIN:
            return
        match heard.what:
            case "stopped":
                await self.turn_ended(heard.session)
            case "cleared":
                await self.cleared(heard.session, heard.pane)
            case "ended":
                await self.ended(heard.session)
            case _:
                pass

    async def turn_ended(self, session: str) -> None:
        """The session's turn is over: what waits for it begins."""
        intent = self._open.get(session)
        if intent is not None and intent.step == "waiting":
            self._run(session, self._carry_out(session))

    async def cleared(self, session: str, pane: Pane | None = None) -> None:
        """A session was cleared; it may have got a new id, and is then known by its pane."""
        for old, intent in list(self._open.items()):
            begun = intent.step in ("clearing", "prompting")
            if begun and (old == session or intent.pane == pane):
                told = self._cleared[old]
                await self._keep(replace(intent, after=session))
                told.set()

    async def ended(self, session: str) -> None:
        """A session ended: one that was not cleared by us has nothing to go on with."""
        intent = self._open.get(session)
        if intent is not None and intent.step == "waiting":
            self._stop(session)
            await self._end(session, "failed", "its session ended before it was cleared")

    def holds(self, session: str) -> bool:
        """Whether messages for a session wait, until it is cleared and prompted."""
        return any(session in (old, intent.after) for old, intent in self._open.items())

    async def recall(self) -> None:
        """Know what was under way when the daemon ended, before the spool tells what came after."""
        await asyncio.to_thread(tidy, self._state, self._clock())
        for intent in await asyncio.to_thread(kept, self._state):
            if intent.step not in ENDED:
                self._open[intent.session] = intent
                self._cleared[intent.session] = asyncio.Event()

    async def resume(self) -> None:
        """Go on with what was recalled, but for what is under way already."""
        for session, intent in list(self._open.items()):
            if session not in self._running:
                self._run(session, self._go_on(intent))

    async def close(self) -> None:
        """Stop where each is; another daemon goes on."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until nothing is under way but for hooks."""
        while tasks := list(self._running.values()):
            await asyncio.wait(tasks)

    def _run(self, session: str, work: Awaitable[None]) -> None:
        self._stop(session)
        task = asyncio.ensure_future(work)
        self._running[session] = task

        def ended(done: asyncio.Future[None]) -> None:
            if self._running.get(session) is done:
                del self._running[session]

        task.add_done_callback(ended)

    def _stop(self, session: str) -> None:
        if (running := self._running.pop(session, None)) is not None:
            running.cancel()

    async def _go_on(self, intent: Intent) -> None:
        match intent.step:
            case "clearing":
                await self._was_clearing(intent)
            case "prompting":
                await self._was_prompting(intent)
            case _:
                await self._unless_at_work(intent.session)

    async def _was_clearing(self, intent: Intent) -> None:
        """`/clear` may have been typed, and even have been taken."""
        await self._tmux.take_back(intent.pane, intent.agent, COMMAND)
        now = await self._look(intent.session)
        if not intent.rows or not is_cleared(intent.rows, now.screen):
            await self._carry_out(intent.session)
        elif await self._confirmed(intent):
            await self._prompt(intent.session)
        else:
            await self._end(intent.session, "failed", UNTOLD)

    async def _was_prompting(self, intent: Intent) -> None:
        """The prompt may have been typed; then it is on the screen, or the agent is at work."""
        await self._tmux.take_back(intent.pane, intent.agent, intent.prompt)
        now = await self._look(intent.session)
        said = now.screen is not None and squeezed(intent.prompt) in squeezed(now.screen.text)
        if said or now.composer.state == "busy":
            await self._end(intent.session, "done")
        else:
            await self._prompt(intent.session)

    async def _unless_at_work(self, session: str) -> None:
        """Nobody tells the end of a turn that is over: a pane that is idle twice has none on."""
        for _ in range(2):
            await asyncio.sleep(self._pace.every * 5)
            if (await self._look(session)).composer.state != "empty":
                return
        await self._carry_out(session)

    async def _carry_out(self, session: str) -> None:
        await self._step(session, "clearing")
        before = await self._idle(session)
        if before.composer.state in ("busy", "compacting"):
            # The turn goes on after all: somebody's hook kept it from ending. It ends again.
            await self._step(session, "waiting")
        elif why := await self._failure(session, before):
            await self._end(session, "failed", why)
        else:
            await self._prompt(session)

    async def _failure(self, session: str, before: Looked) -> str | None:
        """Clear it, and say why it is not cleared; None where it is."""
        if before.screen is None or before.composer.state != "empty":
            return WHY[before.composer.state]
        intent = replace(self._open[session], rows=rows_of(before.screen))
        await self._keep(intent)
        typed = await self._tmux.command(intent.pane, intent.agent, COMMAND)
        if not typed.done:
            return typed.why
        if not await self._confirmed(intent):
            return UNTOLD
        if not await self._changed(session, intent.rows):
            return f"its pane is as it was before {COMMAND}"
        return None

    async def _prompt(self, session: str) -> None:
        intent = await self._step(session, "prompting")
        await self._idle(session)
        typed = await self._tmux.tell(intent.pane, intent.agent, intent.prompt)
        if typed.done:
            await self._heard(session)
            await self._end(session, "done")
        else:
            await self._end(session, "failed", f"it was cleared, but not prompted: {typed.why}")

    async def _look(self, session: str) -> Looked:
        intent = self._open[session]
        return await self._tmux.look(intent.pane, intent.agent)

    async def _idle(self, session: str) -> Looked:
        """The pane once it is idle with nothing typed, or as it is when that took too long."""
        end = self._clock() + self._pace.idle
        while (now := await self._look(session)).composer.state != "empty":
            if self._clock() > end or now.screen is None:
                return now
            await asyncio.sleep(self._pace.every)
        return now

    async def _confirmed(self, intent: Intent) -> bool:
        """Whether the client's hook told of the clear, where it would."""
        return not TELLS[intent.agent] or await self._heard(intent.session)

    async def _heard(self, session: str) -> bool:
        """Whether the hook told, by now or soon, which session it became."""
        if self._open[session].after is not None:
            return True
        try:
            async with asyncio.timeout(self._pace.cleared):
                return await self._cleared[session].wait()
        except TimeoutError:
            return False

    async def _changed(self, session: str, rows: tuple[str, ...]) -> bool:
        end = self._clock() + self._pace.cleared
        while not is_cleared(rows, (await self._look(session)).screen):
            if self._clock() > end:
                return False
            await asyncio.sleep(self._pace.every)
        return True

    async def _step(self, session: str, step: Step) -> Intent:
        changed = replace(self._open[session], step=step, since=self._clock())
        await self._keep(changed)
        return changed

    async def _keep(self, intent: Intent) -> None:
        self._open[intent.session] = intent
        self._cleared.setdefault(intent.session, asyncio.Event())
        async with self._writing:  # the last one is the last on the disk, too
            await asyncio.to_thread(keep, self._state, intent)

    async def _end(self, session: str, step: Step, why: str | None = None) -> None:
        ended = replace(self._open[session], step=step, since=self._clock(), why=why, rows=())
        await self._keep(ended)
        del self._open[session], self._cleared[session]
        await self._told(ended)
