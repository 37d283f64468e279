"""Continue sessions in tmux panes in a fresh context, at a level that the user set.

The agent is asked to hand over with `--clear`, which clears the session when its turn ends. If it
writes no document, the session is cleared to continue from a draft.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec

from brimline.agents import capabilities_of
from brimline.agents.observations import Observation
from brimline.context.events import MAIN
from brimline.context.inbox import BRIMLINE, Message
from brimline.daemon.tmux.clear import SessionClearer
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.errors import BrimlineError, CommandFailed
from brimline.files.atomic_file import replace_file
from brimline.files.bounded_dict import BoundedDict
from brimline.files.private_folder import create_private_folder
from brimline.files.project_folder import is_within
from brimline.handoff import Document
from brimline.monitor.monitor import Monitor
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import find_command
from brimline.run.rotation import WindowState, rotation_percent
from brimline.settings import HandoffSettings
from brimline.store.base import QueueMessage, Store, hash_id

LOGGER = logging.getLogger("brimline.rotation")

MAX_SESSIONS = 1_000
FOLDER = "drafts"
KEEP_DRAFTS_S = 7 * 86_400.0

REQUEST_TO_CLEAR = (
    "[brimline] Your context is at {percent:.0f}% of its limit. Write a handoff document now (the "
    "task, what is done, what is open, where to look), run `{command} handoff {file} --clear`, and "
    "then end your turn: the session is cleared, and continues from the document."
)


class _Rotation(msgspec.Struct, frozen=True):
    """How far a session is in one of its cycles; `is_off` if its pane does not show its client."""

    cycle: int
    window: WindowState = WindowState()
    is_off: bool = False


class SessionRotator:
    """Asks for handoffs at the level, after each hook of a session.

    It acts on interactive sessions whose pane is known and whose client can be cleared. `on_failed`
    is called with what could not be done.
    """

    def __init__(
        self,
        settings: HandoffSettings,
        home: Path,
        state: Path,
        store: Store,
        monitor: Monitor,
        clearer: SessionClearer,
        on_failed: Callable[[ClearRequest], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._home, self._folder = settings, home, state / FOLDER
        self._store, self._monitor, self._clearer = store, monitor, clearer
        self._on_failed, self._clock = on_failed, clock
        self._rotations = BoundedDict[str, _Rotation](MAX_SESSIONS)
        self._levels = BoundedDict[str | None, float | None](MAX_SESSIONS)  # by project
        self._tasks: set[asyncio.Task[None]] = set()

    async def observe(self, observation: Observation) -> None:
        """Look at a session after one of its hooks; nothing that fails here holds the hook up."""
        if self._settings.rotate_at is None and not self._settings.rotate_at_by:
            return
        state = self._monitor.state_of(observation.session)
        if state is None or observation.thread != MAIN or observation.is_late:
            return
        if self._may_rotate(state) and (level := self._known_level(state.project)):
            self._step(state, level)

    def _known_level(self, project: str | None) -> float | None:
        if project not in self._levels:  # finding it resolves links
            self._levels[project] = self.level_of(project)
        return self._levels[project]

    def level_of(self, project: str | None) -> float | None:
        """Return the level of the innermost folder that has one, else that for all."""
        home = str(self._home)
        folders = {
            home + name[1:] if name.startswith("~") else name: level
            for name, level in self._settings.rotate_at_by.items()
        }
        inside = [folder for folder in folders if project and is_within(project, folder)]
        return folders[max(inside, key=len)] if inside else self._settings.rotate_at

    def _may_rotate(self, state: SessionState) -> bool:
        """Whether a session has a pane of its own; one in its parent's pane must not clear that."""
        if capabilities_of(state.agent).clear_confirmed_by_hook is None or state.pane is None:
            return False
        return state.is_interactive or (state.is_interactive is None and state.parent is None)

    def _step(self, state: SessionState, level: float) -> None:
        before = self._rotations.get(state.id)
        if before is None or before.cycle != state.cycle:
            before = _Rotation(state.cycle)
        if before.is_off:
            return
        percent = rotation_percent(state.last_readings.get(MAIN))
        is_clearing = self._clearer.holds_messages(state.id)
        window = before.window.after(percent, state.calls, level, is_clearing)
        self._rotations[state.id] = _Rotation(state.cycle, window)
        if window is before.window or percent is None:
            return
        if window.phase == "asked":
            self._start(self._ask(state, percent))
        elif window.phase == "stopped" and not is_clearing:
            self._start(self._clear_with_draft(state))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        """Work on without the hook, which must not wait for a pane or a transcript."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, state: SessionState, percent: float) -> None:
        """Queue the request; once in a cycle, also after a restart."""
        if not await self._is_at_client(state):
            self._rotations[state.id] = _Rotation(state.cycle, is_off=True)
            return
        now, name = self._clock(), f"handoff-{state.id[:8]}.md"
        text = REQUEST_TO_CLEAR.format(percent=percent, command=find_command(), file=name)
        id = hash_id("rotation", state.id, str(state.cycle))
        message = Message(
            id, state.id, text, now, urgency="urgent", sender=BRIMLINE, cycle=state.cycle
        )
        try:
            await self._store.write([QueueMessage(message)])
        except BrimlineError as error:
            LOGGER.warning("cannot rotate session %s: %s", state.id, error)

    async def _is_at_client(self, state: SessionState) -> bool:
        """Whether a user is at the client: it says so, or its pane shows its composer."""
        if state.is_interactive is not None or state.pane is None:
            return state.is_interactive is True
        return await self._clearer.shows_client(state.pane, state.agent)

    async def _clear_with_draft(self, state: SessionState) -> None:
        """Have the session cleared when its turn ends, to continue from a draft in our folder."""
        pane, path = state.pane, self._folder / f"{hash_id(state.id, str(state.cycle))[:16]}.md"
        if pane is None:
            return
        try:
            row = await self._store.session(state.id)
            transcript = row and row.transcript
            draft = row and transcript and await self._monitor.draft_handoff(row, transcript)
            if not draft:
                raise CommandFailed("/clear", "the transcript has nothing to draft from")
            self._write(path, draft.text)
            document = Document.of(draft.text, str(path), self._clock())
            await self._clearer.request_clear(state.id, state.agent, pane, document)
        except (BrimlineError, OSError, TimeoutError) as error:
            LOGGER.warning("cannot rotate session %s: %s", state.id, error)
            now = self._clock()
            failed = ClearRequest(state.id, state.agent, pane, str(path), now, "failed", now)
            self._on_failed(msgspec.structs.replace(failed, why=str(error)))

    def _write(self, path: Path, text: str) -> None:
        create_private_folder(self._folder)
        for old in self._folder.glob("*.md"):
            if self._clock() - old.stat().st_mtime > KEEP_DRAFTS_S:
                old.unlink(missing_ok=True)
        replace_file(path, text.encode("utf-8", "replace"))
