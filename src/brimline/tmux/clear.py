"""`handoff --clear`: a session that goes on fresh, in its own pane, from its document.

    waiting    the intent is on the disk; the turn goes on, and the user says nothing
    clearing   the turn has ended: an empty composer, `/clear`, the client's word and a changed pane
    prompting  "Read PATH and continue from where you left off."
    done, or failed with the pane as it was

Each step is on the disk before it is done, so that a daemon that was killed goes on from it.

A clear belongs to the turn that asked for it: words of the user's that come before `/clear` is
typed call it off, and so does a turn that ends without its Stop hook.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec.structs import replace

from brimline.errors import CommandFailed
from brimline.events import MAIN
from brimline.handoff import Document
from brimline.observations import Observation, Pane
from brimline.tmux.clear_requests import ENDED, Intent, Step, keep, kept, tidy
from brimline.tmux.pane_watcher import Pace, Watch
from brimline.tmux.screen import is_cleared, rows_of
from brimline.tmux.typing import WHY, Looked, Tmux, squeezed

COMMAND = "/clear"

TELLS = {"claude": True, "codex": False}
"""The agents that are cleared so, and whether their hook tells it at once: that of Codex comes with
the next prompt, so its pane alone has to do."""

UNTOLD = f"{COMMAND} was typed, and no hook told that it was cleared"
PROMPTED = "another prompt came before the turn had ended"
GONE = "its document is not there any more"
INTERRUPTED = "the turn was interrupted: it ended without its Stop hook"

Told = Callable[[Intent], Awaitable[None]]


class Clearing:
    """Every session that is to be cleared; driven by what the hooks tell, and by the pane.

    `told` gets each intent that ended, done or failed.
    """

    def __init__(self, state: Path, tmux: Tmux, clock: Callable[[], float], told: Told,
                 pace: Pace | None = None) -> None:  # fmt: skip
        self._state, self._tmux, self._clock, self._told = state, tmux, clock, told
        self._pace = pace or Pace()
        self._watch = Watch(tmux, clock, self._pace)
        self._open: dict[str, Intent] = {}
        self._writing = asyncio.Lock()
        self._cleared: dict[str, asyncio.Event] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def begin(self, session: str, agent: str, pane: Pane, document: Document) -> Intent:
        """Keep the intent; it is carried out when the turn ends, or at once where none is on."""
        if agent not in TELLS:
            reason = f"{agent} has no clear that can be confirmed"
            raise CommandFailed(COMMAND, reason, "`--spawn` starts it anew.")
        now = self._clock()
        intent = Intent(session, agent, pane, document.path, now, since=now)
        if await self._watch.has_queued(intent):
            reason = "the user said something that is still to be read"
            raise CommandFailed(COMMAND, reason, "Read it, then hand over anew.")
        self._stop(session)
        self._cleared.pop(session, None)
        await self._keep(intent)
        self._run(session, self._begin(intent))
        return intent

    @property
    def busy(self) -> bool:
        """Whether any session is to be cleared."""
        return bool(self._open)

    async def hear(self, heard: Observation) -> None:
        """Be driven by what hooks tell; what a subagent does is not a session's turn."""
        if heard.thread != MAIN or self._came_before(heard):
            return
        match heard.what:
            case "prompt":
                await self.prompted(heard.session)
            case "stopped":
                await self.turn_ended(heard.session)
            case "cleared":
                await self.cleared(heard.session, heard.pane)
            case "ended":
                await self.ended(heard.session)
            case _:
                pass

    async def prompted(self, session: str) -> None:
        """The user says something to a session that is not cleared yet: it is not cleared."""
        intent = self._open.get(session)
        if intent is not None and intent.step in ("waiting", "clearing") and intent.after is None:
            self._stop(session)
            await self._end(session, "failed", PROMPTED)

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

    def _came_before(self, heard: Observation) -> bool:
        """Whether it is of an earlier turn, or began this one: the spool tells it only now."""
        intent = self._open.get(heard.session)
        return intent is not None and heard.late and heard.at <= intent.at

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
                await self._attend(intent.session)

    async def _was_clearing(self, intent: Intent) -> None:
        """`/clear` may have been typed, and even have been taken."""
        await self._tmux.take_back(intent.pane, intent.agent, COMMAND)
        now = await self._watch.look(intent)
        if not intent.rows or not is_cleared(intent.rows, now.screen):
            await self._carry_out(intent.session)
        elif await self._confirmed(intent):
            await self._prompt(intent.session)
        else:
            await self._end(intent.session, "failed", UNTOLD)

    async def _was_prompting(self, intent: Intent) -> None:
        """The prompt may have been typed; then it is on the screen, or the agent is at work."""
        await self._tmux.take_back(intent.pane, intent.agent, intent.prompt)
        now = await self._watch.look(intent)
        said = now.screen is not None and squeezed(intent.prompt) in squeezed(now.screen.text)
        if said or now.composer.state == "busy":
            await self._end(intent.session, "done")
        else:
            await self._prompt(intent.session)

    async def _begin(self, intent: Intent) -> None:
        """Nobody will tell the end of a turn where none is on."""
        if await self._watch.at_work(intent):
            await self._attend(intent.session)
        else:
            await self._carry_out(intent.session)

    async def _attend(self, session: str) -> None:
        """Wait for the hook's word; a turn that is over without it is one that the user ended."""
        if await self._watch.is_over(self._open[session]):
            await self._end(session, "failed", INTERRUPTED)

    async def _carry_out(self, session: str) -> None:
        intent = await self._step(session, "clearing")
        # What was queued is the next prompt, and the spool may hold one: they are heard first.
        await asyncio.sleep(self._pace.pause)
        before = await self._watch.idle(intent)
        if before.composer.state in ("busy", "compacting"):
            # The turn goes on after all: somebody's hook kept it from ending. It ends again.
            await self._step(session, "waiting")
            await self._attend(session)
        elif why := await self._failure(session, before):
            await self._end(session, "failed", why)
        else:
            await self._prompt(session)

    async def _failure(self, session: str, before: Looked) -> str | None:
        """Clear it, and say why it is not cleared; None where it is."""
        if before.screen is None or before.composer.state != "empty":
            return WHY[before.composer.state]
        intent = replace(self._open[session], rows=rows_of(before.screen))
        if not await asyncio.to_thread(Path(intent.path).is_file):
            return GONE
        await self._keep(intent)
        typed = await self._tmux.command(intent.pane, intent.agent, COMMAND)
        if not typed.done:
            return typed.why
        if not await self._confirmed(intent):
            return UNTOLD
        if not await self._watch.changed(intent):
            return f"its pane is as it was before {COMMAND}"
        return None

    async def _prompt(self, session: str) -> None:
        intent = await self._step(session, "prompting")
        await self._watch.idle(intent)
        typed = await self._tmux.tell(intent.pane, intent.agent, intent.prompt)
        if typed.done:
            await self._heard(session)
            await self._end(session, "done")
        else:
            await self._end(session, "failed", f"it was cleared, but not prompted: {typed.why}")

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

    async def _step(self, session: str, step: Step) -> Intent:
        changed = replace(self._open[session], step=step, since=self._clock(), rows=())
        await self._keep(changed)
        return changed

    async def _keep(self, intent: Intent) -> None:
        self._open[intent.session] = intent
        self._cleared.setdefault(intent.session, asyncio.Event())
        # To its end, even where the step is cancelled: else an older one could be written later.
        await asyncio.shield(self._write(intent))

    async def _write(self, intent: Intent) -> None:
        async with self._writing:  # the last one is the last on the disk, too
            await asyncio.to_thread(keep, self._state, intent)

    async def _end(self, session: str, step: Step, why: str | None = None) -> None:
        ended = replace(self._open[session], step=step, since=self._clock(), why=why, rows=())
        await self._keep(ended)
        if self._open[session] is ended:  # and nobody has asked anew meanwhile
            del self._open[session], self._cleared[session]
        await self._told(ended)
