"""The status line of a session: our line, and the user's own, whose command hardly delays ours."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_shell
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from brimline.agents.hook_adapter import HookRequest, StatusLineReport
from brimline.errors import InvalidSettings
from brimline.files.bounded_dict import BoundedDict
from brimline.files.bounded_reads import SHARED_READS, ReadThreads
from brimline.hooks.client.exchange import PASSED_VARIABLES
from brimline.hooks.status_line import RenderOptions, render_line, terminal_columns, wants_colour
from brimline.install.manifest import MANIFEST_NAME, StatusLine, find_status_line
from brimline.monitor.handoffs import HandoffStatus
from brimline.monitor.monitor import Monitor
from brimline.settings import Settings

FindHandoffStatus: TypeAlias = Callable[[str], Awaitable[HandoffStatus]]
FindCost: TypeAlias = Callable[[str], Awaitable[float | None]]
LINE_WAIT_S = 0.06  # then the command's last output is shown
COMMAND_TIMEOUT_S = 5.0
MAX_OUTPUT_BYTES = 32 << 10  # shown in whole lines; a command that prints more is killed
MAX_SESSIONS = 200  # whose last output is remembered

# Set for the user's command: if that runs our status line, it gets ours without the user's.
INSIDE = "BRIMLINE_STATUS_LINE"
RESET = b"\x1b[0m"
NO_ENVIRONMENT: Mapping[str, str] = {}
# The daemon's own values are not used.
_AGENT_VARIABLES = {name.decode() for name in PASSED_VARIABLES}


class SessionPlace(NamedTuple):
    """A session's project, the folder in which it works now, and its transcript."""

    project: str | None = None
    cwd: str | None = None
    transcript: str | None = None


class _Installed(NamedTuple):
    """What setup installed, and the version of the manifest that it was read from."""

    version: tuple[int, int, int] | None = None
    status_line: StatusLine | None = None


class _CommandInput(NamedTuple):
    command: str
    cwd: str | None
    body: bytes
    env: Mapping[str, str]


class UserStatusLine:
    """Runs the user's command, once at a time for a session, and remembers its last output."""

    def __init__(
        self, state: Path, timeout_s: float = COMMAND_TIMEOUT_S, threads: ReadThreads = SHARED_READS
    ) -> None:
        self._state, self._timeout_s, self._threads = state, timeout_s, threads
        self._outputs = BoundedDict[str, str](MAX_SESSIONS)
        self._next_inputs: dict[str, _CommandInput] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._installed = BoundedDict[SessionPlace, _Installed](MAX_SESSIONS)

    async def combine(
        self,
        ours: str,
        session: str,
        place: SessionPlace,
        body: bytes,
        env: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> str:
        """Return our line with the user's before or after it; ours alone inside their command.

        `env` has the known variables of the agent; all others are the daemon's.
        """
        if INSIDE in env:
            return ours
        line = await self._find_installed(place)
        if line is None or line.own is None or line.own.command is None or line.mode == "replace":
            return ours
        self._next_inputs[session] = _CommandInput(line.own.command, place.cwd, body, env)
        if session not in self._tasks:
            self._tasks[session] = asyncio.create_task(self._run(session))
        await asyncio.wait([self._tasks[session]], timeout=LINE_WAIT_S)
        theirs = self._outputs.get(session)
        if not theirs:
            return ours
        return f"{ours}\n{theirs}" if line.mode == "prepend" else f"{theirs}\n{ours}"

    async def close(self) -> None:
        """Kill every command that runs."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find_installed(self, place: SessionPlace) -> StatusLine | None:
        installed = self._installed.get(place, _Installed())
        with suppress(TimeoutError):  # the last known is used
            read = partial(_read_installed, self._state, place, installed)
            installed = self._installed[place] = await self._threads.run(read, LINE_WAIT_S)
        return installed.status_line

    async def _run(self, session: str) -> None:
        """Run the command, and again if the client asked meanwhile."""
        try:
            while (command := self._next_inputs.pop(session, None)) is not None:
                folder = await self._existing_folder(command.cwd)
                output = await _run_command(command, folder, self._timeout_s)
                if output is not None:
                    self._outputs[session] = output
        finally:
            del self._tasks[session]

    async def _existing_folder(self, cwd: str | None) -> str | None:
        """Return the folder; None if it is gone or hangs: the loop would hang with the child."""
        if not cwd:
            return None
        try:
            return cwd if await self._threads.run(Path(cwd).is_dir, self._timeout_s) else None
        except TimeoutError:
            return None


def _read_installed(state: Path, place: SessionPlace, known: _Installed) -> _Installed:
    try:
        status = os.stat(state / MANIFEST_NAME)
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version == known.version:
            return known
        return _Installed(version, find_status_line(state, place.project, place.transcript))
    except (OSError, InvalidSettings):
        return _Installed()


async def _run_command(command: _CommandInput, folder: str | None, timeout_s: float) -> str | None:
    """Return the output; empty if the command fails, as in the client; None if it is too slow."""
    # The pipe is our own: one of asyncio's would stay open for as long as any grandchild has it.
    read_end, write_end = os.pipe()
    own = {name: value for name, value in os.environ.items() if name not in _AGENT_VARIABLES}
    starting = asyncio.ensure_future(
        create_subprocess_shell(
            command.command,
            stdin=PIPE,
            stdout=write_end,
            stderr=DEVNULL,
            cwd=folder,
            env={**own, **command.env, INSIDE: "1"},
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except (OSError, ValueError):
        os.close(read_end)
        return ""
    except asyncio.CancelledError:  # the command may run already, and have children
        os.close(read_end)
        with suppress(OSError, ValueError):
            await _kill(await starting)
        raise
    finally:
        os.close(write_end)
    feed = asyncio.create_task(_feed(process, command.body))
    must_kill = True
    try:
        async with asyncio.timeout(timeout_s):
            output = await _read_output(read_end)
            failed = len(output) <= MAX_OUTPUT_BYTES and await process.wait() != 0
        must_kill = len(output) > MAX_OUTPUT_BYTES
        return "" if failed else _shown_text(output)
    except TimeoutError:
        return None
    finally:
        feed.cancel()
        if must_kill:
            await _kill(process)


async def _kill(process: Process) -> None:
    """Kill a command with its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _feed(process: Process, body: bytes) -> None:
    """Write to a process's standard input, which it need not read."""
    stdin = process.stdin
    assert stdin is not None
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(body)
            await stdin.drain()
            stdin.close()
    finally:
        if not stdin.is_closing():
            stdin.transport.abort()


async def _read_output(pipe: int) -> bytes:
    """Read a pipe to its end, or until there is more than is shown, and close it."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", 0)
    )
    output = b""
    try:
        while len(output) <= MAX_OUTPUT_BYTES and (piece := await reader.read(MAX_OUTPUT_BYTES)):
            output += piece
    finally:
        transport.close()
    return output


def _shown_text(output: bytes) -> str:
    """Return whole lines up to the limit, and reset their colours before ours."""
    if len(output) > MAX_OUTPUT_BYTES:
        output = output[:MAX_OUTPUT_BYTES].rpartition(b"\n")[0]
    output = output.rstrip(b"\r\n")
    if b"\x1b" in output and not output.endswith(RESET):
        output += RESET
    return output.decode("utf-8", "replace")


class StatusLines:
    def __init__(
        self,
        monitor: Monitor,
        handoff_status: FindHandoffStatus,
        cost: FindCost,
        settings: Settings,
        user_line: UserStatusLine,
    ) -> None:
        self._monitor, self._handoff_status, self._cost = monitor, handoff_status, cost
        self._settings, self._user_line = settings, user_line

    async def draw(
        self, request: HookRequest, report: StatusLineReport, project: str | None
    ) -> bytes:
        """Return what the client is to show."""
        client = report.input
        session = client.session_id
        handoff = await self._handoff_status(session)
        budget = self._settings.budget
        options = RenderOptions(
            line=self._settings.line,
            colour=wants_colour(request.env, self._settings.colour),
            fullness=self._monitor.fullness(session),
            columns=terminal_columns(request.env),
            calls_left=self._monitor.calls_left(session),
            handoff=None if handoff.state == "none" else handoff.state,
            handoff_calls=handoff.calls_since,
            client_error=report.reason,
            has_call=report.called,
            cost=None if budget is None else await self._cost(session),
            budget=budget,
            now=self._monitor.now(),
        )
        ours = render_line(self._monitor.reading(session), client, options)
        place = SessionPlace(project, client.cwd, client.transcript_path)
        shown = await self._user_line.combine(ours, session, place, request.body, request.env)
        return shown.encode() + b"\n"
