"""`brimline serve`: a daemon that runs, ends, or holds the lock without answering."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from brimline.agents.hook_adapter import HookRequest
from brimline.daemon.sockets import hold_instance_lock
from brimline.install.launcher import read_launcher, write_launcher
from brimline.testing.hook_frames import encode_request

from .terminal import PATIENCE_S, User

SESSION = "11111111-1111-4111-8111-111111111111"


def state(user: User) -> Path:
    """The state folder of the user's daemon."""
    return Path(user.env["BRIMLINE_STATE_DIR"])


@pytest.fixture
def serving(user: User, tmp_path: Path) -> Iterator[User]:
    """A user whose daemon runs; it is stopped after the test."""
    user.env["BRIMLINE_STATE_DIR"] = str(tmp_path / "s")
    started = user.run("serve", "--background")
    assert started.code == 0, started.err
    pid = int(user.run("serve", "--status", "--json").json["pid"])
    yield user
    user.run("serve", "--stop")
    if is_alive(pid):
        os.kill(pid, signal.SIGTERM)
    while is_alive(pid):
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def silent(user: User) -> str:
    """The expected message about the process that holds the lock."""
    lock = state(user) / "lock"
    pid = lock.read_text().strip()
    return (
        f"process {pid} holds {lock}, but the daemon does not answer\n"
        f"hint: If it just started or is busy, wait a moment; else stop it: `kill -9 {pid}`.\n"
    )


@pytest.mark.slow
def test_unresponsive_lock_holder_is_named_by_every_command(user: User, tmp_path: Path) -> None:
    user.env["BRIMLINE_STATE_DIR"] = str(tmp_path)
    with hold_instance_lock(tmp_path / "lock"):
        assert user.run("serve", "--status") == (3, silent(user), "")
        assert user.run("serve", "--stop") == (2, "", f"brimline: {silent(user)}")
        assert user.run("serve") == (2, "", f"brimline: {silent(user)}")
        background = user.run("serve", "--background")
        assert (background.code, background.err) == (1, f"brimline: {silent(user)}")
        status = user.run("serve", "--status", "--json").json
        assert status == {"running": False, "pid": os.getpid()}


@pytest.mark.slow
def test_daemon_lets_the_launcher_run_it_after_an_upgrade(serving: User) -> None:
    """An upgrade may change the paths of the installation, as another Python does."""
    assert serving.run("setup", "claude").code == 0
    program = read_launcher(state(serving))
    assert program is not None
    write_launcher(msgspec.structs.replace(program, script="/venv/lib/python3.10/client.py"))
    assert serving.run("serve", "--stop").code == 0
    assert serving.run("serve", "--background").code == 0
    assert read_launcher(state(serving)) == program


@pytest.mark.slow
def test_daemon_can_be_started_right_after_stop(serving: User) -> None:
    body = json.dumps({"session_id": SESSION, "hook_event_name": "UserPromptSubmit"}).encode()
    assert serving.run("send", SESSION, "a message").code == 0
    with socket.socket(socket.AF_UNIX) as hook:
        hook.connect(str(state(serving) / "hook.sock"))
        hook.sendall(
            encode_request(HookRequest("hook", "claude", f"{time.time_ns()}-1", 1, {}, body))
        )
        assert b"a message" in hook.recv(65_536)  # and it does not say that it passed it on
        assert serving.run("serve", "--stop") == (0, "stopped\n", "")
        assert serving.run("serve", "--background").code == 0


@pytest.mark.slow
def test_daemon_runs_where_uvloop_has_no_wheel(user: User, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "uvloop.py").write_text("raise ImportError")
    user.env |= {"BRIMLINE_STATE_DIR": str(tmp_path / "s"), "PYTHONPATH": str(hidden)}
    assert user.run("serve", "--background").code == 0
    assert user.run("send", SESSION, "a message").code == 0
    assert user.run("serve", "--stop").out == "stopped\n"


@pytest.mark.slow
def test_daemon_in_the_foreground_takes_another_port_if_its_own_is_taken(
    user: User, tmp_path: Path
) -> None:
    user.env["BRIMLINE_STATE_DIR"] = str(tmp_path)
    tmp_path.chmod(0o700)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        (tmp_path / "port").write_text(str(taken))
        served = user.on_terminal("serve", interrupt="Ctrl-C stops it")
    assert served.code == 0
    assert "Brimline is running at http://127.0.0.1:" in served.out
    assert f":{taken} " not in served.out


def test_missing_daemon_is_reported_with_how_to_start_it(user: User, tmp_path: Path) -> None:
    user.env["BRIMLINE_STATE_DIR"] = str(tmp_path)
    (tmp_path / "lock").write_text("1\n")
    problem = f"the daemon is not running (no answer at {tmp_path}/http.sock)\n"
    message = f"{problem}hint: `brimline serve --background` starts it.\n"
    assert user.run("serve", "--status") == (3, message, "")
    assert user.run("serve", "--stop") == (2, "", f"brimline: {message}")
    assert user.run("serve", "--status", "--json").json == {"running": False, "pid": None}


def test_unwritable_folder_is_reported_by_a_background_start(
    user: User, tmp_path: Path, drop_privileges: Callable[[], None] | None
) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o500)
    completed = user.run(
        "serve", "--background", first=drop_privileges, BRIMLINE_STATE_DIR=str(folder)
    )
    assert (completed.code, completed.out) == (2, "")
    assert f"brimline: cannot start 'brimline serve': {folder}/" in completed.err
    assert "Permission denied\n" in completed.err
    assert "set BRIMLINE_STATE_DIR to another" in completed.err


# Presses Ctrl-C when a module is about to be imported.
PRESSED = """
import runpy, sys
class Pressed:
    def find_spec(name, *place):
        if name == sys.argv[1]:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed)
runpy.run_module("brimline", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["brimline.cli", "brimline.cli.commands", "argparse"])
def test_ctrl_c_during_imports_exits_130_silently(user: User, module: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PRESSED, module],
        capture_output=True,
        cwd=user.cwd,
        env=user.env,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (completed.returncode, completed.stdout, completed.stderr) == (130, b"", b"")
