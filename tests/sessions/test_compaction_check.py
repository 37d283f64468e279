"""Whether a client compacts where its settings say."""

from pathlib import Path

import pytest

from brimline.sessions.compaction_check import CompactionCheck, check_compactions, read_sessions

from .machine import NOON, Machine, call, compaction

MODEL = "claude-sonnet-4-5"


def check(machine: Machine, limit: int, since: float = NOON) -> CompactionCheck:
    sessions = read_sessions(machine.places, "claude", since, machine.cache)
    return check_compactions(sessions, MODEL, limit, 200_000, since)


def compacted(name: str, *at: int) -> bytes:
    """A session that compacts after each of these calls."""
    lines = [call(f"{name}-start", 20_000, sessionId=name)]
    for n, held in enumerate(at, 1):
        lines.append(call(f"{name}{n}", held - 10, second=10 * n, sessionId=name))
        lines.append(compaction(10 * n + 1, held, sessionId=name))
    return b"".join([*lines, call(f"{name}-end", 20_000, second=90, sessionId=name)])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_compactions_at_the_limit_say_that_it_works(machine: Machine) -> None:
    machine.session("a", compacted("a", 121_000, 122_000, 120_000, 124_000))
    checked = check(machine, 120_000)
    assert checked == CompactionCheck(
        "works", "works: the last 3 compacted at 61, 60, 62% of the window"
    )


def test_calls_beyond_the_limit_say_that_it_is_ignored(machine: Machine) -> None:
    for name in ("a", "b"):
        calls = (call(f"{name}{n}", 150_000 + n, second=n, sessionId=name) for n in range(3))
        machine.session(name, *calls)
    checked = check(machine, 120_000)
    assert checked.verdict == "ignored"
    assert checked.text == "ignored by 2.1.325 on sonnet-4-5: passed by 30K twice"


def test_compactions_elsewhere_are_named(machine: Machine) -> None:
    machine.session("a", compacted("a", 90_000))
    checked = check(machine, 120_000)
    assert checked.verdict == "elsewhere"
    assert checked.text == "the last one compacted at 45% of the window, not at the limit"


def test_sessions_that_began_before_show_nothing(machine: Machine) -> None:
    """A client reads its settings when it starts."""
    machine.session("a", compacted("a", 160_000))
    assert check(machine, 120_000, since=NOON + 30).verdict == "not seen"
