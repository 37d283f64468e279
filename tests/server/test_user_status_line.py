"""The user's own status line beside ours, whatever it does."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from brimline.agents.install_spec import Scope
from brimline.daemon.hook_requests import status_line_reply
from brimline.daemon.hook_requests.status_line_reply import (
    INSIDE,
    MAX_OUTPUT_BYTES,
    SessionPlace,
    UserStatusLine,
)
from brimline.hooks.client.exchange import PASSED_VARIABLES
from brimline.install.entries import ReplacedStatusLine
from brimline.install.manifest import (
    MANIFEST_NAME,
    LinePosition,
    ManifestEntry,
    StatusLine,
    save_entry,
)

from .running import Running

pytestmark = pytest.mark.slow

OURS = "45.0% 90K/200K window"
BODY = b'{"session_id":"s"}'
SESSION = "s"
NOWHERE = SessionPlace()
Asking: TypeAlias = Callable[[], Awaitable[str]]
MAX_WAIT_S = 60.0


def record_setup(
    state: Path,
    command: str | None,
    mode: LinePosition = "append",
    scope: Scope = "user",
    file: Path | None = None,
) -> None:
    """Write what setup remembers of a status line."""
    state.mkdir(exist_ok=True)
    own = None if command is None else ReplacedStatusLine(command)
    entry = ManifestEntry(agent="claude", scope=scope, status_line=StatusLine(own, mode))
    save_entry(state, file or state / "settings.json", entry)


def line_of(own: UserStatusLine, session: str = SESSION, body: bytes = BODY) -> Asking:
    """Return a function that renders the line of a session."""
    return lambda: own.combine(OURS, session, NOWHERE, body)


async def wait_for_line(ask: Asking, fits: Callable[[str], object]) -> str:
    """Return the line once it fits."""
    end = time.monotonic() + MAX_WAIT_S
    while not fits(shown := await ask()):
        assert time.monotonic() < end, shown
    return shown


def shown_line(
    state: Path, fits: Callable[[str], object] = lambda line: line != OURS, **more: Any
) -> str:
    """Return our line with the user's, once it fits."""

    async def main() -> str:
        own = UserStatusLine(state)
        arguments: dict[str, Any] = {"session": SESSION, "place": NOWHERE, "body": BODY, **more}
        try:
            return await wait_for_line(lambda: own.combine(OURS, **arguments), fits)
        finally:
            await own.close()

    return asyncio.run(main())


def lines_in_a_row(state: Path, runs: int = 3) -> list[str]:
    """Return a few lines, each rendered after the command before has ended."""

    async def main() -> list[str]:
        own = UserStatusLine(state)
        lines: list[str] = []
        for _ in range(runs):
            lines.append(await own.combine(OURS, SESSION, NOWHERE, BODY))
            await asyncio.sleep(0.2)
        await own.close()
        return lines

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
    end = time.monotonic() + MAX_WAIT_S
    while not is_gone(pid):
        assert time.monotonic() < end, f"{pid} still runs"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("mode", "lines"),
    [("prepend", [OURS, "mine"]), ("append", ["mine", OURS]), ("replace", [OURS])],
)
def test_our_line_goes_before_after_or_instead_of_the_user_line(
    tmp_path: Path, mode: str, lines: list[str]
) -> None:
    settings = tmp_path / "home/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"statusLine": {"type": "command", "command": "echo mine"}}))
    state = tmp_path / "state"
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
           "BRIMLINE_STATE_DIR": str(state)}  # fmt: skip
    words = [sys.executable, "-m", "brimline", "setup", "claude", "--status-line", mode]
    subprocess.run(words, env=env, cwd=tmp_path, check=True, capture_output=True)
    text = shown_line(state, lambda line: len(line.splitlines()) == len(lines))
    assert text.splitlines() == lines


def test_user_line_gets_stdin_folder_and_terminal_of_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "daemon")
    monkeypatch.setenv("COLUMNS", "3")
    monkeypatch.setenv("MINE", "kept")
    state, folder = tmp_path / "state", tmp_path / "project/sub"
    folder.mkdir(parents=True)
    record_setup(state, 'echo "$(cat) $(pwd) $COLUMNS $TERM ${NO_COLOR-none} $MINE"')
    env = {"COLUMNS": "77", "TERM": "xterm-256color"}
    line = shown_line(state, place=SessionPlace(str(folder.parent), str(folder)), env=env)
    expected = f"{BODY.decode()} {folder} 77 xterm-256color none kept"
    assert line.splitlines() == [expected, OURS]


def test_user_line_runs_when_its_folder_is_gone(tmp_path: Path) -> None:
    record_setup(tmp_path, "echo mine")
    assert shown_line(tmp_path, place=SessionPlace(cwd=str(tmp_path / "gone"))) == f"mine\n{OURS}"


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
def test_lines_and_colours_of_the_user_end_before_ours(
    tmp_path: Path, command: str, line: str
) -> None:
    record_setup(tmp_path, command)
    assert shown_line(tmp_path) == f"{line}\n{OURS}"


@pytest.mark.parametrize(
    "command",
    ["exit 3", "echo wrong; exit 3", "true", "printf '\\n\\n'", "/nowhere/line", "kill -9 $$",
     "echo \x00"],
)  # fmt: skip
def test_failing_user_line_shows_nothing_but_ours(tmp_path: Path, command: str) -> None:
    record_setup(tmp_path, command)
    assert lines_in_a_row(tmp_path) == [OURS] * 3


async def test_old_output_of_a_failing_user_line_is_dropped(tmp_path: Path) -> None:
    record_setup(tmp_path, f"echo said; test ! -e {tmp_path}/broken")

    own = UserStatusLine(tmp_path)
    ask = line_of(own)
    await wait_for_line(ask, lambda line: line == f"said\n{OURS}")
    (tmp_path / "broken").touch()
    await wait_for_line(ask, lambda line: line == OURS)
    await own.close()


async def test_slow_user_line_is_not_waited_for_and_shown_later(tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    record_setup(tmp_path, f"cat; until test -e '{go_on}'; do sleep 0.02; done")

    own = UserStatusLine(tmp_path)
    assert await own.combine(OURS, SESSION, NOWHERE, b"first") == OURS
    last = line_of(own, body=b"last")
    assert await last() == OURS
    go_on.touch()
    await wait_for_line(last, lambda line: line == f"last\n{OURS}")
    await own.close()


async def test_hanging_user_line_is_killed_with_its_children(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/pid || {{ echo said; touch {tmp_path}/pid; exit; }}; "
    record_setup(tmp_path, f"{once}sleep 1000 & echo $$ $! > {tmp_path}/pid; wait")  # fmt: skip

    own = UserStatusLine(tmp_path, timeout_s=1.0)
    ask = line_of(own)
    await wait_for_line(ask, lambda line: line == f"said\n{OURS}")
    await wait_for_line(ask, lambda _: (tmp_path / "pid").read_text().endswith("\n"))
    shell, child = map(int, (tmp_path / "pid").read_text().split())
    await asyncio.to_thread(wait_until_gone, shell)
    await asyncio.to_thread(wait_until_gone, child)
    assert await ask() == f"said\n{OURS}"
    await own.close()


def test_user_line_ends_with_the_daemon(tmp_path: Path) -> None:
    record_setup(
        tmp_path, f"sleep 1000 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
    )
    shown_line(tmp_path, lambda _: (tmp_path / "pid").exists())
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_user_line_that_is_just_starting_ends_with_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, create = tmp_path / "pid", asyncio.create_subprocess_shell
    record_setup(tmp_path, f"sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait")
    has_started = asyncio.Event()

    async def create_slowly(command: str, **options: Any) -> Process:
        process = await create(command, **options)
        while not pid.exists():
            await asyncio.sleep(0.01)
        has_started.set()
        await asyncio.sleep(0.1)
        return process

    async def main() -> None:
        own = UserStatusLine(tmp_path)
        while not has_started.is_set():
            await own.combine(OURS, SESSION, NOWHERE, BODY)
        await own.close()

    monkeypatch.setattr(status_line_reply, "create_subprocess_shell", create_slowly)
    asyncio.run(main())
    wait_until_gone(int(pid.read_text()))


def test_background_child_of_a_user_line_is_not_killed(tmp_path: Path) -> None:
    record_setup(tmp_path, f"(sleep 30 & echo $! > {tmp_path}/pid) >/dev/null 2>&1; echo mine")
    assert shown_line(tmp_path) == f"mine\n{OURS}"
    left = int((tmp_path / "pid").read_text())
    assert not is_gone(left)
    os.kill(left, 9)


def test_user_line_that_asks_for_ours_gets_it_without_recursion(tmp_path: Path) -> None:
    record_setup(tmp_path, f'echo "inside ${INSIDE}"; echo x >> {tmp_path}/runs')

    async def main() -> list[str]:
        own = UserStatusLine(tmp_path)
        lines = [await own.combine(OURS, SESSION, NOWHERE, BODY, {INSIDE: "1"})]
        lines.append(await wait_for_line(line_of(own), lambda line: line != OURS))
        await own.close()
        return lines

    assert INSIDE.encode() in PASSED_VARIABLES
    assert asyncio.run(main()) == [OURS, f"inside 1\n{OURS}"]
    assert (tmp_path / "runs").read_text().count("x") >= 1


def test_endless_output_is_cut_after_whole_lines_and_ended(tmp_path: Path) -> None:
    record_setup(tmp_path, f"echo $$ > {tmp_path}/pid; exec yes 'a line'")
    *lines, last = shown_line(tmp_path).splitlines()
    assert (set(lines), last) == ({"a line"}, OURS)
    assert MAX_OUTPUT_BYTES - 7 <= sum(len(line) + 1 for line in lines) <= MAX_OUTPUT_BYTES
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_endless_single_line_shows_nothing(tmp_path: Path) -> None:
    record_setup(tmp_path, "tr '\\0' x < /dev/zero")
    assert lines_in_a_row(tmp_path, 2) == [OURS] * 2


def test_user_line_need_not_read_its_stdin(tmp_path: Path) -> None:
    record_setup(tmp_path, "echo mine")
    assert shown_line(tmp_path, body=b"x" * (4 << 20)) == f"mine\n{OURS}"


async def test_running_daemon_follows_a_new_setup(tmp_path: Path) -> None:
    own = UserStatusLine(tmp_path)
    ask = line_of(own)
    assert await ask() == OURS
    record_setup(tmp_path, "echo one")
    await wait_for_line(ask, lambda line: line == f"one\n{OURS}")
    record_setup(tmp_path, "echo two", "prepend")
    await wait_for_line(ask, lambda line: line == f"{OURS}\ntwo")
    record_setup(tmp_path, None)
    await wait_for_line(ask, lambda line: line == OURS)
    record_setup(tmp_path, "echo one")
    await wait_for_line(ask, lambda line: line != OURS)
    (tmp_path / MANIFEST_NAME).write_text("{")
    await wait_for_line(ask, lambda line: line == OURS)
    await own.close()


async def test_each_session_has_its_own_user_line(tmp_path: Path) -> None:
    record_setup(tmp_path, "cat")

    own = UserStatusLine(tmp_path)
    for name in ("a", "b"):
        await wait_for_line(
            line_of(own, name, name.encode()), lambda line, name=name: line == f"{name}\n{OURS}"
        )
    await own.close()


async def test_project_line_applies_below_it_and_user_line_elsewhere(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first, second, project = (tmp_path / name for name in ("first", "second", "project/.claude"))
    record_setup(state, "echo first", file=first / "settings.json")
    record_setup(state, "echo second", file=second / "settings.json")
    record_setup(state, "echo project", scope="project", file=project / "settings.json")
    root, sub, other = str(project.parent), str(project.parent / "sub"), "/elsewhere"
    transcript = str(second / "projects/x/s.jsonl")
    places = {
        SessionPlace(root, root, transcript): "project",
        SessionPlace(root, sub, transcript): "project",
        SessionPlace(other, other, transcript): "second",
        SessionPlace(other, other, str(first / "projects/x/s.jsonl")): "first",
        SessionPlace(other, other, "/elsewhere/s.jsonl"): "first",
    }

    own = UserStatusLine(state)
    for number, (place, output) in enumerate(places.items()):
        expected = f"{output}\n{OURS}"
        await wait_for_line(
            lambda place=place, number=number: own.combine(OURS, str(number), place, BODY),
            lambda line, expected=expected: line == expected,
        )
    await own.close()


def test_line_set_up_in_the_user_folder_applies_to_every_project(tmp_path: Path) -> None:
    config = tmp_path / "home/.claude"
    record_setup(tmp_path / "state", "echo mine", scope="project", file=config / "settings.json")
    place = SessionPlace("/elsewhere", "/elsewhere", str(config / "projects/x/s.jsonl"))
    assert shown_line(tmp_path / "state", place=place) == f"mine\n{OURS}"


# With a daemon, a client and what setup wrote.


def status_input(cwd: Path, project: Path, transcript: Path) -> dict[str, Any]:
    workspace = {"current_dir": str(cwd), "project_dir": str(project)}
    fields = {"session_id": SESSION, "cwd": str(cwd), "transcript_path": str(transcript)}
    return {**fields, "workspace": workspace, "context_window": {"context_window_size": 200_000}}


def rendered_lines(daemon: Running, input: dict[str, Any], lines: int) -> list[str]:
    """Return the lines once there are this many."""
    end = time.monotonic() + MAX_WAIT_S
    while len(rendered := daemon.hook(input, "statusline", NO_COLOR="1").splitlines()) != lines:
        assert time.monotonic() < end, rendered
    return rendered


def test_project_line_runs_in_the_folder_the_agent_changed_to(daemon: Running) -> None:
    settings = daemon.folder / "project/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    command = {"type": "command", "command": "pwd"}
    settings.write_text(json.dumps({"statusLine": command, "autoCompactWindow": 150_000}))
    project = settings.parent.parent
    words = [sys.executable, "-m", "brimline", "setup", "claude", "--scope", "project"]
    subprocess.run(words, env=daemon.environment, cwd=project, check=True, capture_output=True)
    (project / "sub").mkdir()
    for cwd in (project, project / "sub"):
        end = time.monotonic() + MAX_WAIT_S
        input = status_input(cwd, project, daemon.home / ".claude/projects/x/s.jsonl")
        while (lines := rendered_lines(daemon, input, 2))[0] != str(cwd):
            assert time.monotonic() < end, lines
        assert lines[1] == "no call yet, 200K window | compaction at 117K"


def test_user_line_that_runs_our_client_shows_ours_each_time(daemon: Running) -> None:
    runs = daemon.folder / "runs"
    ours = shlex.join(daemon.hook_command("statusline"))
    settings = daemon.home / ".claude/settings.json"
    settings.parent.mkdir()
    own = f'echo x >> {runs}; echo "[me] $({ours})"'
    settings.write_text(json.dumps({"statusLine": {"type": "command", "command": own}}))
    assert daemon.command("setup", "claude").returncode == 0
    input = status_input(daemon.folder, daemon.folder, daemon.folder / "s.jsonl")
    daemon.hook(input, "statusline", NO_COLOR="1")
    end = time.monotonic() + MAX_WAIT_S
    while not runs.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(1)  # it would run again
    assert runs.read_text() == "x\n"
    nested, line = rendered_lines(daemon, input, 2)
    assert nested in (f"[me] {line}", "[me] ctx unknown | no answer from the daemon")
