"""The real daemon, started by a session's hook: one of it, which hears what was told before."""

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

from brimline.settings import socket_path

from .agent import Agent, compiled_client, python_client

pytestmark = pytest.mark.slow

PATIENCE = 30.0


@dataclass(frozen=True)
class Machine:
    """A user's machine with nothing but the hook client on it."""

    agent: Agent

    def start(self, session: str) -> None:
        """A session starts."""
        told = {"session_id": session, "hook_event_name": "SessionStart", "source": "startup"}
        done = self.agent.run(json.dumps(told).encode(), "start")
        assert (done.code, done.out, done.told) == (0, b"", b"")

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """One of our commands."""
        command = [sys.executable, "-m", "brimline", *words]
        return subprocess.run(
            command, env=dict(self.agent.env), capture_output=True, text=True, check=False
        )

    def status(self, heard: int) -> Any:
        """What the daemon tells of itself once it has heard so much."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            told = json.loads(self.command("serve", "--status", "--json").stdout)
            if told["running"] and told["heard"] >= heard:
                return told
            time.sleep(0.1)
        raise AssertionError((self.agent.folder / "serve.log").read_text())


@pytest.fixture
def machine(folder: Path) -> Iterator[Machine]:
    """A machine without a daemon; one that was started is ended."""
    env = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "BRIMLINE_STATE_DIR": str(folder / "state"),
    }
    (folder / "state").mkdir(mode=0o700)
    socket = socket_path(folder / "state", os.getuid())
    made = Machine(Agent(python_client(), folder / "state", socket, env))
    yield made
    made.command("serve", "--stop")


def test_two_sessions_at_once(machine: Machine) -> None:
    """One daemon lives, the other goes without a word; the events of both are heard, once."""
    with ThreadPoolExecutor(2) as several:
        list(several.map(machine.start, ["one", "two"]))
    assert machine.status(2)["heard"] == 2
    assert not (machine.agent.folder / "spool").exists()
    log = (machine.agent.folder / "serve.log").read_text()
    assert log.count("is running at") == 1
    assert "taken" not in log


def test_fifty_sessions_at_once(machine: Machine, compiled: Path) -> None:
    """One daemon is started, and every session is in its store; none is dropped."""
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


def test_daemon_keeps_the_start_lock_to_itself(machine: Machine) -> None:
    """It holds the lock as long as it lives, and no process that it runs inherits it."""
    machine.start("one")
    pid = machine.status(1)["pid"]
    lock = machine.agent.folder / "start.lock"
    with lock.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    flags = Path(f"/proc/{pid}/fdinfo/3").read_text().split("flags:")[1].split()[0]
    assert int(flags, 8) & os.O_CLOEXEC
    machine.command("serve", "--stop")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the process ends a moment after it says so


def test_after_a_kill(machine: Machine) -> None:
    """The next session starts it again, onto what the killed one left."""
    machine.start("one")
    killed = machine.status(1)["pid"]
    os.kill(killed, signal.SIGKILL)
    while machine.command("serve", "--status").returncode == 0:
        time.sleep(0.05)
    machine.start("two")
    assert machine.status(1)["pid"] != killed


def test_switched_off_in_the_settings(machine: Machine) -> None:
    """A hook that was set up before autostart was switched off starts nothing that stays."""
    config = machine.agent.folder / "config.toml"
    config.write_text("daemon = {autostart = false}")
    env = {**machine.agent.env, "BRIMLINE_CONFIG": str(config)}
    off = replace(machine, agent=replace(machine.agent, env=env))
    assert off.command("serve", "--autostart").returncode == 0
    assert off.command("serve", "--status").returncode == 3


def test_background(machine: Machine) -> None:
    """`serve --background` comes back when the daemon answers; a second time it says so."""
    done = machine.command("serve", "--background")
    assert (done.returncode, done.stderr) == (0, "")
    assert "is running at http://127.0.0.1:" in done.stdout
    first = machine.status(0)["pid"]
    assert "already" in machine.command("serve", "--background").stdout
    assert machine.status(0)["pid"] == first


def test_background_that_cannot_be(machine: Machine) -> None:
    """What it said last tells why it did not come up."""
    (machine.agent.folder / "brimline.db").mkdir()
    done = machine.command("serve", "--background")
    assert done.returncode == 1
    assert done.stderr.strip()


def test_log_is_put_aside(machine: Machine) -> None:
    """A log that has grown too large is put aside when a daemon starts."""
    log = machine.agent.folder / "serve.log"
    log.write_bytes(b"x" * ((1 << 20) + 1))
    machine.start("one")
    machine.status(1)
    assert log.with_name("serve.log.1").stat().st_size == (1 << 20) + 1
    assert "is running at" in log.read_text()
