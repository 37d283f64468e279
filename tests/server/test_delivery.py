"""A message reaches its agent once, even if the daemon is killed before it stores the delivery."""

import json
import os
import select
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
from brimline.context.inbox import DELIVERY_LEASE_S
from brimline.daemon.hook_requests.hook_socket import ACK
from brimline.monitor.hook_reply import SENT_AGAIN
from brimline.testing.hook_frames import encode_request, parse_reply_parts
from hooks.agent import TRIES, Agent, ClientResult, compile_client, compiled_client, python_client
from hooks.daemon import Behaviour, client_pid
from hooks.daemon import Daemon as Interposed

from .running import MAX_WAIT_S, Running
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
    """Forward a request to the daemon; return the connection and the raw reply."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(MAX_WAIT_S)
    connection.connect(str(daemon.socket))
    connection.sendall(encode_request(request))
    data = b""
    while parse_reply_parts(data) is None:
        data += connection.recv(65_536)
    return connection, data


def killed_after_the_print(daemon: Running) -> Behaviour:
    """The client prints and acknowledges the reply; the daemon is killed before it gets that."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        to_daemon, reply = reply_of(daemon, request)
        with closing(to_daemon):
            connection.sendall(reply)
            acknowledged = connection.recv(1) == ACK
            if acknowledged:
                daemon.kill()
        return acknowledged

    return behave


def killed_before_the_print(
    daemon: Running, is_daemon_killed: bool, is_client_killed: bool
) -> Behaviour:
    """The daemon or the client is killed after the messages were handed out; nothing is printed.

    The client is stopped meanwhile: else it might give up first. One that did has disconnected.
    """

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        os.kill(client_pid(request), signal.SIGSTOP)
        if not select.select([connection], [], [], 0)[0]:
            to_daemon, _ = reply_of(daemon, request)
            if is_client_killed:
                os.kill(client_pid(request), signal.SIGKILL)
            if is_daemon_killed:
                daemon.kill()
            to_daemon.close()
        os.kill(client_pid(request), signal.SIGCONT)
        return False

    return behave


def run_until_killed(agent: Agent, daemon: Running, stdin: bytes) -> ClientResult:
    """Run a hook until it prints its reply in time; the daemon is killed after that."""
    with Interposed(agent.socket, killed_after_the_print(daemon)):
        for _ in range(TRIES):
            result = agent.run(stdin)
            if daemon.process is None:
                return result
            try:
                daemon.until(
                    MESSAGES, lambda messages: {one["state"] for one in messages} <= {"queued"}
                )
            except OSError:  # it was killed only now
                return result
    raise AssertionError("the answer was passed over each time")


def queue_messages(daemon: Running) -> None:
    """Queue the messages for a known session."""
    daemon.hook(hook_input("SessionStart", source="startup"))
    for text in TEXTS:
        daemon.post(MESSAGES, {"text": text})


def message_states(daemon: Running) -> set[str]:
    return {message["state"] for message in daemon.get(MESSAGES)}


def test_printed_message_is_not_repeated_after_a_kill(daemon: Running, agent: Agent) -> None:
    queue_messages(daemon)
    result = run_until_killed(agent, daemon, PROMPT)
    assert all(text in result.stdout.decode() for text in TEXTS)
    daemon.start()
    assert message_states(daemon) == {"delivered"}
    assert daemon.ask(PROMPT) == ""
    assert daemon.get("/v1/daemon")["malformed"] == 0


def test_unprinted_message_is_sent_at_once_and_not_marked_as_repeated(
    daemon: Running, agent: Agent
) -> None:
    """The client got no reply, and so has spooled its hook."""
    queue_messages(daemon)
    with Interposed(agent.socket, killed_before_the_print(daemon, True, False)):
        for _ in range(TRIES):
            result = agent.run(PROMPT)
            assert (result.code, result.stdout) == (0, b"")
            if daemon.process is None:
                break
    daemon.start()
    assert message_states(daemon) == {"queued"}
    text = context_of(daemon.ask(PROMPT))
    assert SENT_AGAIN not in text
    assert all(text.count(each) == 1 for each in TEXTS)
    assert daemon.ask(PROMPT) == ""


@pytest.mark.parametrize("is_daemon_killed", [True, False])
def test_message_of_a_killed_client_is_repeated_once_and_marked_so(
    daemon: Running, agent: Agent, is_daemon_killed: bool
) -> None:
    """It may have printed it: it has left neither an acknowledgement nor anything in the spool."""
    queue_messages(daemon)
    with Interposed(agent.socket, killed_before_the_print(daemon, is_daemon_killed, True)):
        assert any(agent.run(PROMPT).code == -signal.SIGKILL for _ in range(TRIES))
    if is_daemon_killed:
        with closing(sqlite3.connect(daemon.state / "brimline.db")) as database:
            database.execute("UPDATE messages SET handed_at = handed_at - 60")  # the lease is over
            database.commit()
        daemon.start()
    lease_over = time.time() - DELIVERY_LEASE_S
    daemon.until(MESSAGES, lambda messages: all(m["handed_at"] <= lease_over for m in messages))
    assert message_states(daemon) == {"handed"}
    again = context_of(daemon.ask(PROMPT))
    assert again.count(SENT_AGAIN) == len(TEXTS)
    assert all(again.count(text) == 1 for text in TEXTS)
    assert daemon.ask(PROMPT) == ""


def test_suspended_daemon_does_not_repeat_a_printed_message(daemon: Running, agent: Agent) -> None:
    queue_messages(daemon)
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
            result = agent.run(PROMPT)
            exchange = interposed.last_exchange(result.pid)
            stopped.send_signal(signal.SIGCONT)
            if exchange is not None and exchange.acknowledged:
                break
            daemon.until(
                MESSAGES, lambda messages: {one["state"] for one in messages} == {"queued"}
            )
    daemon.until(MESSAGES, lambda messages: {one["state"] for one in messages} == {"delivered"})
    assert daemon.ask(PROMPT) == ""


def test_client_without_receipts_gets_a_reply_without_one(daemon: Running) -> None:
    queue_messages(daemon)
    request = HookRequest("hook", "claude", f"{time.time_ns()}-{os.getpid()}", 1, {}, PROMPT)
    connection, reply = reply_of(daemon, request)
    with closing(connection):
        assert len(reply.partition(b"\n")[0].split(b" ")) == 3
        connection.sendall(ACK)
        assert connection.recv(1) == b""
    daemon.until(MESSAGES, lambda messages: {one["state"] for one in messages} == {"delivered"})


def test_printed_handoff_is_not_repeated_after_a_kill(
    daemon: Running, agent: Agent, tmp_path: Path
) -> None:
    path = tmp_path / "handoff.md"
    path.write_text("The parser is half done.")
    daemon.hook(hook_input("SessionStart", source="startup"))
    daemon.hand_over(SESSION, path)
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    compacted = json.dumps(hook_input("SessionStart", source="compact")).encode()
    result = run_until_killed(agent, daemon, compacted)
    assert "The parser is half done." in result.stdout.decode()
    daemon.start()
    (document,) = daemon.get(f"/v1/sessions/{SESSION}/handoff")["handoffs"]
    assert document["used_at"] is not None
    assert daemon.ask(PROMPT) == ""


def test_reply_to_a_posted_hook_is_delivered_when_sent(daemon: Running) -> None:
    queue_messages(daemon)
    answer = json.dumps(daemon.post("/hooks/claude", hook_input("UserPromptSubmit")))
    assert all(text in answer for text in TEXTS)
    daemon.until(MESSAGES, lambda messages: {one["state"] for one in messages} == {"delivered"})
    assert daemon.post("/hooks/claude", hook_input("UserPromptSubmit")) == {}


def test_invalid_receipt_is_counted_as_malformed(daemon: Running) -> None:
    assert daemon.ask(b"{", kind="delivered") == ""
    assert daemon.get("/v1/daemon")["malformed"] == 1


def context_of(answer: str) -> str:
    """Return the context that a reply adds."""
    decoded: Any = json.loads(answer)
    return str(decoded["hookSpecificOutput"]["additionalContext"])
