"""The user's own status line, beside ours: run as it was before, and never waited for long."""

import asyncio
from pathlib import Path

from brimline.errors import InvalidSettings
from brimline.setup import StatusLine, status_line

PATIENCE = 0.06
"""So many seconds a status line waits for it; then what it said last is shown."""

LONGEST = 5.0
"""So many seconds it may run at all."""


class OwnLine:
    """Runs the user's command for a session, at most once at a time, and remembers what it said."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._said: dict[str, str] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def beside(self, ours: str, session: str, project: str | None, body: bytes) -> str:
        """Our line with the user's own, as they wanted it."""
        set_up = self._set_up(project)
        command = set_up.own.command if set_up is not None and set_up.own is not None else None
        if set_up is None or command is None or set_up.mode == "replace":
            return ours
        own = await self._own(session, command, project, body)
        if not own:
            return ours
        return f"{ours}\n{own}" if set_up.mode == "prepend" else f"{own}\n{ours}"

    def _set_up(self, project: str | None) -> StatusLine | None:
        try:
            return status_line(self._state, project)
        except InvalidSettings:
            return None

    async def _own(self, session: str, command: str, project: str | None, body: bytes) -> str:
        if session not in self._running:
            task = asyncio.create_task(self._run(session, command, project, body))
            self._running[session] = task
            task.add_done_callback(lambda _: self._running.pop(session, None))
        await asyncio.wait([self._running[session]], timeout=PATIENCE)
        return self._said.get(session, "")

    async def _run(self, session: str, command: str, project: str | None, body: bytes) -> None:
        folder = project if project and Path(project).is_dir() else None
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LONGEST):
                out, _ = await process.communicate(body)
        except TimeoutError:
            process.kill()
            await process.wait()
            return
        self._said[session] = out.decode("utf-8", "replace").rstrip("\n")
