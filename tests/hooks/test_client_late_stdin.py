"""Input that comes some time after a hook's start: used until 190 ms, counted as late after that.

A busy machine may delay the writer or the client: each test runs the client until it is in time.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from brimline.hooks import spool
from brimline.hooks.client.payload import reduce_body

from .agent import MAX_RUN_S, MAX_WAIT_S, TRIES, Agent, ClientResult
from .daemon import Daemon, answers
from .test_client_unanswered import LINE, OFF, SILENT, offline_line

HALF = len(LINE) // 2
LATE_S = 0.3
REPLY = b"reply\n"

# When a part is written, in seconds after the start of the client, and the part.
Parts = list[tuple[float, bytes]]
ARRIVALS: dict[str, Parts] = {
    "50 ms": [(0.05, LINE)],
    "100 ms": [(0.1, LINE)],
    "150 ms": [(0.15, LINE)],
    "two parts": [(0.0, LINE[:HALF]), (0.1, LINE[HALF:])],
}
LATE_ARRIVALS: dict[str, Parts] = {
    "300 ms": [(LATE_S, LINE)],
    "a late part": [(0.0, LINE[:HALF]), (LATE_S, LINE[HALF:])],
}
LATE_LINES = {"hook": b"", "statusline": b"ctx unknown\n"}

arrivals = pytest.mark.parametrize("parts", ARRIVALS.values(), ids=ARRIVALS)
late_arrivals = pytest.mark.parametrize("parts", LATE_ARRIVALS.values(), ids=LATE_ARRIVALS)
kinds = pytest.mark.parametrize("kind", LATE_LINES)


class Outcome(NamedTuple):
    """What a client printed and spooled, and how many events it counted as late."""

    printed: bytes
    spooled: list[bytes]
    late: int


def run_written(agent: Agent, kind: str, parts: Parts, closes: bool = True) -> ClientResult:
    """Run a client and write its stdin in parts; a client that has ended reads no more."""
    begun = time.monotonic()
    pipe = subprocess.PIPE
    words, env = agent.words(kind), dict(agent.env)
    process = subprocess.Popen(words, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    started = time.monotonic()
    with process:
        assert process.stdin
        with suppress(BrokenPipeError):
            for after, part in parts:
                time.sleep(max(0.0, started + after - time.monotonic()))
                process.stdin.write(part)
        if closes:
            process.stdin.close()
        process.wait(MAX_WAIT_S)
        assert process.stdout
        assert process.stderr
        out, errors = process.stdout.read(), process.stderr.read()
    return ClientResult(process.pid, process.returncode, out, errors, time.monotonic() - begun)


def outcomes(
    agent: Agent, kind: str, parts: Parts, closes: bool = True
) -> Iterator[tuple[int, Outcome]]:
    """Yield the process id and the outcome of runs; none loses an event without counting it."""
    body = reduce_body(b"".join(part for _, part in parts))
    for _ in range(TRIES):
        result = run_written(agent, kind, parts, closes)
        assert (result.code, result.stderr, agent.take_dropped()) == (0, b"", 0)
        assert result.seconds < MAX_RUN_S
        spooled = [event.body for event in agent.take_spooled()]
        outcome = Outcome(result.stdout, spooled, spool.take_late(agent.folder))
        is_answered = outcome.printed == REPLY
        assert len(outcome.spooled) + outcome.late + is_answered == 1
        assert set(outcome.spooled) <= {body}
        yield result.pid, outcome


def check_outcome(runs: Iterator[tuple[int, Outcome]], expected: Outcome) -> int:
    """Run the client until the outcome is as expected, and return its process id."""
    seen: list[Outcome] = []
    for pid, outcome in runs:
        if outcome == expected:
            return pid
        seen.append(outcome)
    raise AssertionError(seen)


@arrivals
@kinds
def test_daemon_gets_input_that_comes_after_the_start(
    agent: Agent, kind: str, parts: Parts
) -> None:
    with Daemon(agent.socket, answers(REPLY)) as daemon:
        pid = check_outcome(outcomes(agent, kind, parts), Outcome(REPLY, [], 0))
        exchange = daemon.last_exchange(pid)
    assert exchange is not None
    assert exchange.request.body == LINE


@arrivals
@kinds
def test_input_that_comes_after_the_start_is_spooled_without_a_daemon(
    agent: Agent, kind: str, parts: Parts
) -> None:
    line = offline_line(agent, OFF) if kind == "statusline" else b""
    check_outcome(outcomes(agent, kind, parts), Outcome(line, [LINE], 0))


@pytest.mark.parametrize("after", [0.1, 0.15])
def test_input_that_a_suspended_daemon_does_not_answer_is_spooled(
    agent: Agent, stopped: Path, after: float
) -> None:
    runs = outcomes(replace(agent, socket=stopped), "statusline", [(after, LINE)])
    check_outcome(runs, Outcome(offline_line(agent, SILENT), [LINE], 0))


@pytest.mark.parametrize("end", [b"", b"\n"], ids=["no newline", "newline"])
def test_whole_object_is_not_late_if_stdin_stays_open(agent: Agent, end: bytes) -> None:
    parts = [(0.0, LINE[:HALF]), (0.1, LINE[HALF:] + end)]
    with Daemon(agent.socket, answers(REPLY)):
        check_outcome(outcomes(agent, "hook", parts, closes=False), Outcome(REPLY, [], 0))


def test_long_input_is_whole_if_stdin_stays_open(agent: Agent) -> None:
    """It is longer than a pipe holds, and many of its pieces end with a brace."""
    results = b",".join([b'{"text":"%b"}' % (b"x" * 50)] * 10_000)
    parts = [(0.1, b'{"cwd":"/p","tool_response":[%b]}' % results)]
    runs = outcomes(agent, "hook", parts, closes=False)
    check_outcome(runs, Outcome(b"", [b'{"cwd":"/p"}'], 0))


@late_arrivals
@kinds
def test_late_input_is_counted_and_not_sent(agent: Agent, kind: str, parts: Parts) -> None:
    with Daemon(agent.socket, answers(REPLY)) as daemon:
        pid = check_outcome(outcomes(agent, kind, parts), Outcome(LATE_LINES[kind], [], 1))
        assert daemon.last_exchange(pid) is None


@late_arrivals
@kinds
def test_late_input_is_counted_without_a_daemon(agent: Agent, kind: str, parts: Parts) -> None:
    check_outcome(outcomes(agent, kind, parts), Outcome(LATE_LINES[kind], [], 1))


@kinds
def test_input_that_never_becomes_whole_is_late(agent: Agent, kind: str) -> None:
    _, outcome = next(outcomes(agent, kind, [(0.0, LINE[:-1])], closes=False))
    assert outcome == Outcome(LATE_LINES[kind], [], 1)


def test_late_input_in_a_missing_state_folder_is_counted(agent: Agent) -> None:
    fresh = replace(agent, folder=agent.folder / "state" / "brimline")
    _, outcome = next(outcomes(fresh, "hook", [], closes=False))
    assert outcome == Outcome(b"", [], 1)
