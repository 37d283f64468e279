"""What the sessions add up to: by day, session, project and model."""

import time
from typing import Any

import pytest

from brimline.agents import agent_names
from brimline.prices import compute_cost
from brimline.survey.index import TranscriptIndex
from brimline.survey.report import (
    GroupBy,
    Report,
    ReportFilter,
    ReportLine,
    build_report,
    summaries,
)
from brimline.usage import Usage

from .machine import NOON, Machine, call, compaction, of_agent, told

DAY = 86_400
EVERYTHING = ReportFilter()


def made(machine: Machine, by: GroupBy = "day", chosen: ReportFilter = EVERYTHING) -> Report:
    """The report on a machine."""
    index = TranscriptIndex.load(machine.cache)
    found = machine.found()
    index.update(found)
    index.dedupe_calls(found, agent_names())
    return build_report(summaries(index, found), by, chosen)


def lines(made: Report) -> dict[str, ReportLine]:
    """The lines by their keys."""
    return {line.key: line for line in made.lines}


def day(at: float) -> str:
    """The local day of a moment."""
    return time.strftime("%Y-%m-%d", time.localtime(at))


@pytest.fixture
def two(machine: Machine) -> Machine:
    """A machine with two sessions in two projects, one with a subagent, over two days."""
    machine.session(
        "s1",
        call("m1", 50_000),
        call("m2", 160_000, second=5),
        compaction(6),
        call("m3", 30_000, second=DAY),
        call("m4", 31_000, second=DAY + 1, model="claude-opus-4-5"),
    )
    machine.subagent(
        "s1", "a1", call("m5", 190_000, second=7, cwd="/project/tree", **of_agent("a1"))
    )
    other: dict[str, Any] = {"sessionId": "s2", "cwd": "/other"}
    machine.session("s2", told(**other), call("m6", 10_000, second=DAY, **other))
    return machine


def test_by_day(two: Machine) -> None:
    """Each day has its sessions, calls, peak, compactions and tokens; subagents add tokens only."""
    found = lines(made(two, "day"))
    first, second = found[day(NOON)], found[day(NOON + DAY)]
    assert list(found) == [day(NOON), day(NOON + DAY)]
    assert (first.sessions, first.calls, first.peak_sent, first.compactions) == (1, 3, 160_000, 1)
    assert first.usage.sent == 50_000 + 160_000 + 190_000
    assert (second.sessions, second.calls, second.peak_sent, second.compactions) == (
        2,
        3,
        31_000,
        0,
    )
    assert second.end_sent is None


def test_by_session(two: Machine) -> None:
    """A session has its subagents' tokens, and its own peak and end."""
    found = lines(made(two, "session"))
    one = found["s1"]
    assert list(found) == ["s1", "s2"]
    assert (one.calls, one.peak_sent, one.end_sent, one.compactions) == (5, 160_000, 31_000, 1)
    assert one.usage.sent == 50_000 + 160_000 + 30_000 + 31_000 + 190_000
    assert found["s2"].end_sent == 10_000


def test_by_project(two: Machine) -> None:
    """A subagent that worked elsewhere counts with its session's project."""
    found = lines(made(two, "project"))
    assert {key: line.calls for key, line in found.items()} == {"/project": 5, "/other": 1}


def test_by_model(two: Machine) -> None:
    """Each model has its calls."""
    found = lines(made(two, "model"))
    assert {key: line.calls for key, line in found.items()} == {
        "claude-sonnet-4-5": 5,
        "claude-opus-4-5": 1,
    }


@pytest.mark.parametrize("by", ["day", "session", "project", "model"])
def test_total(two: Machine, by: GroupBy) -> None:
    """However it is cut, the total is the same, and the lines add up to it."""
    whole = made(two, by)
    total = whole.total
    assert (total.key, total.sessions, total.calls) == ("total", 2, 6)
    assert (total.peak_sent, total.compactions, total.agents) == (160_000, 1, ("claude",))
    assert total.calls == sum(line.calls for line in whole.lines)
    assert total.usage.held == sum(line.usage.held for line in whole.lines)
    assert total.cost == pytest.approx(sum(line.cost or 0 for line in whole.lines))


def test_since(two: Machine) -> None:
    """From a day on: what was before does not count, not even in a session that goes on."""
    found = lines(made(two, "session", ReportFilter(first_day=day(NOON + DAY))))
    assert {key: line.calls for key, line in found.items()} == {"s1": 2, "s2": 1}
    assert found["s1"].peak_sent == 31_000
    assert made(two, "day", ReportFilter(first_day=day(NOON + 2 * DAY))).lines == []


def test_project(two: Machine) -> None:
    """Of a project whose path contains a text; a session's subagents are with it."""
    assert made(two, "session", ReportFilter(project="other")).total.calls == 1
    assert made(two, "session", ReportFilter(project="oth")).total.sessions == 1
    assert made(two, "session", ReportFilter(project="nothing")).lines == []
    machine_wide = made(two, "session", ReportFilter(project="")).total
    assert machine_wide.calls == 6


def test_project_of_a_subagent_elsewhere(machine: Machine) -> None:
    """A project's subagents count where they worked outside of its folder too."""
    machine.session("s1", call("m1", cwd="/project"))
    machine.subagent("s1", "a1", call("m2", cwd="/elsewhere", **of_agent("a1")))
    assert made(machine, "project", ReportFilter(project="/project")).total.calls == 2
    assert made(machine, "project", ReportFilter(project="/elsewhere")).total.calls == 0


def test_older_subagents_are_with_their_session(machine: Machine) -> None:
    """A subagent's file beside the sessions counts with the session that its records name."""
    machine.session("s1", call("m1"))
    machine.loose("a1", call("m2", **of_agent("a1")))
    found = lines(made(machine, "session"))
    assert {key: (line.calls, line.sessions) for key, line in found.items()} == {"s1": (2, 1)}


def test_cost(machine: Machine) -> None:
    """A line costs what its calls cost, each at its day and tier."""
    machine.session("s1", call("m1", 100_000), call("m2", 250_000, second=1))
    line = made(machine).lines[0]
    prompts = [(0, 100_000), (200_000, 250_000)]
    expected = 0.0
    for tier, sent in prompts:
        usage = Usage(3, sent - 600, 597, 10)
        expected += compute_cost("claude-sonnet-4-5", line.key, tier, usage) or 0
    assert line.cost == pytest.approx(expected)
    assert line.unpriced == 0


def test_unknown_price(machine: Machine) -> None:
    """Calls on a model without a known price are counted apart; alone, their cost is unknown."""
    machine.session("s1", call("m1"), call("m2", model="my-own"), call("m3", model=None))
    whole = made(machine, "model")
    found = lines(whole)
    assert set(found) == {"claude-sonnet-4-5", "my-own", "unknown"}
    assert found["my-own"].cost is None
    assert (whole.total.unpriced, found["my-own"].unpriced) == (2, 1)
    assert whole.total.cost == found["claude-sonnet-4-5"].cost


def test_unknown_project(machine: Machine) -> None:
    """A session that tells no project is in `unknown`."""
    machine.session("s1", call("m1", cwd=None))
    assert list(lines(made(machine, "project"))) == ["unknown"]
    assert made(machine, "project", ReportFilter(project="x")).lines == []


def test_nothing(machine: Machine) -> None:
    """No files, no lines; the total is nothing, and its figures are unknown."""
    whole = made(machine)
    assert whole.lines == []
    assert (whole.total.calls, whole.total.peak_sent, whole.total.cost) == (0, None, None)


def test_forks_count_once(machine: Machine) -> None:
    """A session that was forked adds only its own calls."""
    machine.session("s1", call("m1", 50_000), call("m2", 60_000, second=1))
    fork: dict[str, Any] = {"sessionId": "s2"}
    machine.session(
        "s2", call("m1", 50_000, second=9, **fork), call("m3", 70_000, second=9, **fork)
    )
    found = lines(made(machine, "session"))
    assert {key: line.calls for key, line in found.items()} == {"s1": 2, "s2": 1}
    assert found["s2"].end_sent == 70_000
