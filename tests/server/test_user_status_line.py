"""The user's own status line beside ours, whatever it does."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from brimline.agents.install_spec import Scope
from brimline.hooks.client.exchange import PASSED_VARIABLES
from brimline.server.hooks.user_status_line import (
    INSIDE,
    MAX_OUTPUT_BYTES,
    SessionPlace,
    UserStatusLine,
)
from brimline.setup.entries import ReplacedStatusLine
from brimline.setup.manifest import (
    MANIFEST_NAME,
    LinePosition,
    ManifestEntry,
    StatusLine,
    save_entry,
)

from .running import Running

pytestmark = pytest.mark.slow

OURS = "45% 90K/200K window"
BODY = b'{"session_id":"s"}'
SESSION = "s"
NOWHERE = SessionPlace()
Asking: TypeAlias = Callable[[], Awaitable[str]]
PATIENCE = 30.0
"""Seconds; a busy machine may need them."""


def set_up(
    state: Path,
    command: str | None,
    mode: LinePosition = "append",
    scope: Scope = "user",
    file: Path | None = None,
) -> None:
    """What setup remembers of a status line."""
    state.mkdir(exist_ok=True)
    own = None if command is None else ReplacedStatusLine(command)
    kept = ManifestEntry(agent="claude", scope=scope, status_line=StatusLine(own, mode))
    save_entry(state, file or state / "settings.json", kept)


def asking(own: UserStatusLine, session: str = SESSION, body: bytes = BODY) -> Asking:
    """A status line of a session, as often as it is asked for."""
    return lambda: own.combine(OURS, session, NOWHERE, body)


async def until(ask: Asking, fits: Callable[[str], object]) -> str:
    """What is shown once it fits."""
    end = time.monotonic() + PATIENCE
    while not fits(shown := await ask()):
        assert time.monotonic() < end, shown
    return shown


def shown(
    state: Path, fits: Callable[[str], object] = lambda line: line != OURS, **more: Any
) -> str:
    """Our line with the user's, once it fits."""

    async def main() -> str:
        own = UserStatusLine(state)
        told: dict[str, Any] = {"session": SESSION, "place": NOWHERE, "body": BODY, **more}
        try:
            return await until(lambda: own.combine(OURS, **told), fits)
        finally:
            await own.close()

    return asyncio.run(main())


def never(state: Path, runs: int = 3) -> list[str]:
    """What is shown by a few lines in a row, each when the command before it has ended."""

    async def main() -> list[str]:
        own = UserStatusLine(state)
        found: list[str] = []
        for _ in range(runs):
            found.append(await own.combine(OURS, SESSION, NOWHERE, BODY))
            await asyncio.sleep(0.2)
        await own.close()
        return found

    return asyncio.run(main())


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return (
            subprocess.run(["kill", "-0", str(pid)], capture_output=True, check=False).returncode
            != 0
        )
    return stat.rpartition(")")[2].split()[0] == "Z"


def wait_until_gone(pid: int) -> None:
    """Wait for a process to end."""
    end = time.monotonic() + PATIENCE
    while not is_gone(pid):
        assert time.monotonic() < end, f"{pid} still runs"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("mode", "lines"),
    [("prepend", [OURS, "mine"]), ("append", ["mine", OURS]), ("replace", [OURS])],
)
def test_modes(tmp_path: Path, mode: str, lines: list[str]) -> None:
    """Set up by the command line, ours goes before theirs, after it, or in its place."""
    settings = tmp_path / "home/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"statusLine": {"type": "command", "command": "echo mine"}}))
    state = tmp_path / "state"
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
           "BRIMLINE_STATE_DIR": str(state)}  # fmt: skip
    words = [sys.executable, "-m", "brimline", "setup", "claude", "--status-line", mode]
    subprocess.run(words, env=env, cwd=tmp_path, check=True, capture_output=True)
    found = shown(state, lambda line: len(line.splitlines()) == len(lines))
    assert found.splitlines() == lines


def test_given_what_the_client_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the same stdin, folder and terminal; what else it has is the daemon's."""
    monkeypatch.setenv("NO_COLOR", "daemon")
    monkeypatch.setenv("COLUMNS", "3")
    monkeypatch.setenv("MINE", "kept")
    state, folder = tmp_path / "state", tmp_path / "project/sub"
    folder.mkdir(parents=True)
    set_up(state, 'echo "$(cat) $(pwd) $COLUMNS $TERM ${NO_COLOR-none} $MINE"')
    env = {"COLUMNS": "77", "TERM": "xterm-256color"}
    found = shown(state, place=SessionPlace(str(folder.parent), str(folder)), env=env)
    told = f"{BODY.decode()} {folder} 77 xterm-256color none kept"
    assert found.splitlines() == [told, OURS]


def test_folder_that_is_gone(tmp_path: Path) -> None:
    """Where the session's folder is gone it is run all the same."""
    set_up(tmp_path, "echo mine")
    assert shown(tmp_path, place=SessionPlace(cwd=str(tmp_path / "gone"))) == f"mine\n{OURS}"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("printf 'one\\ntwo\\n\\n'", "one\ntwo"),
        ("printf '\\n one \\r\\n'", "\n one "),
        ("printf '\\033[31mred'", "\x1b[31mred\x1b[0m"),
        ("printf '\\033[31mred\\033[0m\\n'", "\x1b[31mred\x1b[0m"),
        ("printf 'a\\377b'", "a\ufffdb"),
        ("printf 'é █ 界'", "é █ 界"),
        ("echo shown; echo hidden >&2", "shown"),
    ],
    ids=["lines", "space", "colour", "closed colour", "no UTF-8", "UTF-8", "stderr"],
)
def test_what_it_says(tmp_path: Path, command: str, line: str) -> None:
    """Lines and colours are theirs, and end where ours begin."""
    set_up(tmp_path, command)
    assert shown(tmp_path) == f"{line}\n{OURS}"


@pytest.mark.parametrize(
    "command",
    ["exit 3", "echo wrong; exit 3", "true", "printf '\\n\\n'", "/nowhere/line", "kill -9 $$",
     "echo \x00"],
)  # fmt: skip
def test_failing(tmp_path: Path, command: str) -> None:
    """One that fails or says nothing shows nothing, as in the client; ours is there each time."""
    set_up(tmp_path, command)
    assert never(tmp_path) == [OURS] * 3


def test_failing_later(tmp_path: Path) -> None:
    """What it said before it failed is not shown for ever."""
    set_up(tmp_path, f"echo said; test ! -e {tmp_path}/broken")

    async def main() -> None:
        own = UserStatusLine(tmp_path)
        ask = asking(own)
        await until(ask, lambda line: line == f"said\n{OURS}")
        (tmp_path / "broken").touch()
        await until(ask, lambda line: line == OURS)
        await own.close()

    asyncio.run(main())


def test_slow(tmp_path: Path) -> None:
    """A slow one is not waited for; it is shown when it is there, of what was told last."""
    set_up(tmp_path, "cat; sleep 0.4")

    async def main() -> None:
        own = UserStatusLine(tmp_path)
        assert await own.combine(OURS, SESSION, NOWHERE, b"first") == OURS
        last = asking(own, body=b"last")
        assert await last() in (OURS, f"first\n{OURS}")
        await until(last, lambda line: line == f"last\n{OURS}")
        await own.close()

    asyncio.run(main())


def test_hanging(tmp_path: Path) -> None:
    """One that never ends is killed with its children; what it said last is shown meanwhile."""
    set_up(tmp_path, f"test -e {tmp_path}/pid || {{ echo said; touch {tmp_path}/pid; exit; }}; "
                     f"sleep 1000 & echo $$ $! > {tmp_path}/pid; wait")  # fmt: skip

    async def main() -> None:
        own = UserStatusLine(tmp_path, timeout_s=1.0)
        ask = asking(own)
        await until(ask, lambda line: line == f"said\n{OURS}")
        await until(ask, lambda _: (tmp_path / "pid").read_text().endswith("\n"))
        shell, child = map(int, (tmp_path / "pid").read_text().split())
        await asyncio.to_thread(wait_until_gone, shell)
        await asyncio.to_thread(wait_until_gone, child)
        assert await ask() == f"said\n{OURS}"
        await own.close()

    asyncio.run(main())


def test_daemon_that_ends(tmp_path: Path) -> None:
    """When the daemon ends, so does what it runs."""
    set_up(
        tmp_path, f"sleep 1000 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
    )
    shown(tmp_path, lambda _: (tmp_path / "pid").exists())
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_child_in_the_background(tmp_path: Path) -> None:
    """What an own line leaves behind it on purpose is left alone."""
    set_up(tmp_path, f"(sleep 30 & echo $! > {tmp_path}/pid) >/dev/null 2>&1; echo mine")
    assert shown(tmp_path) == f"mine\n{OURS}"
    left = int((tmp_path / "pid").read_text())
    assert not is_gone(left)
    os.kill(left, 9)


def test_line_that_asks_for_ours(tmp_path: Path) -> None:
    """What asks for ours from within the user's line gets ours alone, and is not run again."""
    set_up(tmp_path, f'echo "inside ${INSIDE}"; echo x >> {tmp_path}/runs')

    async def main() -> list[str]:
        own = UserStatusLine(tmp_path)
        lines = [await own.combine(OURS, SESSION, NOWHERE, BODY, {INSIDE: "1"})]
        lines.append(await until(asking(own), lambda line: line != OURS))
        await own.close()
        return lines

    assert INSIDE.encode() in PASSED_VARIABLES
    assert asyncio.run(main()) == [OURS, f"inside 1\n{OURS}"]
    assert (tmp_path / "runs").read_text().count("x") >= 1


def test_huge(tmp_path: Path) -> None:
    """Of one that prints without end the first lines are shown, whole, and it is ended."""
    set_up(tmp_path, f"echo $$ > {tmp_path}/pid; exec yes 'a line'")
    *lines, last = shown(tmp_path).splitlines()
    assert (set(lines), last) == ({"a line"}, OURS)
    assert MAX_OUTPUT_BYTES - 7 <= sum(len(line) + 1 for line in lines) <= MAX_OUTPUT_BYTES
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_endless_line(tmp_path: Path) -> None:
    """One line that never ends is none."""
    set_up(tmp_path, "tr '\\0' x < /dev/zero")
    assert never(tmp_path, 2) == [OURS] * 2


def test_one_that_reads_nothing(tmp_path: Path) -> None:
    """It need not read what it is given, however much that is."""
    set_up(tmp_path, "echo mine")
    assert shown(tmp_path, body=b"x" * (4 << 20)) == f"mine\n{OURS}"


def test_set_up_anew(tmp_path: Path) -> None:
    """A running daemon goes by what setup wrote last, also when nothing of it can be read."""

    async def main() -> None:
        own = UserStatusLine(tmp_path)
        ask = asking(own)
        assert await ask() == OURS
        set_up(tmp_path, "echo one")
        await until(ask, lambda line: line == f"one\n{OURS}")
        set_up(tmp_path, "echo two", "prepend")
        await until(ask, lambda line: line == f"{OURS}\ntwo")
        set_up(tmp_path, None)
        assert await ask() == OURS
        (tmp_path / MANIFEST_NAME).write_text("{")
        assert await ask() == OURS
        await own.close()

    asyncio.run(main())


def test_sessions(tmp_path: Path) -> None:
    """Two sessions have a line each."""
    set_up(tmp_path, "cat")

    async def main() -> None:
        own = UserStatusLine(tmp_path)
        for name in ("a", "b"):
            await until(
                asking(own, name, name.encode()), lambda line, name=name: line == f"{name}\n{OURS}"
            )
        await own.close()

    asyncio.run(main())


def test_folders(tmp_path: Path) -> None:
    """A project has its own line in all its folders, a user's folder its own in all projects."""
    state = tmp_path / "state"
    first, second, project = (tmp_path / name for name in ("first", "second", "project/.claude"))
    set_up(state, "echo first", file=first / "settings.json")
    set_up(state, "echo second", file=second / "settings.json")
    set_up(state, "echo project", scope="project", file=project / "settings.json")
    root, sub, other = str(project.parent), str(project.parent / "sub"), "/elsewhere"
    transcript = str(second / "projects/x/s.jsonl")
    places = {
        SessionPlace(root, root, transcript): "project",
        SessionPlace(root, sub, transcript): "project",
        SessionPlace(other, other, transcript): "second",
        SessionPlace(other, other, str(first / "projects/x/s.jsonl")): "first",
        SessionPlace(other, other, "/elsewhere/s.jsonl"): "first",
    }

    async def main() -> None:
        own = UserStatusLine(state)
        for number, (place, said) in enumerate(places.items()):
            expected = f"{said}\n{OURS}"
            await until(
                lambda place=place, number=number: own.combine(OURS, str(number), place, BODY),
                lambda line, expected=expected: line == expected,
            )
        await own.close()

    asyncio.run(main())


def test_users_folder_as_a_project(tmp_path: Path) -> None:
    """Set up as a project, the user's own folder is still the one of every project."""
    config = tmp_path / "home/.claude"
    set_up(tmp_path / "state", "echo mine", scope="project", file=config / "settings.json")
    place = SessionPlace("/elsewhere", "/elsewhere", str(config / "projects/x/s.jsonl"))
    assert shown(tmp_path / "state", place=place) == f"mine\n{OURS}"


# With a daemon, a client and what setup wrote.


def told(cwd: Path, project: Path, transcript: Path) -> dict[str, Any]:
    """What Claude Code gives its status line."""
    workspace = {"current_dir": str(cwd), "project_dir": str(project)}
    found = {"session_id": SESSION, "cwd": str(cwd), "transcript_path": str(transcript)}
    return {**found, "workspace": workspace, "context_window": {"context_window_size": 200_000}}


def drawn(daemon: Running, input: dict[str, Any], lines: int) -> list[str]:
    """What is shown once it has so many lines."""
    end = time.monotonic() + PATIENCE
    while len(found := daemon.hook(input, "statusline", NO_COLOR="1").splitlines()) != lines:
        assert time.monotonic() < end, found
    return found


def test_agent_that_goes_to_another_folder(daemon: Running) -> None:
    """In a project that was set up the line is there from every folder, run in that one."""
    settings = daemon.folder / "project/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    command = {"type": "command", "command": "pwd"}
    settings.write_text(json.dumps({"statusLine": command, "autoCompactWindow": 150_000}))
    project = settings.parent.parent
    words = [sys.executable, "-m", "brimline", "setup", "claude", "--scope", "project"]
    subprocess.run(words, env=daemon.environment, cwd=project, check=True, capture_output=True)
    (project / "sub").mkdir()
    for cwd in (project, project / "sub"):
        end = time.monotonic() + PATIENCE
        input = told(cwd, project, daemon.home / ".claude/projects/x/s.jsonl")
        while (found := drawn(daemon, input, 2))[0] != str(cwd):
            assert time.monotonic() < end, found
        assert found[1] == "no call yet, 200K window | compaction at 117K"


def test_line_that_runs_our_client(daemon: Running) -> None:
    """A line that has ours in it shows it so, and is run as often as it is asked for."""
    runs = daemon.folder / "runs"
    ours = shlex.join(daemon.words("statusline"))
    settings = daemon.home / ".claude/settings.json"
    settings.parent.mkdir()
    own = f'echo x >> {runs}; echo "[me] $({ours})"'
    settings.write_text(json.dumps({"statusLine": {"type": "command", "command": own}}))
    assert daemon.command("setup", "claude").returncode == 0
    input = told(daemon.folder, daemon.folder, daemon.folder / "s.jsonl")
    daemon.hook(input, "statusline", NO_COLOR="1")
    time.sleep(2)
    assert runs.read_text() == "x\n"
    nested, line = drawn(daemon, input, 2)
    assert nested in (f"[me] {line}", "[me] ctx unknown | no answer from the daemon")
