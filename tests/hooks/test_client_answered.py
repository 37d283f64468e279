"""With a daemon that answers: what it is told, what the agent gets, and when it is delivered."""

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

from .agent import TOO_LONG, Agent, compiled_client, python_client
from .daemon import Daemon, answers, answers_and_dies

HOOK = b'{"session_id":"s","hook_event_name":"Stop"}\n'
ENV = {name.decode(): f"value of {name.decode()} = \u00e9" for name in PASSED_VARIABLES}


@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_request(agent: Agent, kind: RequestKind) -> None:
    """The daemon is told stdin as it came, whose it is, what ran it, and variables that matter."""
    told = replace(agent, env={**ENV, "HOME": "/home/someone", "SECRET": "1"})
    with Daemon(agent.socket, answers(b"")) as daemon:
        done, heard = told.answered(daemon, HOOK, kind)
    assert (done.code, done.told) == (0, b"")
    assert heard.request == HookRequest(
        kind, "claude", heard.request.id, os.getpid(), ENV, HOOK, True
    )
    assert re.fullmatch(rf"[0-9]{{19}}-{done.pid}", heard.request.id)


def test_both_clients_say_the_same(folder: Path, compiled: Path) -> None:
    """What one client sends, the other does, but for the process and the time."""
    sent: list[HookRequest] = []
    with Daemon(folder / "hook.sock", answers(b"")) as daemon:
        for command in (python_client(), compiled_client(compiled)):
            agent = Agent(command, folder, folder / "hook.sock", ENV)
            sent.append(agent.answered(daemon, HOOK)[1].request)
    python, other = sent
    assert python.id < other.id
    assert (python.kind, python.agent, python.body) == (other.kind, other.agent, other.body)
    assert list(python.env.items()) == list(other.env.items())


def test_long_variable(agent: Agent) -> None:
    """A variable that is too long is left out, an empty one is not."""
    env = {"TERM": "", "TMUX": "x" * MAX_VALUE_BYTES, "TMUX_PANE": "x" * (MAX_VALUE_BYTES + 1)}
    with Daemon(agent.socket, answers(b"")) as daemon:
        _, heard = replace(agent, env=env).answered(daemon, HOOK)
    del env["TMUX_PANE"]
    assert heard.request.env == env


@pytest.mark.parametrize(
    "answer",
    [b"", b"{}", b"ctx \xff\x00 45%\n", b"BRIMLINE 1 3\n", os.urandom(MAX_REPLY_BYTES)],
    ids=["empty", "short", "no text", "like a frame", "longest"],
)
def test_answer(agent: Agent, answer: bytes) -> None:
    """The agent gets the answer as it is; then it is acknowledged, and not spooled."""
    with Daemon(agent.socket, answers(answer)) as daemon:
        done, heard = agent.answered(daemon, HOOK)
        assert heard.acknowledged
    assert (done.code, done.out, done.told) == (0, answer, b"")


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00\xff no JSON", os.urandom(MAX_EVENT_BYTES)],
    ids=["empty", "no JSON", "longest"],
)
def test_any_stdin(agent: Agent, body: bytes) -> None:
    """Stdin is passed on whatever it is."""
    path = agent.folder / "stdin"
    path.write_bytes(body)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done, heard = agent.answered(daemon, path)
    assert (done.code, done.out, heard.request.body) == (0, b"{}", body)


def test_huge_stdin(agent: Agent) -> None:
    """Of a stdin that is too much the beginning is passed on, and the agent can write it all."""
    huge = b"x" * (3 * MAX_EVENT_BYTES)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done, heard = agent.answered(daemon, huge)
    assert (done.code, done.out) == (0, b"{}")
    assert heard.request.body
    assert huge.startswith(heard.request.body)
    assert len(heard.request.body) <= MAX_EVENT_BYTES


def test_open_stdin(agent: Agent) -> None:
    """An agent that does not close stdin is not waited for: what came by then is passed on."""
    reader, writer = os.pipe()
    os.write(writer, HOOK)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done = agent.run(reader)
        heard = daemon.heard(done.pid)
    os.close(reader)
    os.close(writer)
    # On a busy machine the answer may be late: then the event is spooled, without white space.
    requests, body = ([heard.request], HOOK) if heard else (agent.spooled(), HOOK.strip())
    assert (done.code, [request.body for request in requests]) == (0, [body])
    assert done.seconds < TOO_LONG


def test_endless_stdin(agent: Agent) -> None:
    """An agent that never stops writing is not waited for either."""
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done, heard = agent.answered(daemon, Path("/dev/zero"))
    assert (done.code, done.out, len(heard.request.body)) == (0, b"{}", MAX_EVENT_BYTES)
    assert done.seconds < TOO_LONG


# What does not reach the agent is not acknowledged.


def closed() -> None:
    """Close stdout, as a few agents do."""
    os.close(1)


def test_no_stdout(agent: Agent) -> None:
    """Where there is no stdout, nothing is acknowledged, and no other file is taken for it."""
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done, heard = replace(agent, before=closed).answered(daemon, HOOK)
    assert (done.code, done.out, done.told) == (0, b"", b"")
    assert (heard.request.body, heard.acknowledged) == (HOOK, False)


def test_closed_stdout(agent: Agent) -> None:
    """Where nobody reads stdout any more, nothing is acknowledged."""
    reader, writer = os.pipe()
    os.close(reader)
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done, heard = agent.answered(daemon, HOOK, stdout=writer)
        assert not heard.acknowledged
    os.close(writer)
    assert (done.code, done.told) == (0, b"")


def test_full_stdout(agent: Agent) -> None:
    """Where stdout takes no more, the agent is not held up, and nothing is acknowledged."""
    reader, writer = os.pipe()
    with Daemon(agent.socket, answers(b"x" * MAX_REPLY_BYTES)) as daemon:
        done, heard = agent.answered(daemon, HOOK, stdout=writer)
        assert not heard.acknowledged
    os.close(reader)
    os.close(writer)
    assert (done.code, done.told) == (0, b"")
    assert done.seconds < TOO_LONG


def test_no_stdin(agent: Agent) -> None:
    """Where there is no stdin, the daemon is told so, and no other file is taken for it."""
    with Daemon(agent.socket, answers(b"{}")) as daemon:
        done, heard = replace(agent, before=lambda: os.close(0)).answered(
            daemon, subprocess.DEVNULL
        )
    assert (done.code, done.out) == (0, b"{}")
    assert (heard.request.body, heard.acknowledged) == (b"", True)


def test_daemon_dies_before_it_hears(agent: Agent) -> None:
    """An answer that came is printed, though nobody is there to be told; it is not spooled."""
    with Daemon(agent.socket, answers_and_dies(b"{}")) as daemon:
        done, heard = agent.answered(daemon, HOOK)
        assert not heard.acknowledged
    assert (done.code, done.out, done.told) == (0, b"{}", b"")


def test_stdout_that_does_not_wait(agent: Agent) -> None:
    """A stdout that takes an answer in parts, and refuses meanwhile, gets all of it."""
    answer = os.urandom(MAX_REPLY_BYTES)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    got = agent.folder / "got"
    with got.open("wb") as file, Daemon(agent.socket, answers(answer)) as daemon:
        reading = subprocess.Popen(["head", "-c", str(len(answer))], stdin=reader, stdout=file)
        done, heard = agent.answered(daemon, HOOK, stdout=writer)
        assert heard.acknowledged
    os.close(writer)
    reading.wait()
    os.close(reader)
    assert (done.code, got.read_bytes() == answer) == (0, True)
