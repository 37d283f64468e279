"""Hook clients with a daemon that answers: the request, the output, the acknowledgement."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.hooks.client.exchange import (
    MAX_EVENT_BYTES,
    MAX_REPLY_BYTES,
    MAX_VALUE_BYTES,
    PASSED_VARIABLES,
)

from .agent import MAX_RUN_S, Agent, compiled_client, python_client
from .daemon import Daemon, answers, answers_and_dies

HOOK = b'{"session_id":"s","hook_event_name":"Stop"}\n'
ENV = {name.decode(): f"value of {name.decode()} = \u00e9" for name in PASSED_VARIABLES}


@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_request_has_stdin_parent_process_and_listed_variables(
    agent: Agent, kind: RequestKind
) -> None:
    agent_with_env = replace(agent, env={**ENV, "HOME": "/home/someone", "SECRET": "1"})
    with Daemon(agent.socket, answers(b"")) as daemon:
        result, exchange = agent_with_env.answered(daemon, HOOK, kind)
    assert (result.code, result.stderr) == (0, b"")
    assert exchange.request == HookRequest(
        kind, "claude", exchange.request.id, os.getpid(), ENV, HOOK, True
    )
    assert re.fullmatch(rf"[0-9]{{19}}-{result.pid}", exchange.request.id)


def test_both_clients_send_the_same_request(folder: Path, compiled: Path) -> None:
    sent: list[HookRequest] = []
    with Daemon(folder / "hook.sock", answers(b"")) as daemon:
        for command in (python_client(), compiled_client(compiled)):
            agent = Agent(command, folder, folder / "hook.sock", ENV)
            sent.append(agent.answered(daemon, HOOK)[1].request)
    python, other = sent
    assert python.id < other.id
    assert (python.kind, python.agent, python.body) == (other.kind, other.agent, other.body)
    assert list(python.env.items()) == list(other.env.items())


def test_question_does_not_wait_for_stdin_and_is_not_spooled(agent: Agent) -> None:
    """Its stdin is a terminal or a pipe that stays open; without an answer nothing is printed."""
    reader, writer = os.pipe()
    with Daemon(agent.socket, answers(b"45.0%\n")) as daemon:
        result, exchange = agent.answered(daemon, reader, "here")
    assert (result.code, result.stdout, result.stderr) == (0, b"45.0%\n", b"")
    assert (exchange.request.kind, exchange.request.body) == ("here", b"")
    alone = agent.run(reader, "here")
    assert (alone.code, alone.stdout, alone.stderr) == (0, b"", b"")
    assert agent.take_spooled() == []
    os.close(reader)
    os.close(writer)


def test_too_long_variable_is_left_out(agent: Agent) -> None:
    env = {"TERM": "", "TMUX": "x" * MAX_VALUE_BYTES, "TMUX_PANE": "x" * (MAX_VALUE_BYTES + 1)}
    with Daemon(agent.socket, answers(b"")) as daemon:
        _, exchange = replace(agent, env=env).answered(daemon, HOOK)
    del env["TMUX_PANE"]
    assert exchange.request.env == env


@pytest.mark.parametrize(
    "answer",
    [b"", b"{}", b"ctx \xff\x00 45%\n", b"BRIMLINE 1 3\n", os.urandom(MAX_REPLY_BYTES)],
    ids=["empty", "short", "no text", "like a frame", "longest"],
)
def test_reply_is_printed_unchanged_and_acknowledged(agent: Agent, answer: bytes) -> None:
    with Daemon(agent.socket, answers(answer)) as daemon:
        result, exchange = agent.answered(daemon, HOOK)
        assert exchange.acknowledged
    assert (result.code, result.stdout, result.stderr) == (0, answer, b"")


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00\xff no JSON", os.urandom(MAX_EVENT_BYTES)],
    ids=["empty", "no JSON", "longest"],
)
def test_any_stdin_is_sent_unchanged(agent: Agent, body: bytes) -> None:
    path = agent.folder / "stdin"
    path.write_bytes(body)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result, exchange = agent.answered(daemon, path)
    assert (result.code, result.stdout, exchange.request.body) == (0, b"{}", body)


def test_oversized_stdin_is_truncated(agent: Agent) -> None:
    huge = b"x" * (3 * MAX_EVENT_BYTES)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result, exchange = agent.answered(daemon, huge)
    assert (result.code, result.stdout) == (0, b"{}")
    assert exchange.request.body
    assert huge.startswith(exchange.request.body)
    assert len(exchange.request.body) <= MAX_EVENT_BYTES


def test_open_stdin_is_not_waited_for(agent: Agent) -> None:
    reader, writer = os.pipe()
    os.write(writer, HOOK)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result = agent.run(reader)
        exchange = daemon.last_exchange(result.pid)
    os.close(reader)
    os.close(writer)
    # On a busy machine the answer may be late: then the event is spooled, without white space.
    requests = [exchange.request] if exchange else agent.take_spooled()
    body = HOOK if exchange else HOOK.strip()
    assert (result.code, [request.body for request in requests]) == (0, [body])
    assert result.seconds < MAX_RUN_S


def test_endless_stdin_is_truncated_in_time(agent: Agent) -> None:
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result, exchange = agent.answered(daemon, Path("/dev/zero"))
    assert (result.code, result.stdout, len(exchange.request.body)) == (0, b"{}", MAX_EVENT_BYTES)
    assert result.seconds < MAX_RUN_S


# What does not reach the agent is not acknowledged.


def close_stdout() -> None:
    os.close(1)


def test_reply_without_a_stdout_is_not_acknowledged(agent: Agent) -> None:
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result, exchange = replace(agent, before=close_stdout).answered(daemon, HOOK)
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    assert (exchange.request.body, exchange.acknowledged) == (HOOK, False)


def test_reply_to_a_closed_pipe_is_not_acknowledged(agent: Agent) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result, exchange = agent.answered(daemon, HOOK, stdout=writer)
        assert not exchange.acknowledged
    os.close(writer)
    assert (result.code, result.stderr) == (0, b"")


def test_reply_to_a_full_pipe_is_not_acknowledged_and_does_not_block(agent: Agent) -> None:
    reader, writer = os.pipe()
    with Daemon(agent.socket, answers(b"x" * MAX_REPLY_BYTES)) as daemon:
        result, exchange = agent.answered(daemon, HOOK, stdout=writer)
        assert not exchange.acknowledged
    os.close(reader)
    os.close(writer)
    assert (result.code, result.stderr) == (0, b"")
    assert result.seconds < MAX_RUN_S


def test_missing_stdin_is_sent_as_empty(agent: Agent) -> None:
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        result, exchange = replace(agent, before=lambda: os.close(0)).answered(
            daemon, subprocess.DEVNULL
        )
    assert (result.code, result.stdout) == (0, b"{}")
    assert (exchange.request.body, exchange.acknowledged) == (b"", True)


def test_reply_is_printed_when_the_daemon_dies_before_the_acknowledgement(agent: Agent) -> None:
    with Daemon(agent.socket, answers_and_dies(b"{}")) as daemon:
        result, exchange = agent.answered(daemon, HOOK)
        assert not exchange.acknowledged
    assert (result.code, result.stdout, result.stderr) == (0, b"{}", b"")


def test_reply_is_complete_on_a_non_blocking_stdout(agent: Agent) -> None:
    answer = os.urandom(MAX_REPLY_BYTES)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    got = agent.folder / "got"
    with got.open("wb") as file, Daemon(agent.socket, answers(answer)) as daemon:
        reading = subprocess.Popen(["head", "-c", str(len(answer))], stdin=reader, stdout=file)
        result, exchange = agent.answered(daemon, HOOK, stdout=writer)
        assert exchange.acknowledged
    os.close(writer)
    reading.wait()
    os.close(reader)
    assert (result.code, got.read_bytes() == answer) == (0, True)
