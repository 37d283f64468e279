"""Hook clients without a reply: exit code 0 in time, a short line, the event spooled."""

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

from .agent import MAX_RUN_S, MAX_WAIT_S, Agent, ClientResult
from .daemon import (
    GARBAGE,
    NOBODY,
    Behaviour,
    Daemon,
    answers,
    answers_late,
    client_pid,
    dies,
    sends,
    waits,
)

LINE = (
    b'{"session_id":"s","context_window":{"context_window_size":200000,"current_usage":'
    b'{"input_tokens":1,"output_tokens":5,"cache_read_input_tokens":90000,'
    b'"cache_creation_input_tokens":0}}}'
)
OFF, SILENT = b"daemon off", b"no answer from the daemon"


def offline_line(agent: Agent, state: bytes) -> bytes:
    """The status line of LINE; only the compiled client shows its figures."""
    return (b"ctx 45.0% 90K/200K | " if agent.is_compiled else b"ctx unknown | ") + state + b"\n"


def check_offline_line(agent: Agent, result: ClientResult, state: bytes = OFF) -> str:
    """The line was shown in time and its event spooled once; return the event's id."""
    assert (result.code, result.stdout, result.stderr) == (0, offline_line(agent, state), b"")
    assert result.seconds < MAX_RUN_S
    (event,) = agent.take_spooled()
    assert (event.kind, event.agent, event.body) == ("statusline", "claude", LINE)
    assert (event.pid, client_pid(event)) == (os.getpid(), result.pid)
    assert agent.take_dropped() == 0
    return event.id


# No daemon, or none of ours.


def test_missing_socket(agent: Agent) -> None:
    check_offline_line(agent, agent.run(LINE, "statusline"))


def test_hook_prints_nothing(agent: Agent) -> None:
    result = agent.run(LINE)
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    assert [event.kind for event in agent.take_spooled()] == ["hook"]


def test_file_in_place_of_the_socket(agent: Agent) -> None:
    agent.socket.write_text("no socket")
    check_offline_line(agent, agent.run(LINE, "statusline"))


def test_folder_in_place_of_the_socket(agent: Agent) -> None:
    agent.socket.mkdir()
    check_offline_line(agent, agent.run(LINE, "statusline"))


def test_stale_socket(agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(agent.socket))
    check_offline_line(agent, agent.run(LINE, "statusline"))


def test_too_long_socket_path(agent: Agent) -> None:
    astray = replace(agent, socket=agent.folder / ("x" * 120))
    check_offline_line(agent, astray.run(LINE, "statusline"), SILENT)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_socket_of_another_user_gets_no_request(agent: Agent) -> None:
    agent.folder.chmod(0o777)
    os.seteuid(NOBODY)
    theirs = Daemon(agent.socket, answers(b"trust me"))
    os.seteuid(0)
    with theirs:
        result = agent.run(LINE, "statusline")
        assert theirs.last_exchange() is None
    check_offline_line(agent, result, SILENT)


# A daemon that does not answer.


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_no_reply(agent: Agent, raw: bytes) -> None:
    with Daemon(agent.socket, sends(raw)) as daemon:
        result, exchange = agent.unanswered(daemon, LINE, "statusline")
    assert not exchange.acknowledged
    assert check_offline_line(agent, result, SILENT) == exchange.request.id


@pytest.mark.parametrize("behaviour", [waits, dies, answers_late])
def test_event_without_a_reply_is_spooled_under_the_same_id(
    agent: Agent, behaviour: Behaviour
) -> None:
    with Daemon(agent.socket, behaviour) as daemon:
        result, exchange = agent.unanswered(daemon, LINE, "statusline")
    assert not exchange.acknowledged
    assert check_offline_line(agent, result, SILENT) == exchange.request.id


def test_daemon_that_disconnects_at_once(agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(agent.socket))
        listener.listen()
        hanging_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hanging_up.start()
        result = agent.run(LINE, "statusline")
        hanging_up.join()
    check_offline_line(agent, result, SILENT)


def test_suspended_daemon(agent: Agent, stopped: Path) -> None:
    check_offline_line(agent, replace(agent, socket=stopped).run(LINE, "statusline"), SILENT)


def test_largest_event_for_a_suspended_daemon_is_spooled_whole(agent: Agent, stopped: Path) -> None:
    path = agent.folder / "stdin"
    path.write_bytes(os.urandom(MAX_EVENT_BYTES))
    result = replace(agent, socket=stopped).spools(path)
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    assert result.seconds < MAX_RUN_S


def test_daemon_with_a_full_backlog(agent: Agent) -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(agent.socket))
        listener.listen(0)
        fill_backlog(stack, agent.socket)
        check_offline_line(agent, agent.run(LINE, "statusline"), SILENT)


def fill_backlog(stack: ExitStack, path: Path) -> None:
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
    ],
    ids=["empty", "cut", "no text", "null", "deep", "half a letter", "long number"],
)
def test_invalid_stdin_prints_nothing_and_is_spooled_reduced(agent: Agent, body: bytes) -> None:
    result = agent.spools(body, "statusline")
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")


def test_status_line_without_a_context_is_empty_and_its_event_spooled(
    compiled_agent: Agent,
) -> None:
    result = compiled_agent.spools(b'{"context_window":1}', "statusline")
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")


def test_oversized_stdin_is_spooled_truncated(agent: Agent) -> None:
    huge = LINE + b" " * MAX_EVENT_BYTES
    result = agent.run(huge, "statusline")
    assert (result.code, result.stdout, result.stderr) == (0, offline_line(agent, OFF), b"")
    (event,) = agent.take_spooled()
    assert event.body == LINE


def test_open_stdin_is_not_waited_for(agent: Agent, stopped: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, LINE)
    for place, state in ((agent.socket, OFF), (stopped, SILENT)):
        check_offline_line(agent, replace(agent, socket=place).run(reader, "statusline"), state)
        os.write(writer, LINE)
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("place", ["missing", "stopped"])
def test_suspended_client_spools_its_event(agent: Agent, stopped: Path, place: str) -> None:
    socket = stopped if place == "stopped" else agent.socket
    with running_client(replace(agent, socket=socket), LINE) as process:
        time.sleep(0.03)
        suspend(process)
    assert process.returncode == 0
    assert [event.body for event in agent.take_spooled()] == [LINE]


def test_closed_streams_spool_an_empty_event(agent: Agent) -> None:
    def close() -> None:
        os.closerange(0, 3)

    result = replace(agent, before=close).run(LINE, "statusline")
    assert (result.code, result.stdout) == (0, b"")
    assert [event.body for event in agent.take_spooled()] == [b""]


def test_bytes_after_the_reply_are_ignored(agent: Agent) -> None:
    with Daemon(agent.socket, sends(encode_reply(b"{}") + b"more")) as daemon:
        result, exchange = agent.answered(daemon, LINE)
    assert (result.stdout, exchange.acknowledged) == (b"{}", True)


@pytest.mark.parametrize("arguments", [[], ["hook"], ["a"] * 9], ids=["none", "few", "many"])
def test_wrong_arguments_are_silent(
    agent: Agent, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(agent.folder)
    before = sorted(agent.folder.iterdir())
    command = [*agent.command, *arguments]
    result = replace(agent, command=[sys.executable, "-c", RUN, *command]).run(LINE)
    assert (result.code, result.stdout) == (0, b"")
    assert sorted(agent.folder.iterdir()) == before  # nothing was spooled


@contextmanager
def running_client(agent: Agent, stdin: bytes) -> Generator["subprocess.Popen[bytes]", None, None]:
    """Start a client whose stdin stays open; wait for it at the end."""
    words = [*agent.command, "hook", "claude", str(agent.socket), str(agent.folder / "spool")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env={}) as process:
        assert process.stdin
        process.stdin.write(stdin)
        process.stdin.flush()
        yield process
        process.wait(MAX_WAIT_S)


def suspend(process: "subprocess.Popen[bytes]") -> None:
    """Suspend a process until its time is over."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    process.send_signal(signal.SIGCONT)


# Runs a command without the four arguments that an agent adds.
RUN = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:-4], stderr=-3))"
