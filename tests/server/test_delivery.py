"""A message reaches its agent once, also if the daemon is killed before it stored the delivery."""

import json
import os
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.hook_adapter import HookRequest
from brimline.monitor.hook_reply import SENT_AGAIN
from brimline.server.hooks.hook_socket import ACK
from brimline.testing.hook_frames import encode_request, parse_reply_parts
from hooks.agent import TRIES, Agent, ClientResult, compile_client, compiled_client, python_client
from hooks.daemon import Behaviour
from hooks.daemon import Daemon as Interposed

from .running import PATIENCE, Running
from .test_daemon import SESSION, hook_input

pytestmark = pytest.mark.slow

PROMPT = json.dumps(hook_input("UserPromptSubmit")).encode()
MESSAGES = f"/v1/sessions/{SESSION}/messages"
TEXTS = [f"message number {number}" for number in range(7)]


@pytest.fixture(params=["python", "compiled"])
def agent(request: pytest.FixtureRequest, daemon: Running, tmp_path: Path) -> Iterator[Agent]:
    """An agent whose hooks reach the daemon through a socket of the test."""
    command = python_client()
    if request.param == "compiled":
        compile_client(tmp_path / "brimline-hook")
        command = compiled_client(tmp_path / "brimline-hook")
    with tempfile.TemporaryDirectory(prefix="brimline-") as folder:  # a short path for a socket
        yield Agent(command, daemon.state, Path(folder) / "hook.sock")


def reply_of(daemon: Running, request: HookRequest) -> tuple[socket.socket, bytes]:
    """Pass a request on to the daemon; returns the connection, and the reply as it came."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    connection.connect(str(daemon.socket))
    connection.sendall(encode_request(request))
    data = b""
    while parse_reply_parts(data) is None:
        data += connection.recv(65_536)
    return connection, data


def killed_after_the_print(daemon: Running) -> Behaviour:
    """The client prints the answer and acknowledges it; the daemon is killed before it hears."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        to_daemon, reply = reply_of(daemon, request)
        with closing(to_daemon):
            connection.sendall(reply)
            acknowledged = connection.recv(1) == ACK
            if acknowledged:
                daemon.kill()
        return acknowledged

    return behave


def killed_before_the_print(daemon: Running) -> Behaviour:
    """The daemon is killed when it has handed the messages out, and the client gets no answer."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        to_daemon, _ = reply_of(daemon, request)
        daemon.kill()
        to_daemon.close()
        return False

    return behave


def run_until_killed(agent: Agent, daemon: Running, stdin: bytes) -> ClientResult:
    """Run a hook until it is in time to print its answer; the daemon is killed behind that."""
    with Interposed(agent.socket, killed_after_the_print(daemon)):
        for _ in range(TRIES):
            done = agent.run(stdin)
            if daemon.process is None:
                return done
            daemon.until(MESSAGES, lambda told: {one["state"] for one in told} <= {"queued"})
    raise AssertionError("the answer was passed over each time")


def send(daemon: Running) -> None:
    """Queue the messages, for a session that is known."""
    daemon.hook(hook_input("SessionStart", source="startup"))
    for text in TEXTS:
        daemon.post(MESSAGES, {"text": text})


def states(daemon: Running) -> set[str]:
    """The states of all messages."""
    return {message["state"] for message in daemon.get(MESSAGES)}


def test_killed_between_the_print_and_the_store(daemon: Running, agent: Agent) -> None:
    """What the agent got is not handed out again by the next daemon."""
    send(daemon)
    done = run_until_killed(agent, daemon, PROMPT)
    assert all(text in done.stdout.decode() for text in TEXTS)
    daemon.start()
    assert states(daemon) == {"delivered"}
    assert daemon.ask(PROMPT) == ""
    assert daemon.get("/v1/daemon")["malformed"] == 0


def test_killed_before_the_print(daemon: Running, agent: Agent) -> None:
    """What the agent did not get is handed out again, once, and says that it is a repetition."""
    send(daemon)
    with Interposed(agent.socket, killed_before_the_print(daemon)):
        done = agent.run(PROMPT)
    assert (done.code, done.stdout) == (0, b"")
    with closing(sqlite3.connect(daemon.state / "brimline.db")) as database:
        database.execute("UPDATE messages SET handed_at = handed_at - 60")  # the lease is over
        database.commit()
    daemon.start()
    assert states(daemon) == {"handed"}
    again = context_of(daemon.ask(PROMPT))
    assert again.count(SENT_AGAIN) == len(TEXTS)
    assert all(again.count(text) == 1 for text in TEXTS)
    assert daemon.ask(PROMPT) == ""


def test_stopped_while_the_client_waits(daemon: Running, agent: Agent) -> None:
    """A daemon that goes on after the client gave up hands nothing out again either."""
    send(daemon)
    assert daemon.process is not None
    stopped = daemon.process

    def stops(connection: socket.socket, request: HookRequest) -> bool:
        to_daemon, reply = reply_of(daemon, request)
        with closing(to_daemon):
            stopped.send_signal(signal.SIGSTOP)
            connection.sendall(reply)
            acknowledged = connection.recv(1) == ACK
            connection.recv(1)
        return acknowledged

    with Interposed(agent.socket, stops) as interposed:
        for _ in range(TRIES):
            done = agent.run(PROMPT)
            heard = interposed.last_exchange(done.pid)
            stopped.send_signal(signal.SIGCONT)
            if heard is not None and heard.acknowledged:
                break
            daemon.until(MESSAGES, lambda told: {one["state"] for one in told} == {"queued"})
    daemon.until(MESSAGES, lambda told: {one["state"] for one in told} == {"delivered"})
    assert daemon.ask(PROMPT) == ""


def test_client_of_an_earlier_version(daemon: Running) -> None:
    """A client that knows no receipt gets the reply that it knows."""
    send(daemon)
    request = HookRequest("hook", "claude", f"{time.time_ns()}-{os.getpid()}", 1, {}, PROMPT)
    connection, reply = reply_of(daemon, request)
    with closing(connection):
        assert len(reply.partition(b"\n")[0].split(b" ")) == 3
        connection.sendall(ACK)
        assert connection.recv(1) == b""
    daemon.until(MESSAGES, lambda told: {one["state"] for one in told} == {"delivered"})


def test_handoff_document_is_brought_back_once(
    daemon: Running, agent: Agent, tmp_path: Path
) -> None:
    """A document that the agent got is not brought back again by the next daemon."""
    path = tmp_path / "handoff.md"
    path.write_text("The parser is half done.")
    daemon.hook(hook_input("SessionStart", source="startup"))
    daemon.hand_over(SESSION, path)
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    compacted = json.dumps(hook_input("SessionStart", source="compact")).encode()
    done = run_until_killed(agent, daemon, compacted)
    assert "The parser is half done." in done.stdout.decode()
    daemon.start()
    (document,) = daemon.get(f"/v1/sessions/{SESSION}/handoff")["handoffs"]
    assert document["used_at"] is not None
    assert daemon.ask(PROMPT) == ""


def test_posted_hook_is_delivered_when_it_was_sent(daemon: Running) -> None:
    """A client that posts its hooks acknowledges nothing: what was sent to it is delivered."""
    send(daemon)
    answer = json.dumps(daemon.post("/hooks/claude", hook_input("UserPromptSubmit")))
    assert all(text in answer for text in TEXTS)
    daemon.until(MESSAGES, lambda told: {one["state"] for one in told} == {"delivered"})
    assert daemon.post("/hooks/claude", hook_input("UserPromptSubmit")) == {}


def test_receipt_that_cannot_be_read(daemon: Running) -> None:
    """It is counted as malformed, and breaks nothing."""
    assert daemon.ask(b"{", kind="delivered") == ""
    assert daemon.get("/v1/daemon")["malformed"] == 1


def context_of(answer: str) -> str:
    """What an answer adds to the agent's context."""
    decoded: Any = json.loads(answer)
    return str(decoded["hookSpecificOutput"]["additionalContext"])
