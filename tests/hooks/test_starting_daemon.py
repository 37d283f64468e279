"""The real daemon started by a hook: one instance, which reads the spooled events."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from brimline.files.socket_path import socket_path

from .agent import Agent, compiled_client, python_client

pytestmark = pytest.mark.slow

MAX_WAIT_S = 30.0


@dataclass(frozen=True)
class Machine:
    """A machine with only the hook client."""

    agent: Agent

    def start(self, session: str) -> None:
        """Run the hook of a session start."""
        self._run({"session_id": session, "hook_event_name": "SessionStart", "source": "startup"})

    def prompt(self, session: str) -> None:
        """Run the hook of a prompt."""
        self._run({"session_id": session, "hook_event_name": "UserPromptSubmit"}, "hook-restart")

    def _run(self, hook_input: dict[str, str], kind: str = "start") -> None:
        result = self.agent.run(json.dumps(hook_input).encode(), kind)
        assert (result.code, result.stdout, result.stderr) == (0, b"", b"")

    def kill_daemon(self) -> int:
        """Kill the daemon once it has processed an event; return its process id."""
        pid = int(self.status(1)["pid"])
        os.kill(pid, signal.SIGKILL)
        while self.brimline("serve", "--status").returncode == 0:
            time.sleep(0.05)
        return pid

    def brimline(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "brimline", *arguments]
        return subprocess.run(
            command, env=dict(self.agent.env), capture_output=True, text=True, check=False
        )

    def status(self, min_events: int) -> Any:
        """Return the daemon's status once it has processed this many events."""
        end = time.monotonic() + MAX_WAIT_S
        while time.monotonic() < end:
            status = json.loads(self.brimline("serve", "--status", "--json").stdout)
            if status["running"] and status["heard"] >= min_events:
                return status
            time.sleep(0.1)
        raise AssertionError((self.agent.folder / "serve.log").read_text())


@pytest.fixture
def machine(folder: Path) -> Iterator[Machine]:
    """A machine without a daemon; one that was started is stopped."""
    env = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "BRIMLINE_STATE_DIR": str(folder / "state"),
    }
    (folder / "state").mkdir(mode=0o700)
    socket = socket_path(folder / "state", os.getuid())
    machine_without_daemon = Machine(Agent(python_client(), folder / "state", socket, env))
    yield machine_without_daemon
    machine_without_daemon.brimline("serve", "--stop")


def test_two_sessions_start_one_daemon_that_gets_both_events(machine: Machine) -> None:
    with ThreadPoolExecutor(2) as several:
        list(several.map(machine.start, ["one", "two"]))
    assert machine.status(2)["heard"] == 2
    assert not (machine.agent.folder / "spool").exists()
    log = (machine.agent.folder / "serve.log").read_text()
    assert log.count("is running at") == 1
    assert "taken" not in log


def test_fifty_sessions_start_one_daemon_that_stores_all(machine: Machine, compiled: Path) -> None:
    agent = replace(machine.agent, command=compiled_client(compiled))
    fast = replace(machine, agent=agent)
    sessions = [f"session-{number}" for number in range(50)]
    with ThreadPoolExecutor(len(sessions)) as several:
        list(several.map(fast.start, sessions))
    status = machine.status(len(sessions))
    assert (status["heard"], status["dropped"], status["malformed"]) == (len(sessions), 0, 0)
    with sqlite3.connect(agent.folder / "brimline.db") as database:
        rows = database.execute("SELECT id FROM sessions").fetchall()
    assert sorted(sessions) == sorted(row[0] for row in rows)
    log = (agent.folder / "serve.log").read_text()
    assert (log.count("is running at"), log.count("Traceback")) == (1, 0)


def test_daemon_holds_the_start_lock_and_does_not_pass_it_on(machine: Machine) -> None:
    machine.start("one")
    pid = machine.status(1)["pid"]
    lock = machine.agent.folder / "start.lock"
    with lock.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    flags = Path(f"/proc/{pid}/fdinfo/3").read_text().split("flags:")[1].split()[0]
    assert int(flags, 8) & os.O_CLOEXEC
    machine.brimline("serve", "--stop")
    wait_until_released(lock)  # the process ends a moment after it says so


def test_session_after_a_kill_starts_the_daemon_again(machine: Machine) -> None:
    machine.start("one")
    killed = machine.kill_daemon()
    machine.start("two")
    assert machine.status(1)["pid"] != killed


def test_two_hooks_after_a_kill_start_one_daemon_again(machine: Machine) -> None:
    machine.start("one")
    killed = machine.kill_daemon()
    with ThreadPoolExecutor(2) as several:
        list(several.map(machine.prompt, ["one", "one"]))
    status = machine.status(2)
    assert (status["pid"] != killed, status["heard"]) == (True, 2)
    log = (machine.agent.folder / "serve.log").read_text()
    assert (log.count("is running at"), "taken" in log) == (2, False)


def test_start_that_fails_is_not_tried_again_within_a_minute(machine: Machine) -> None:
    (machine.agent.folder / "brimline.db").mkdir()
    machine.prompt("one")
    log = machine.agent.folder / "serve.log"
    wait_until_released(machine.agent.folder / "start.lock")
    tried = log.read_text()
    assert tried
    for _ in range(3):
        machine.prompt("one")
    wait_until_released(machine.agent.folder / "start.lock")
    assert log.read_text() == tried


def wait_until_released(lock: Path) -> None:
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_stopped_daemon_stays_off_until_a_new_session(machine: Machine) -> None:
    machine.start("one")
    stopped = machine.status(1)["pid"]
    assert machine.brimline("serve", "--stop").returncode == 0
    lock = machine.agent.folder / "start.lock"
    wait_until_released(lock)
    machine.prompt("one")
    wait_until_released(lock)
    assert machine.brimline("serve", "--status").returncode == 3
    machine.start("two")
    assert machine.status(2)["pid"] != stopped
    machine.kill_daemon()
    machine.prompt("one")
    machine.status(1)


def test_autostart_off_in_the_settings_starts_no_daemon(machine: Machine) -> None:
    config = machine.agent.folder / "config.toml"
    config.write_text("daemon = {autostart = false}")
    env = {**machine.agent.env, "BRIMLINE_CONFIG": str(config)}
    off = replace(machine, agent=replace(machine.agent, env=env))
    assert off.brimline("serve", "--autostart").returncode == 0
    assert off.brimline("serve", "--status").returncode == 3


def test_background_returns_when_the_daemon_answers_and_starts_no_second_one(
    machine: Machine,
) -> None:
    result = machine.brimline("serve", "--background")
    assert (result.returncode, result.stderr) == (0, "")
    assert "is running at http://127.0.0.1:" in result.stdout
    first = machine.status(0)["pid"]
    assert "already" in machine.brimline("serve", "--background").stdout
    assert machine.status(0)["pid"] == first


def test_failed_background_start_prints_the_reason(machine: Machine) -> None:
    (machine.agent.folder / "brimline.db").mkdir()
    result = machine.brimline("serve", "--background")
    assert result.returncode == 1
    assert result.stderr.strip()


def test_large_log_is_rotated_at_start(machine: Machine) -> None:
    log = machine.agent.folder / "serve.log"
    log.write_bytes(b"x" * ((1 << 20) + 1))
    machine.start("one")
    machine.status(1)
    assert log.with_name("serve.log.1").stat().st_size == (1 << 20) + 1
    assert "is running at" in log.read_text()
