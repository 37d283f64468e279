"""A store that cannot be written for a while: what is not kept is not acknowledged, nor lost."""

import json
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager

import pytest

from brimline.agents.hook_adapter import HookRequest
from brimline.server.hooks.hook_socket import ACK
from brimline.testing.hook_frames import encode_request, parse_reply

from .running import PATIENCE, Running
from .test_daemon import SESSION, call, hook_input, said, status_input

if sys.platform != "linux":
    pytest.skip("another process' limits can be set on Linux alone", allow_module_level=True)

import resource

pytestmark = pytest.mark.slow

PATH = f"/v1/sessions/{SESSION}"


@contextmanager
def full_disk(daemon: Running) -> Generator[None, None, None]:
    """The daemon can write to no file; its clients can."""
    assert daemon.process is not None
    none = (1, resource.RLIM_INFINITY)
    before = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, none)
    yield
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, before)


def until(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_clients_go_on_alone(daemon: Running) -> None:
    """The status line is made of what the client tells; all that is told is kept for later."""
    spool = daemon.state / "spool"
    taken = daemon.state / "spool.taking"
    with full_disk(daemon):
        assert "60%" in daemon.client(status_input(120_000), "statusline")
        assert daemon.client(hook_input("PreCompact", trigger="auto")) == ""
        assert daemon.client(hook_input("SessionStart", source="compact")) == ""
        until(taken.exists)
        time.sleep(1.0)  # it tries to store the events before the disk has room again
        assert daemon.get("/healthz")["status"] == "ok"
        assert daemon.get("/v1/sessions") == []
    daemon.until("/v1/sessions", lambda sessions: sessions)
    told = daemon.until(f"{PATH}/timeline", lambda told: len(told["signals"]) >= 3)
    assert [signal["kind"] for signal in told["signals"]] == ["level", "compacting", "compacted"]
    until(lambda: not taken.exists() and not spool.exists())
    assert daemon.get("/v1/daemon")["malformed"] == 0
    log = said(daemon)
    assert "cannot store hook events, clients will spool them" in log
    assert log.count("spool reader failed, will retry") == 1
    assert "Traceback" not in log


def test_a_locked_store(daemon: Running) -> None:
    """A daemon that starts while another program locks the store takes the spool in later."""
    daemon.stop()
    daemon.client(hook_input("PreCompact", trigger="auto"))
    with closing(sqlite3.connect(daemon.state / "brimline.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        daemon.start()
        assert daemon.get("/v1/sessions") == []
        assert (daemon.state / "spool.taking").exists()
        other.execute("ROLLBACK")
    daemon.until("/v1/sessions", lambda sessions: sessions)
    assert [s["kind"] for s in daemon.get(f"{PATH}/timeline")["signals"]] == ["compacting"]
    until(lambda: not (daemon.state / "spool.taking").exists())


def test_api(daemon: Running) -> None:
    """A request is refused so that it is made again; so is a hook that a client posts itself."""
    with full_disk(daemon):
        for path, body in (
            (f"{PATH}/messages", {"text": "hi"}),
            ("/hooks/claude", hook_input("PreCompact", trigger="auto")),
        ):
            status, told = daemon.refused(path, json.dumps(body).encode())
            assert status == 503
            assert told["hint"].endswith("Try again.")
    assert daemon.get(f"{PATH}/messages") == []
    assert daemon.post(f"{PATH}/messages", {"text": "hi"})["id"]


def test_transcripts(daemon: Running) -> None:
    """What was written meanwhile is read when there is room again, though it changes no more."""
    transcript = daemon.home / f".claude/projects/-project/{SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(call(60_000))
    daemon.until("/v1/sessions", lambda sessions: sessions)
    with full_disk(daemon):
        with transcript.open("ab") as file:
            file.write(call(61_000))
        time.sleep(1.5)
    daemon.until(PATH, lambda view: view["threads"][0]["sent"] == 61_000)
    log = said(daemon)
    assert log.count(f"cannot process {transcript}, will retry") == 1


def test_a_message_that_was_passed_on(daemon: Running) -> None:
    """It is marked as soon as that can be kept, and nobody is told it again."""
    daemon.post(f"{PATH}/messages", {"text": "once"})
    prompt = json.dumps(hook_input("UserPromptSubmit")).encode()
    request = HookRequest("hook", "claude", f"{time.time_ns()}-1", 1, {}, prompt)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(daemon.socket))
        connection.sendall(encode_request(request))
        assert b"once" in (parse_reply(connection.recv(65_536)) or b"")
        with full_disk(daemon):
            connection.sendall(ACK)
            assert connection.recv(1) == b""
            time.sleep(0.2)
            assert daemon.get(f"{PATH}/messages")[0]["state"] == "handed"
    daemon.until(f"{PATH}/messages", lambda told: told[0]["state"] == "delivered")
    log = said(daemon)
    assert log.count("cannot store deliveries, will retry") == 1
    assert "Traceback" not in log
