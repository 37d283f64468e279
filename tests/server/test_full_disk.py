"""A store that cannot be written for a while: unstored data is neither acknowledged nor lost."""

import json
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager

import pytest

from brimline.agents.hook_adapter import HookRequest
from brimline.daemon.hook_requests.hook_socket import ACK
from brimline.testing.hook_frames import encode_request, parse_reply

from .running import MAX_WAIT_S, Running
from .test_daemon import SESSION, call_record, hook_input, status_input, stop_and_read_log

if sys.platform != "linux":
    pytest.skip("another process' limits can be set on Linux alone", allow_module_level=True)

import resource

pytestmark = pytest.mark.slow

PATH = f"/v1/sessions/{SESSION}"


@contextmanager
def full_disk(daemon: Running) -> Generator[None, None, None]:
    """Limit the daemon's file size to 0; its clients can write."""
    assert daemon.process is not None
    none = (1, resource.RLIM_INFINITY)
    before = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, none)
    yield
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, before)


def wait_until(true: Callable[[], object]) -> None:
    end = time.monotonic() + MAX_WAIT_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_hooks_are_spooled_while_the_disk_is_full_and_processed_later(daemon: Running) -> None:
    spool = daemon.state / "spool"
    spool_batch = daemon.state / "spool.taking"
    with full_disk(daemon):
        line = daemon.client(status_input(120_000), "statusline")
        assert line == "ctx unknown | no answer from the daemon\n"
        assert daemon.client(hook_input("PreCompact", trigger="auto")) == ""
        assert daemon.client(hook_input("SessionStart", source="compact")) == ""
        wait_until(spool_batch.exists)
        log = daemon.read_log_until("spool reader failed, will retry")
        assert daemon.get("/healthz")["status"] == "ok"
        assert daemon.get("/v1/sessions") == []
    daemon.until("/v1/sessions", lambda sessions: sessions)
    timeline = daemon.until(f"{PATH}/timeline", lambda timeline: len(timeline["signals"]) >= 3)
    assert [signal["kind"] for signal in timeline["signals"]] == [
        "level",
        "compacting",
        "compacted",
    ]
    wait_until(lambda: not spool_batch.exists() and not spool.exists())
    assert daemon.get("/v1/daemon")["malformed"] == 0
    log += stop_and_read_log(daemon)
    assert "cannot store hook events, clients will spool them" in log
    assert log.count("spool reader failed, will retry") == 1
    assert "Traceback" not in log


def test_spool_is_processed_after_a_locked_store_is_released(daemon: Running) -> None:
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
    wait_until(lambda: not (daemon.state / "spool.taking").exists())


def test_requests_and_posted_hooks_fail_with_a_retry_while_the_disk_is_full(
    daemon: Running,
) -> None:
    with full_disk(daemon):
        for path, body in (
            (f"{PATH}/messages", {"text": "hi"}),
            ("/hooks/claude", hook_input("PreCompact", trigger="auto")),
        ):
            status, error = daemon.refused(path, json.dumps(body).encode())
            assert status == 503
            assert error["hint"].endswith("Try again.")
    assert daemon.get(f"{PATH}/messages") == []
    assert daemon.post(f"{PATH}/messages", {"text": "hi"})["id"]


def test_transcript_written_while_the_disk_was_full_is_read_later(daemon: Running) -> None:
    transcript = daemon.home / f".claude/projects/-project/{SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(call_record(60_000))
    daemon.until("/v1/sessions", lambda sessions: sessions)
    with full_disk(daemon):
        with transcript.open("ab") as file:
            file.write(call_record(61_000))
        log = daemon.read_log_until(f"cannot process {transcript}, will retry")
    daemon.until(PATH, lambda view: view["threads"][0]["sent"] == 61_000)
    log += stop_and_read_log(daemon)
    assert log.count(f"cannot process {transcript}, will retry") == 1


def test_delivered_message_is_marked_later_and_not_repeated(daemon: Running) -> None:
    daemon.post(f"{PATH}/messages", {"text": "once"})
    prompt = json.dumps(hook_input("UserPromptSubmit")).encode()
    request = HookRequest("hook", "claude", f"{time.time_ns()}-1", 1, {}, prompt)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(MAX_WAIT_S)
        connection.connect(str(daemon.socket))
        connection.sendall(encode_request(request))
        assert b"once" in (parse_reply(connection.recv(65_536)) or b"")
        with full_disk(daemon):
            connection.sendall(ACK)
            assert connection.recv(1) == b""
            log = daemon.read_log_until("cannot store deliveries, will retry")
            assert daemon.get(f"{PATH}/messages")[0]["state"] == "handed"
    daemon.until(f"{PATH}/messages", lambda messages: messages[0]["state"] == "delivered")
    log += stop_and_read_log(daemon)
    assert log.count("cannot store deliveries, will retry") == 1
    assert "Traceback" not in log
