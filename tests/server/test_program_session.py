"""Programs that report to a real daemon with `Tracker(report_to=DaemonSession(...))`."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .running import MAX_WAIT_S, Running

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
OBSERVED_WITHIN_S = 0.1  # the daemon is not waited for
MESSAGES_WITHIN_S = 2.0
EXIT_WITHIN_S = 5.0
DAEMON_WAIT_S = 3_600.0  # longer than any test


class Program:
    """A running program, and its lines.

    It waits for a daemon for as long as it takes, because a busy one is slow, or with `hurries` for
    a moment, as programs do. Without a daemon neither waits.
    """

    def __init__(
        self, daemon: Running, agent: str = "reviewer", id: str = "", hurries: bool = False
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "server.reporting_program", agent, id],
            cwd=daemon.folder,
            env=daemon.environment | {"PYTHONPATH": str(TESTS), "PYTHONWARNINGS": "error"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.id: str = self._read()
        if not hurries:
            self.do(f"wait_for_daemon {DAEMON_WAIT_S}")

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def do(self, line: str) -> Any:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        return self._read()

    def end(self) -> float:
        """End it as any program ends, without an error or a warning; return how long it took."""
        started = time.monotonic()
        _, errors = self.process.communicate(timeout=MAX_WAIT_S)
        assert (self.process.returncode, errors) == (0, "")
        return time.monotonic() - started


Start = Callable[..., Program]


@pytest.fixture
def start(daemon: Running) -> Iterator[Start]:
    """Start programs, which are killed after the test."""
    programs: list[Program] = []

    def start_program(agent: str = "reviewer", id: str = "", hurries: bool = False) -> Program:
        programs.append(Program(daemon, agent, id, hurries))
        return programs[-1]

    yield start_program
    for program in programs:
        program.process.kill()
        program.process.communicate()


def shortest(program: Program, line: str) -> float:
    """The shortest time of three: a wait delays each, a busy machine some."""
    return min(program.do(line) for _ in range(3))


def threads_of(daemon: Running, id: str) -> dict[str, Any]:
    return {row["thread"]: row for row in daemon.get(f"/v1/sessions/{id}")["threads"]}


def wait_for_calls(daemon: Running, id: str, calls: int) -> dict[str, Any]:
    """Wait until the main thread has this many calls, and return it."""

    def has_calls(views: Any) -> bool:
        return any(
            row["calls"] == calls
            for view in views
            if view["session"]["id"] == id
            for row in view["threads"]
            if row["thread"] == "main"
        )

    daemon.until("/v1/sessions", has_calls)
    return threads_of(daemon, id)["main"]


def test_session_has_its_agent_title_source_and_times(daemon: Running, start: Start) -> None:
    began, program = time.time(), start()
    program.do("call 90000")
    main = wait_for_calls(daemon, program.id, 1)
    assert (main["sent"], main["percent"], main["window"]) == (90_000, 45.0, 200_000)
    assert (main["source"], main["state"]) == ("program", "measured")
    assert began <= main["at"] <= time.time()
    session = daemon.get(f"/v1/sessions/{program.id}")["session"]
    assert (session["agent"], session["title"]) == ("reviewer", "reviewer at work")
    assert session["project"] == str(daemon.folder)
    assert began <= session["seen_at"] <= time.time()
    (call,) = daemon.get(f"/v1/sessions/{program.id}/timeline")["calls"]
    assert began <= call["at"] <= time.time()
    program.end()
    daemon.until(f"/v1/sessions/{program.id}", lambda view: view["session"]["ended_at"])


def test_subagents_compactions_and_resets_are_reported(daemon: Running, start: Start) -> None:
    program = start()
    program.do("call 90000")
    program.do("call 30000 searcher")
    program.do("compacted")
    program.do("call 40000")
    program.do("compacted searcher")
    program.do("reset")
    program.do("call 7000")
    wait_for_calls(daemon, program.id, 3)
    threads = threads_of(daemon, program.id)
    assert [(row["sent"], row["cycle"]) for row in threads.values()] == [(7_000, 2), (None, 1)]
    assert {row["source"] for row in threads.values()} == {"program"}
    timeline = daemon.get(f"/v1/sessions/{program.id}/timeline")
    compactions = [(row["thread"], row["cycle"], row["before"]) for row in timeline["compactions"]]
    assert sorted(compactions) == [("main", 0, 90_005), ("searcher", 0, 30_005)]
    kinds = [(row["thread"], row["kind"]) for row in timeline["signals"]]
    assert ("main", "compacted") in kinds
    assert ("main", "cleared") in kinds


def test_level_and_message_reach_the_program_once(daemon: Running, start: Start) -> None:
    program = start()
    program.do("call 110000")
    (level,) = program.do("messages")
    assert "55%" in level
    assert program.do("messages") == []
    assert daemon.command("send", program.id, "Check the tests.").returncode == 0
    assert program.do("messages") == ["[message from user] Check the tests."]
    assert program.do("messages") == []
    daemon.post(f"/v1/sessions/{program.id}/messages", {"text": "One more."})
    (awaited,) = program.do("awaited_messages")
    assert awaited.endswith("One more.")
    assert program.do("awaited_messages") == []
    messages = daemon.get(f"/v1/sessions/{program.id}/messages")
    assert [message["state"] for message in messages] == ["delivered"] * 3


def test_message_is_not_delivered_to_a_program_that_dies_with_it(
    daemon: Running, start: Start
) -> None:
    program = start()
    program.do("call 1000")
    wait_for_calls(daemon, program.id, 1)
    daemon.post(f"/v1/sessions/{program.id}/messages", {"text": "Check the tests."})
    with pytest.raises(json.JSONDecodeError):
        program.do("die_with_a_message")
    (message,) = daemon.get(f"/v1/sessions/{program.id}/messages")
    assert message["state"] == "handed"


def test_nothing_is_lost_or_doubled_if_the_daemon_is_killed(daemon: Running, start: Start) -> None:
    program = start()
    for _ in range(3):
        program.do("call 50000")
    wait_for_calls(daemon, program.id, 3)
    program.do("call 51000")
    daemon.kill()
    assert shortest(program, "call 60000") < OBSERVED_WITHIN_S
    assert program.do("messages") == []
    daemon.start()
    main = wait_for_calls(daemon, program.id, 7)
    assert (main["sent"], main["source"]) == (60_000, "program")
    program.do("call 130000")
    assert len(program.do("messages")) == 1
    calls = daemon.get(f"/v1/sessions/{program.id}/timeline")["calls"]
    assert [row["input"] for row in calls] == [50_000] * 3 + [51_000] + [60_000] * 3 + [130_000]
    program.end()


def test_two_programs_at_once_are_two_sessions(daemon: Running, start: Start) -> None:
    first, second = start("reviewer"), start("writer")
    for number in range(5):
        first.do(f"call {10_000 + number}")
        second.do(f"call {150_000 + number}")
    assert wait_for_calls(daemon, first.id, 5)["sent"] == 10_004
    assert wait_for_calls(daemon, second.id, 5)["sent"] == 150_004
    assert first.do("messages") == []
    assert len(second.do("messages")) == 1
    agents = {view["session"]["agent"] for view in daemon.get("/v1/sessions")}
    assert agents == {"reviewer", "writer"}


def test_same_id_continues_the_session_in_another_process(daemon: Running, start: Start) -> None:
    program = start(id="nightly/7")
    program.do("call 50000")
    program.end()
    again = start(id="nightly/7")
    again.do("call 60000")
    daemon.until("/v1/sessions", lambda views: views[0]["threads"][0]["calls"] == 2)
    (view,) = daemon.get("/v1/sessions")
    assert (view["session"]["id"], view["session"]["ended_at"]) == ("nightly/7", None)


def test_forked_child_reports_its_own_calls_and_does_not_end_the_session(
    daemon: Running, start: Start
) -> None:
    program = start()
    program.do("call 50000")
    assert program.do("fork 20000") == 0
    program.do("call 51000")
    wait_for_calls(daemon, program.id, 2)
    threads = threads_of(daemon, program.id)
    assert {name: (row["calls"], row["sent"]) for name, row in threads.items()} == {
        "main": (2, 51_000),
        "before": (1, 1_000),
        "child": (1, 20_000),
    }
    assert daemon.get(f"/v1/sessions/{program.id}")["session"]["ended_at"] is None


def test_hanging_daemon_delays_neither_observe_nor_the_exit(daemon: Running, start: Start) -> None:
    programs = [start(hurries=True) for _ in range(2)]
    program = programs[0]
    program.do("call 50000")
    wait_for_calls(daemon, program.id, 1)
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        assert shortest(program, "call 60000") < OBSERVED_WITHIN_S
        assert shortest(program, "timed_messages") < MESSAGES_WITHIN_S
        assert shortest(program, "call 61000") < OBSERVED_WITHIN_S
        programs[1].do("call 62000")
        assert min(each.end() for each in programs) < EXIT_WITHIN_S
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_program_without_a_daemon_goes_on_and_is_seen_when_one_starts(tmp_path: Path) -> None:
    daemon = Running(tmp_path)
    program = Program(daemon)
    try:
        assert program.do("threads") == ["MainThread"]
        assert shortest(program, "call 50000") < OBSERVED_WITHIN_S
        assert program.do("messages") == []
        assert shortest(program, "timed_messages") < OBSERVED_WITHIN_S
        daemon.start()
        wait_for_calls(daemon, program.id, 3)
        daemon.stop()
        program.do("call 60000")
        program.end()
        assert not (daemon.state / "spool").exists()
    finally:
        program.process.kill()
        daemon.close()
