"""Without an answer: exit code 0, in time, what stdin alone tells, and the event in the spool."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.hooks.client.exchange import MAX_EVENT_BYTES
from brimline.hooks.protocol import encode_reply

from .agent import TOO_LONG, Agent, Done
from .daemon import (
    GARBAGE,
    NOBODY,
    Behaviour,
    Daemon,
    answers,
    answers_late,
    dies,
    ran_as,
    sends,
    waits,
)

LINE = (
    b'{"session_id":"s","context_window":{"context_window_size":200000,"current_usage":'
    b'{"input_tokens":1,"output_tokens":5,"cache_read_input_tokens":90000,'
    b'"cache_creation_input_tokens":0}}}'
)
OFF, SILENT = b"daemon off", b"no answer from the daemon"
FIGURE = b"ctx 45% 90K/200K | "


def check(agent: Agent, done: Done, state: bytes = OFF) -> str:
    """That a status line was shown, in time, and its event spooled once; gives the event's id."""
    assert (done.code, done.out, done.told) == (0, FIGURE + state + b"\n", b"")
    assert done.seconds < TOO_LONG
    (kept,) = agent.spooled()
    assert (kept.kind, kept.agent, kept.body) == ("statusline", "claude", LINE)
    assert (kept.pid, ran_as(kept)) == (os.getpid(), done.pid)
    assert agent.dropped() == 0
    return kept.id


# No daemon, or none of ours.


def test_no_daemon(agent: Agent) -> None:
    """Where nothing is at the socket's place."""
    check(agent, agent.run(LINE, "statusline"))


def test_hook_says_nothing(agent: Agent) -> None:
    """A hook has nothing to say by itself."""
    done = agent.run(LINE)
    assert (done.code, done.out, done.told) == (0, b"", b"")
    assert [kept.kind for kept in agent.spooled()] == ["hook"]


def test_file(agent: Agent) -> None:
    """Where a file is at the socket's place."""
    agent.socket.write_text("no socket")
    check(agent, agent.run(LINE, "statusline"))


def test_folder(agent: Agent) -> None:
    """Where a folder is at the socket's place."""
    agent.socket.mkdir()
    check(agent, agent.run(LINE, "statusline"))


def test_stale_socket(agent: Agent) -> None:
    """Where a daemon died and left its socket."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(agent.socket))
    check(agent, agent.run(LINE, "statusline"))


def test_long_path(agent: Agent) -> None:
    """Where no system would take the socket's path."""
    astray = replace(agent, socket=agent.folder / ("x" * 120))
    check(agent, astray.run(LINE, "statusline"), SILENT)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_elses(agent: Agent) -> None:
    """Where another user listens, who is told nothing."""
    agent.folder.chmod(0o777)
    os.seteuid(NOBODY)
    theirs = Daemon(agent.socket, answers(b"trust me"))
    os.seteuid(0)
    with theirs:
        done = agent.run(LINE, "statusline")
        assert theirs.heard() is None
    check(agent, done, SILENT)


# A daemon that does not answer.


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_garbage(agent: Agent, raw: bytes) -> None:
    """A daemon that answers garbage has not answered."""
    with Daemon(agent.socket, sends(raw)) as daemon:
        done, heard = agent.unanswered(daemon, LINE, "statusline")
    assert not heard.acknowledged
    assert check(agent, done, SILENT) == heard.request.id


@pytest.mark.parametrize("behaviour", [waits, dies, answers_late])
def test_no_answer(agent: Agent, behaviour: Behaviour) -> None:
    """A daemon that says nothing, dies, or is late: what it heard is spooled under the same id."""
    with Daemon(agent.socket, behaviour) as daemon:
        done, heard = agent.unanswered(daemon, LINE, "statusline")
    assert not heard.acknowledged
    assert check(agent, done, SILENT) == heard.request.id


def test_deaf_daemon(agent: Agent) -> None:
    """A daemon that hangs up on everyone without listening."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(agent.socket))
        listener.listen()
        hanging_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hanging_up.start()
        done = agent.run(LINE, "statusline")
        hanging_up.join()
    check(agent, done, SILENT)


def test_stopped_daemon(agent: Agent, stopped: Path) -> None:
    """A daemon that was stopped takes connections in, and never answers."""
    check(agent, replace(agent, socket=stopped).run(LINE, "statusline"), SILENT)


def test_stopped_daemon_and_much_to_tell(agent: Agent, stopped: Path) -> None:
    """More than a stopped daemon's socket holds is spooled whole."""
    path = agent.folder / "stdin"
    path.write_bytes(os.urandom(MAX_EVENT_BYTES))
    done = replace(agent, socket=stopped).spools(path)
    assert (done.code, done.out, done.told) == (0, b"", b"")
    assert done.seconds < TOO_LONG


def test_crowded_daemon(agent: Agent) -> None:
    """A daemon that so many wait for that there is no room for one more."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(agent.socket))
        listener.listen(0)
        crowd(stack, agent.socket)
        check(agent, agent.run(LINE, "statusline"), SILENT)


def crowd(stack: ExitStack, path: Path) -> None:
    """Wait for a daemon until there is no room left."""
    for _ in range(100):
        waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
        waiting.setblocking(False)
        try:
            waiting.connect(str(path))
        except OSError:
            return
    pytest.fail("there was room for everyone")


# Whatever stdin is.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b"[" * 100_000,
        b'"\\ud800',
        b"9" * 5000,
        b'{"context_window":1}',
    ],
    ids=["empty", "cut", "no text", "null", "deep", "half a letter", "long number", "other shape"],
)
def test_stdin_that_tells_nothing(agent: Agent, body: bytes) -> None:
    """A status line of something else is nothing; it is spooled without what it holds."""
    done = agent.spools(body, "statusline")
    assert (done.code, done.out, done.told) == (0, b"", b"")


def test_huge_stdin(agent: Agent) -> None:
    """Of a stdin that is too much the beginning is spooled."""
    huge = LINE + b" " * MAX_EVENT_BYTES
    done = agent.run(huge, "statusline")
    assert (done.code, done.out, done.told) == (0, FIGURE + OFF + b"\n", b"")
    (kept,) = agent.spooled()
    assert kept.body == LINE


def test_open_stdin(agent: Agent, stopped: Path) -> None:
    """An agent that does not close stdin, and no daemon either: neither is waited for."""
    reader, writer = os.pipe()
    os.write(writer, LINE)
    for place, state in ((agent.socket, OFF), (stopped, SILENT)):
        check(agent, replace(agent, socket=place).run(reader, "statusline"), state)
        os.write(writer, LINE)
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("place", ["nobody", "stopped"])
def test_suspended_client(agent: Agent, stopped: Path, place: str) -> None:
    """A client that was not run until its time was over spools its event all the same."""
    socket = stopped if place == "stopped" else agent.socket
    with suspended(replace(agent, socket=socket), LINE) as process:
        time.sleep(0.03)
        suspend(process)
    assert process.returncode == 0
    assert [kept.body for kept in agent.spooled()] == [LINE]


def test_closed_streams(agent: Agent) -> None:
    """Where stdin, stdout and stderr are closed, nothing is lost but what was never there."""

    def close() -> None:
        os.closerange(0, 3)

    done = replace(agent, before=close).run(LINE, "statusline")
    assert (done.code, done.out) == (0, b"")
    assert [kept.body for kept in agent.spooled()] == [b""]


def test_answered_after_all(agent: Agent) -> None:
    """The longest answer that is announced is taken; one more byte behind it is not shown."""
    with Daemon(agent.socket, sends(encode_reply(b"{}") + b"more")) as daemon:
        done, heard = agent.answered(daemon, LINE)
    assert (done.out, heard.acknowledged) == (b"{}", True)


@pytest.mark.parametrize("arguments", [[], ["hook"], ["a"] * 9], ids=["none", "few", "many"])
def test_wrong_arguments(agent: Agent, arguments: list[str]) -> None:
    """A command that was not set up by us harms nobody."""
    command = [*agent.command, *arguments]
    done = replace(agent, command=[sys.executable, "-c", RUN, *command]).run(LINE)
    assert (done.code, done.out) == (0, b"")


@contextmanager
def suspended(agent: Agent, stdin: bytes) -> Generator["subprocess.Popen[bytes]", None, None]:
    """A client that runs, with a stdin that is not closed; it is waited for."""
    words = [*agent.command, "hook", "claude", str(agent.socket), str(agent.folder / "spool")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env={}) as process:
        assert process.stdin
        process.stdin.write(stdin)
        process.stdin.flush()
        yield process
        process.wait(TOO_LONG)


def suspend(process: "subprocess.Popen[bytes]") -> None:
    """Let a process not run until its time is over."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    process.send_signal(signal.SIGCONT)


RUN = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:-4], stderr=-3))"
"""Runs a command without the four arguments that an agent adds."""
