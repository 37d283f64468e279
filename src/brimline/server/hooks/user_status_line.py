"""The user's own status line, beside ours: run as it was before, and never waited for long."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_shell
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from brimline.bounded_dict import BoundedDict
from brimline.bounded_reads import SHARED_READS, ReadThreads
from brimline.errors import InvalidSettings
from brimline.hooks.client.exchange import NAMES
from brimline.setup.manifest import MANIFEST_NAME, StatusLine, find_status_line

LINE_WAIT_S = 0.06  # then the command's last output is shown

COMMAND_TIMEOUT_S = 5.0

# Bytes of the output that are shown, in whole lines; a command that prints more is ended.
MOST = 32 << 10

SESSIONS = 200  # sessions whose last output is remembered


# Set for the user's command: if that runs our status line, it gets ours without the user's.
INSIDE = "BRIMLINE_STATUS_LINE"

RESET = b"\x1b[0m"
NO_ENVIRONMENT: Mapping[str, str] = {}
# The variables that are the agent's, and not the daemon's.
_TOLD = {name.decode() for name in NAMES}


class Place(NamedTuple):
    """Where a session is at home, the folder that it works in now, and its transcript."""

    project: str | None = None
    cwd: str | None = None
    transcript: str | None = None


_SetUp: TypeAlias = tuple[tuple[int, int, int] | None, StatusLine | None]
_NEVER_READ: _SetUp = (None, None)


class Asked(NamedTuple):
    """A run that is wanted: the command, and what the client gives it."""

    command: str
    cwd: str | None
    body: bytes
    env: Mapping[str, str]


class UserStatusLine:
    """Runs the user's command for a session, at most once at a time, and remembers what it said."""

    def __init__(
        self, state: Path, longest: float = COMMAND_TIMEOUT_S, threads: ReadThreads = SHARED_READS
    ) -> None:
        self._state = state
        self._threads = threads
        self._longest = longest
        self._said = BoundedDict[str, str](SESSIONS)
        self._asked: dict[str, Asked] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._known = BoundedDict[Place, _SetUp](SESSIONS)

    async def beside(
        self,
        ours: str,
        session: str,
        place: Place,
        body: bytes,
        env: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> str:
        """Our line with the user's own, as they wanted it; ours alone where theirs asks for it.

        `env` is what is known of the agent's environment; the rest of it is the daemon's.
        """
        if INSIDE in env:
            return ours
        set_up = await self._set_up(place)
        command = set_up.own.command if set_up is not None and set_up.own is not None else None
        if set_up is None or command is None or set_up.mode == "replace":
            return ours
        own = await self._own(session, Asked(command, place.cwd, body, env))
        if not own:
            return ours
        return f"{ours}\n{own}" if set_up.mode == "prepend" else f"{own}\n{ours}"

    async def close(self) -> None:
        """End every command that runs."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _set_up(self, place: Place) -> StatusLine | None:
        """How it was set up; the file is read again when it was changed."""
        known = self._known.get(place, _NEVER_READ)
        with suppress(TimeoutError):  # what was known before is used
            known = await self._threads.run(
                partial(_read_set_up, self._state, place, known), LINE_WAIT_S
            )
            self._known[place] = known
        return known[1]

    async def _own(self, session: str, asked: Asked) -> str:
        self._asked[session] = asked
        if session not in self._running:
            self._running[session] = asyncio.create_task(self._run(session))
        await asyncio.wait([self._running[session]], timeout=LINE_WAIT_S)
        return self._said.get(session, "")

    async def _folder(self, cwd: str | None) -> str | None:
        """The folder to run in; None if it is gone or hangs: the loop would hang with the child."""
        if not cwd:
            return None
        try:
            return cwd if await self._threads.run(Path(cwd).is_dir, self._longest) else None
        except TimeoutError:
            return None

    async def _run(self, session: str) -> None:
        """Run it, and again with what was asked for meanwhile: what is shown next is the latest."""
        try:
            while (asked := self._asked.pop(session, None)) is not None:
                said = await _said(asked, await self._folder(asked.cwd), self._longest)
                if said is not None:
                    self._said[session] = said
        finally:
            del self._running[session]


def _read_set_up(state: Path, place: Place, known: _SetUp) -> _SetUp:
    """How it is set up, with the version of the file that says so; `known` if that is the same."""
    try:
        now = os.stat(state / MANIFEST_NAME)
        version = (now.st_mtime_ns, now.st_size, now.st_ino)
        if version == known[0]:
            return known
        return version, find_status_line(state, place.project, place.transcript)
    except (OSError, InvalidSettings):
        return _NEVER_READ


async def _said(asked: Asked, folder: str | None, longest: float) -> str | None:
    """What a command says: nothing where it fails, as in the client; None where it is too slow."""
    ours, theirs = os.pipe()
    try:
        process = await create_subprocess_shell(
            asked.command,
            stdin=PIPE,
            stdout=theirs,
            stderr=DEVNULL,
            cwd=folder,
            env=_environment(asked.env),
            start_new_session=True,
        )
    except (OSError, ValueError):
        os.close(ours)
        return ""
    finally:
        os.close(theirs)
    return await _heard(process, ours, asked.body, longest)


def _environment(told: Mapping[str, str]) -> dict[str, str]:
    """The daemon's environment, with the agent's terminal in the place of the daemon's."""
    own = {name: value for name, value in os.environ.items() if name not in _TOLD}
    return {**own, **told, INSIDE: "1"}


async def _heard(process: Process, out: int, body: bytes, longest: float) -> str | None:
    """What a process says, fed with the body; one that is given up is killed, with its children."""
    feeding = asyncio.create_task(_feed(process, body))
    given_up = True
    try:
        async with asyncio.timeout(longest):
            said = await _printed(out)
            failed = len(said) <= MOST and await process.wait() != 0
        given_up = len(said) > MOST
        return "" if failed else _shown(said)
    except TimeoutError:
        return None
    finally:
        feeding.cancel()
        if given_up:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _feed(process: Process, body: bytes) -> None:
    """Give a process its standard input; it need not take it."""
    stdin = process.stdin
    assert stdin is not None
    try:
        stdin.write(body)
        await stdin.drain()
        stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return
    finally:
        if not stdin.is_closing():
            stdin.transport.abort()


async def _printed(out: int) -> bytes:
    """What comes through a pipe until its end, or until it is too much; then it is closed.

    The pipe is our own: one of asyncio's would stay open for as long as any grandchild has it.
    """
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(out, "rb", 0)
    )
    printed = b""
    try:
        while len(printed) <= MOST and (piece := await reader.read(MOST)):
            printed += piece
    finally:
        transport.close()
    return printed


def _shown(said: bytes) -> str:
    """Whole lines, as many as there is room for; no colour of theirs reaches ours."""
    if len(said) > MOST:
        said = said[:MOST].rpartition(b"\n")[0]
    said = said.rstrip(b"\r\n")
    if b"\x1b" in said and not said.endswith(RESET):
        said += RESET
    return said.decode("utf-8", "replace")
