"""`handoff --clear`: clear a session in its pane and continue it from its document.

    waiting    the request is on the disk, and the turn is still running
    clearing   the turn has ended: type `/clear`, wait for the hook and for the screen to change
    prompting  type "Read PATH and continue from where you left off."
    done, or failed with the pane unchanged

Each step is on the disk before it is carried out, so that a restarted daemon can resume it.

A request belongs to the turn in which it was made: another prompt of the user before `/clear` is
typed cancels it, and so does a turn that ends without its Stop hook.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from brimline.agents import capabilities_of
from brimline.agents.observations import Observation, Pane
from brimline.context.events import MAIN
from brimline.daemon.tmux.clear_requests import (
    ENDED,
    ClearRequest,
    ClearStep,
    load_requests,
    remove_old_requests,
    save_request,
)
from brimline.daemon.tmux.screen import conversation_hashes, has_queued, is_cleared
from brimline.daemon.tmux.typist import STATE_REASONS, PaneView, Typist, remove_blanks
from brimline.errors import CommandFailed
from brimline.handoff import Document

COMMAND = "/clear"
NOT_CONFIRMED = f"{COMMAND} was typed, but no hook confirmed it"
PROMPTED = "the user sent another prompt before the turn ended"
DOCUMENT_GONE = "the document no longer exists"
INTERRUPTED = "the turn was interrupted (it ended without a Stop hook)"
SESSION_ENDED = "the session ended before it was cleared"
NOT_CHANGED = f"the pane did not change after {COMMAND}"


class ClearTimings(msgspec.Struct, frozen=True):
    poll_s: float = 0.2
    idle_s: float = 30.0  # for the screen to show that the turn ended
    cleared_s: float = 15.0  # for the hook and the screen to confirm the clear
    interrupted_s: float = 10.0  # a pane idle for this long without a Stop hook was interrupted
    watch_s: float = 3600.0  # how long a pane is watched for an interruption

    @property
    def settle_s(self) -> float:
        """How long a client has to draw its next turn, and its hook to report it."""
        return self.poll_s * 5


class PaneWatcher:
    """Reads panes of clear requests; it reports what they show, not what hooks report."""

    def __init__(self, typist: Typist, clock: Callable[[], float], timings: ClearTimings) -> None:
        self._typist, self._clock, self._timings = typist, clock, timings

    async def view(self, request: ClearRequest) -> PaneView:
        return await self._typist.view(request.pane, request.agent)

    async def wait_until_idle(self, request: ClearRequest) -> PaneView:
        """Return the pane once its composer is empty, or its last view when that took too long."""
        end = self._clock() + self._timings.idle_s
        while (view := await self.view(request)).composer.state != "empty":
            if self._clock() > end or view.is_gone:
                return view
            await asyncio.sleep(self._timings.poll_s)
        return view

    async def wait_until_cleared(self, request: ClearRequest) -> bool:
        """Whether the former conversation disappears from the pane in time."""
        end = self._clock() + self._timings.cleared_s
        while not is_cleared(request.rows, (await self.view(request)).screen):
            if self._clock() > end:
                return False
            await asyncio.sleep(self._timings.poll_s)
        return True

    async def has_queued(self, request: ClearRequest) -> bool:
        """Whether a prompt of the user waits in the pane to be read by the agent."""
        screen = (await self.view(request)).screen
        return screen is not None and has_queued(request.agent, screen)

    async def may_be_in_turn(self, request: ClearRequest) -> bool:
        """Whether a turn may be running: False if the pane is idle three times in a row."""
        for delay_s in (0.0, self._timings.settle_s, self._timings.settle_s):
            await asyncio.sleep(delay_s)
            if (await self.view(request)).composer.state != "empty":
                return True
        return False

    async def was_interrupted(self, request: ClearRequest) -> bool:
        """Whether the pane becomes and stays idle while it is watched, without a Stop hook."""
        end = self._clock() + self._timings.watch_s
        idle_s = 0.0
        while idle_s < self._timings.interrupted_s and self._clock() < end:
            await asyncio.sleep(2 * self._timings.settle_s)
            is_empty = (await self.view(request)).composer.state == "empty"
            idle_s = idle_s + 2 * self._timings.settle_s if is_empty else 0.0
        return idle_s >= self._timings.interrupted_s


class SessionClearer:
    """Carries out clear requests, driven by hooks and by what the panes show.

    `on_end` is called with each request that is done or failed.
    """

    def __init__(
        self,
        state: Path,
        typist: Typist,
        clock: Callable[[], float],
        on_end: Callable[[ClearRequest], Awaitable[None]],
        timings: ClearTimings | None = None,
    ) -> None:
        self._state, self._typist, self._clock, self._on_end = state, typist, clock, on_end
        self._timings = timings or ClearTimings()
        self._watcher = PaneWatcher(typist, clock, self._timings)
        self._requests: dict[str, ClearRequest] = {}
        self._writing = asyncio.Lock()
        self._confirmations: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def request_clear(
        self, session: str, agent: str, pane: Pane, document: Document
    ) -> ClearRequest:
        """Save a request; it is carried out when the turn ends, or now if no turn is running."""
        if capabilities_of(agent).clear_confirmed_by_hook is None:
            reason = f"{agent} has no way to confirm a clear"
            hint = "Use `--spawn` to start a new session instead."
            raise CommandFailed(COMMAND, reason, hint, was_started=True)
        now = self._clock()
        request = ClearRequest(session, agent, pane, document.path, now, since=now)
        if await self._watcher.has_queued(request):
            reason = "a queued prompt of the user has not been read yet"
            hint = "Read it, then hand over again."
            raise CommandFailed(COMMAND, reason, hint, was_started=True)
        self._cancel_task(session)
        self._confirmations.pop(session, None)
        await self._save(request)
        self._start_task(session, self._begin(request))
        return request

    @property
    def has_requests(self) -> bool:
        return bool(self._requests)

    async def observe(self, observation: Observation) -> None:
        """Process what a hook reports; hooks of subagents and of earlier turns are ignored."""
        session, kind = observation.session, observation.kind
        request = self._requests.get(session)
        is_earlier = request is not None and observation.is_late and observation.at <= request.at
        if observation.thread != MAIN or is_earlier:
            return
        if kind == "prompt":
            await self.on_prompt(session)
        elif kind == "stopped":
            await self.on_turn_end(session)
        elif kind == "cleared":
            await self.on_cleared(session, observation.pane)
        elif kind == "ended":
            await self.on_session_end(session)

    async def on_prompt(self, session: str) -> None:
        """Cancel the request of a session that is not cleared yet."""
        request = self._requests.get(session)
        if request and request.step in ("waiting", "clearing") and request.after is None:
            self._cancel_task(session)
            await self._end(session, "failed", PROMPTED)

    async def on_turn_end(self, session: str) -> None:
        """Start to clear a session that waits for the end of its turn."""
        request = self._requests.get(session)
        if request and request.step == "waiting":
            self._start_task(session, self._clear_and_prompt(session))

    async def on_cleared(self, session: str, pane: Pane | None = None) -> None:
        """Record a confirmed clear; a session with a new id is recognised by its pane."""
        for old, request in list(self._requests.items()):
            is_this = old == session or request.pane == pane
            if is_this and request.step in ("clearing", "prompting"):
                confirmation = self._confirmations[old]
                await self._save(replace(request, after=session))
                confirmation.set()

    async def on_session_end(self, session: str) -> None:
        """Cancel the request of a session that ended before it was cleared."""
        request = self._requests.get(session)
        if request and request.step == "waiting":
            self._cancel_task(session)
            await self._end(session, "failed", SESSION_ENDED)

    async def shows_client(self, pane: Pane, agent: str) -> bool:
        """Whether a pane shows the composer of an agent's client."""
        view = await self._typist.view(pane, agent)
        return view.composer.state not in ("unknown", "scrolled")

    def holds_messages(self, session: str) -> bool:
        """Whether messages of a session must wait until it is cleared and prompted."""
        return any(session in (old, request.after) for old, request in self._requests.items())

    async def load(self) -> None:
        """Load unfinished requests; call this before spooled hooks are processed."""
        await asyncio.to_thread(remove_old_requests, self._state, self._clock())
        for request in await asyncio.to_thread(load_requests, self._state):
            if request.step not in ENDED:
                self._requests[request.session] = request
                self._confirmations[request.session] = asyncio.Event()

    async def resume(self) -> None:
        """Resume loaded requests that no spooled hook has started yet."""
        for session, request in list(self._requests.items()):
            if session not in self._tasks:
                self._start_task(session, self._resume(request))

    async def close(self) -> None:
        """Stop all requests at their present step; the next daemon resumes them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_until_idle(self) -> None:
        """Wait until requests wait for hooks alone."""
        while tasks := list(self._tasks.values()):
            await asyncio.wait(tasks)

    def _start_task(self, session: str, work: Awaitable[None]) -> None:
        self._cancel_task(session)
        task = asyncio.ensure_future(work)
        self._tasks[session] = task

        def forget(ended: asyncio.Future[None]) -> None:
            if self._tasks.get(session) is ended:
                del self._tasks[session]

        task.add_done_callback(forget)

    def _cancel_task(self, session: str) -> None:
        if (task := self._tasks.pop(session, None)) is not None:
            task.cancel()

    async def _resume(self, request: ClearRequest) -> None:
        match request.step:
            case "clearing":
                await self._resume_clearing(request)
            case "prompting":
                await self._resume_prompting(request)
            case _:
                await self._wait_for_turn_end(request.session)

    async def _resume_clearing(self, request: ClearRequest) -> None:
        """Continue when `/clear` may have been typed, and even submitted."""
        await self._typist.retract(request.pane, request.agent, COMMAND)
        view = await self._watcher.view(request)
        if not request.rows or not is_cleared(request.rows, view.screen):
            await self._clear_and_prompt(request.session)
        elif await self._is_confirmed(request):
            await self._prompt(request.session)
        else:
            await self._end(request.session, "failed", NOT_CONFIRMED)

    async def _resume_prompting(self, request: ClearRequest) -> None:
        """Continue when the prompt may have been submitted: it is visible, or the agent is busy."""
        await self._typist.retract(request.pane, request.agent, request.prompt)
        view = await self._watcher.view(request)
        shown = remove_blanks(view.screen.text) if view.screen is not None else ""
        if remove_blanks(request.prompt) in shown or view.composer.state == "busy":
            await self._end(request.session, "done")
        else:
            await self._prompt(request.session)

    async def _begin(self, request: ClearRequest) -> None:
        if await self._watcher.may_be_in_turn(request):
            await self._wait_for_turn_end(request.session)
        else:  # no hook will report the end of a turn
            await self._clear_and_prompt(request.session)

    async def _wait_for_turn_end(self, session: str) -> None:
        """Wait for the Stop hook, which cancels this; a turn without one was interrupted."""
        if await self._watcher.was_interrupted(self._requests[session]):
            await self._end(session, "failed", INTERRUPTED)

    async def _clear_and_prompt(self, session: str) -> None:
        request = await self._set_step(session, "clearing")
        # Hooks of a queued or spooled prompt come first.
        await asyncio.sleep(self._timings.settle_s)
        view = await self._watcher.wait_until_idle(request)
        if view.composer.state in ("busy", "compacting"):
            # A hook of the user kept the turn from ending. It will end again.
            await self._set_step(session, "waiting")
            await self._wait_for_turn_end(session)
        elif reason := await self._clear(session, view):
            await self._end(session, "failed", reason)
        else:
            await self._prompt(session)

    async def _clear(self, session: str, view: PaneView) -> str | None:
        """Type `/clear`; return why the session is not cleared, or None if it is."""
        if view.screen is None or view.composer.state != "empty":
            return STATE_REASONS[view.composer.state]
        request = replace(self._requests[session], rows=conversation_hashes(view.screen))
        if not await asyncio.to_thread(Path(request.path).is_file):
            return DOCUMENT_GONE
        await self._save(request)
        result = await self._typist.submit(request.pane, request.agent, COMMAND, is_command=True)
        if not result.submitted:
            return result.reason
        if not await self._is_confirmed(request):
            return NOT_CONFIRMED
        return None if await self._watcher.wait_until_cleared(request) else NOT_CHANGED

    async def _prompt(self, session: str) -> None:
        request = await self._set_step(session, "prompting")
        await self._watcher.wait_until_idle(request)
        result = await self._typist.submit(request.pane, request.agent, request.prompt)
        if result.submitted:
            await self._wait_for_hook(session)
            await self._end(session, "done")
        else:
            reason = f"the session was cleared, but the prompt was not sent: {result.reason}"
            await self._end(session, "failed", reason)

    async def _is_confirmed(self, request: ClearRequest) -> bool:
        is_confirmed = capabilities_of(request.agent).clear_confirmed_by_hook
        return not is_confirmed or await self._wait_for_hook(request.session)

    async def _wait_for_hook(self, session: str) -> bool:
        """Whether a hook reports in time as which session the cleared one continues."""
        if self._requests[session].after is not None:
            return True
        try:
            async with asyncio.timeout(self._timings.cleared_s):
                return await self._confirmations[session].wait()
        except TimeoutError:
            return False

    async def _set_step(
        self, session: str, step: ClearStep, reason: str | None = None
    ) -> ClearRequest:
        now = self._clock()
        request = replace(self._requests[session], step=step, since=now, why=reason, rows=())
        await self._save(request)
        return request

    async def _save(self, request: ClearRequest) -> None:
        self._requests[request.session] = request
        self._confirmations.setdefault(request.session, asyncio.Event())
        # Shielded: a write that is cancelled half-way could end after a later one.
        await asyncio.shield(self._write(request))

    async def _write(self, request: ClearRequest) -> None:
        async with self._writing:  # writes reach the disk in order
            await asyncio.to_thread(save_request, self._state, request)

    async def _end(self, session: str, step: ClearStep, reason: str | None = None) -> None:
        request = await self._set_step(session, step, reason)
        if self._requests[session] is request:  # not replaced by a new request
            del self._requests[session], self._confirmations[session]
        await self._on_end(request)
