"""Report totals by day, session, project and model."""

import json
import time
from collections.abc import Callable
from typing import Any, get_args

import pytest

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import Call, SessionSeen, Spent
from brimline.context.prices import UNKNOWN_DAY, compute_cost
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import (
    GroupBy,
    Part,
    Report,
    ReportFilter,
    ReportLine,
    TranscriptSummary,
    build_report,
    periods_between,
    split_report,
    summaries,
    week_of,
)
from brimline.sessions.summary import summarise

from .machine import (
    NOON,
    Machine,
    call,
    clock,
    compaction,
    packed,
    subagent_fields,
    user_record,
)

DAY_S = 86_400
EVERYTHING = ReportFilter()


def summaries_of(machine: Machine) -> list[TranscriptSummary]:
    index = TranscriptIndex.load(machine.cache)
    transcripts = machine.transcripts()
    index.update(transcripts)
    index.dedupe_calls(transcripts, agent_names())
    return summaries(index, transcripts)


def report(machine: Machine, by: GroupBy = "day", chosen: ReportFilter = EVERYTHING) -> Report:
    return build_report(summaries_of(machine), by, chosen)


def lines(result: Report) -> dict[str, ReportLine]:
    """The lines by their keys."""
    return {line.key: line for line in result.lines}


def day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


@pytest.fixture
def two(machine: Machine) -> Machine:
    """A machine with two sessions in two projects, one with a subagent, over two days."""
    machine.session(
        "s1",
        call("m1", 50_000),
        call("m2", 160_000, second=5),
        compaction(6),
        call("m3", 30_000, second=DAY_S),
        call("m4", 31_000, second=DAY_S + 1, model="claude-opus-4-5"),
    )
    machine.subagent(
        "s1", "a1", call("m5", 190_000, second=7, cwd="/project/tree", **subagent_fields("a1"))
    )
    second: dict[str, Any] = {"sessionId": "s2", "cwd": "/other"}
    machine.session("s2", user_record(**second), call("m6", 10_000, second=DAY_S, **second))
    return machine


def test_day_has_sessions_calls_peak_compactions_and_tokens(two: Machine) -> None:
    by_key = lines(report(two, "day"))
    first, second = by_key[day(NOON)], by_key[day(NOON + DAY_S)]
    assert list(by_key) == [day(NOON), day(NOON + DAY_S)]
    assert (first.sessions, first.calls, first.peak_sent, first.compactions) == (1, 3, 160_000, 1)
    assert first.usage.sent == 50_000 + 160_000 + 190_000
    assert (second.sessions, second.calls, second.peak_sent, second.compactions) == (
        2,
        3,
        31_000,
        0,
    )
    assert second.end_sent is None


def test_session_includes_subagent_tokens_but_its_own_peak_and_end(two: Machine) -> None:
    by_key = lines(report(two, "session"))
    first = by_key["s1"]
    assert list(by_key) == ["s1", "s2"]
    assert (first.calls, first.peak_sent, first.end_sent, first.compactions) == (
        5,
        160_000,
        31_000,
        1,
    )
    assert first.usage.sent == 50_000 + 160_000 + 30_000 + 31_000 + 190_000
    assert by_key["s2"].end_sent == 10_000


def test_subagent_elsewhere_counts_in_its_sessions_project(two: Machine) -> None:
    by_key = lines(report(two, "project"))
    assert {key: line.calls for key, line in by_key.items()} == {"/project": 5, "/other": 1}


def test_each_model_has_its_calls(two: Machine) -> None:
    by_key = lines(report(two, "model"))
    assert {key: line.calls for key, line in by_key.items()} == {
        "claude-sonnet-4-5": 5,
        "claude-opus-4-5": 1,
    }


def test_line_has_its_models_the_most_expensive_first(two: Machine) -> None:
    line = lines(report(two, "session"))["s1"]
    assert [(each.model, each.calls) for each in line.models] == [
        ("claude-sonnet-4-5", 4),
        ("claude-opus-4-5", 1),
    ]
    assert sum(each.usage.held for each in line.models) == line.usage.held
    assert sum(each.cost or 0 for each in line.models) == pytest.approx(line.cost)


@pytest.fixture
def branches(machine: Machine) -> Machine:
    """A machine with a session that changes its branch, and one in another project."""
    machine.session(
        "s1",
        call("m1", 10_000, gitBranch="main"),
        call("m2", 20_000, second=1, gitBranch="feature/x"),
        call("m3", 30_000, second=2, gitBranch="HEAD"),
    )
    fields: dict[str, Any] = {"cwd": "/project/tree", "gitBranch": "worktree-a1"}
    machine.subagent("s1", "a1", call("m4", 40_000, **fields, **subagent_fields("a1")))
    other: dict[str, Any] = {"sessionId": "s2", "cwd": "/other", "gitBranch": "main"}
    machine.session("s2", call("m5", 50_000, second=DAY_S, **other))
    return machine


def test_each_branch_of_a_project_has_its_calls(branches: Machine) -> None:
    """Two projects have a branch `main`, and a subagent may have a branch of its own."""
    by_key = lines(report(branches, "branch"))
    assert {key: (line.sessions, line.usage.sent) for key, line in by_key.items()} == {
        "/other: main": (1, 50_000),
        "/project: feature/x": (1, 20_000),
        "/project: main": (1, 10_000),
        "/project: worktree-a1": (1, 40_000),
        "unknown": (1, 30_000),
    }


def test_branch_filter_takes_the_calls_on_it_of_all_projects(branches: Machine) -> None:
    by_key = lines(report(branches, "session", ReportFilter(branch="main")))
    assert {key: line.usage.sent for key, line in by_key.items()} == {"s1": 10_000, "s2": 50_000}
    (line,) = report(branches, "project", ReportFilter(branch="main", project="other")).lines
    assert (line.key, line.calls) == ("/other", 1)
    assert report(branches, "day", ReportFilter(branch="mai")).lines == []


def test_branch_of_calls_that_were_read_before_is_kept(branches: Machine) -> None:
    """The file grew since the index was saved."""
    index = TranscriptIndex.load(branches.cache)
    index.update(branches.transcripts())
    index.save()
    with (branches.projects / "-project" / "s1.jsonl").open("ab") as file:
        file.write(call("m6", 60_000, second=3, gitBranch="feature/x"))
    line = lines(report(branches, "branch"))["/project: feature/x"]
    assert (line.calls, line.usage.sent) == (2, 80_000)


def test_by_agent(two: Machine) -> None:
    by_key = lines(report(two, "agent"))
    assert {key: line.calls for key, line in by_key.items()} == {"claude": 6}


def test_summary_keeps_the_title_in_the_cache(machine: Machine) -> None:
    machine.session("s1", user_record("Mend the parser"), call("m1"))
    for _ in range(2):
        index = TranscriptIndex.load(machine.cache)
        transcripts = machine.transcripts()
        index.update(transcripts)
        index.save()
        (item,) = summaries(index, transcripts)
        assert item.summary.title == "Mend the parser"


@pytest.mark.parametrize("by", get_args(GroupBy))
def test_lines_of_every_grouping_add_up_to_the_same_total(two: Machine, by: GroupBy) -> None:
    whole = report(two, by)
    total = whole.total
    assert (total.key, total.sessions, total.calls) == ("total", 2, 6)
    assert (total.peak_sent, total.compactions, total.agents) == (160_000, 1, ("claude",))
    assert total.calls == sum(line.calls for line in whole.lines)
    assert total.usage.held == sum(line.usage.held for line in whole.lines)
    assert total.cost == pytest.approx(sum(line.cost or 0 for line in whole.lines))


@pytest.mark.parametrize(
    ("day", "week"),
    [("2026-11-16", "2026-W47"), ("2027-01-03", "2026-W53"), ("2024-12-30", "2025-W01")],
)
def test_week_is_that_of_the_iso_calendar(day: str, week: str) -> None:
    assert week_of(day) == week


@pytest.mark.parametrize("by", ["project", "branch", "model", "agent"])
def test_parts_of_the_days_add_up_to_the_whole_part(two: Machine, by: Part) -> None:
    parts = split_report(summaries_of(two), "day", by, EVERYTHING)
    assert list(parts) == [day(NOON), day(NOON + DAY_S)]
    days = lines(report(two, "day"))
    for key, of_day in parts.items():
        assert sum(part.usage.sent for part in of_day) == days[key].usage.sent
        assert sum(part.cost or 0 for part in of_day) == pytest.approx(days[key].cost)
    for key, line in lines(report(two, by)).items():
        own = [part for of_day in parts.values() for part in of_day if part.key == key]
        assert sum(part.calls for part in own) == line.calls


def test_periods_without_a_call_are_between_the_others() -> None:
    days = ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert periods_between("day", days[0], days[-1]) == days
    assert periods_between("week", "2025-12-27", "2026-01-05") == [
        "2025-W52", "2026-W01", "2026-W02"
    ]  # fmt: skip
    assert periods_between("month", "2025-12-31", "2026-02-01") == ["2025-12", "2026-01", "2026-02"]


def test_calls_without_a_time_have_a_week_and_a_month_of_their_own(machine: Machine) -> None:
    record = json.loads(call("m1", 9_000)) | {"timestamp": None}
    machine.session("s1", json.dumps(record).encode())
    for by in ("day", "week", "month"):
        assert list(lines(report(machine, by))) == [UNKNOWN_DAY]


def test_calls_before_the_first_day_do_not_count(two: Machine) -> None:
    by_key = lines(report(two, "session", ReportFilter(first_day=day(NOON + DAY_S))))
    assert {key: line.calls for key, line in by_key.items()} == {"s1": 2, "s2": 1}
    assert by_key["s1"].peak_sent == 31_000
    assert report(two, "day", ReportFilter(first_day=day(NOON + 2 * DAY_S))).lines == []


def test_project_filter_matches_part_of_the_path_and_keeps_subagents(two: Machine) -> None:
    assert report(two, "session", ReportFilter(project="other")).total.calls == 1
    assert report(two, "session", ReportFilter(project="oth")).total.sessions == 1
    assert report(two, "session", ReportFilter(project="nothing")).lines == []
    machine_wide = report(two, "session", ReportFilter(project="")).total
    assert machine_wide.calls == 6


def test_project_filter_keeps_subagents_outside_the_folder(machine: Machine) -> None:
    machine.session("s1", call("m1", cwd="/project"))
    machine.subagent("s1", "a1", call("m2", cwd="/elsewhere", **subagent_fields("a1")))
    assert report(machine, "project", ReportFilter(project="/project")).total.calls == 2
    assert report(machine, "project", ReportFilter(project="/elsewhere")).total.calls == 0


def test_subagent_file_beside_the_sessions_counts_with_the_session_it_names(
    machine: Machine,
) -> None:
    machine.session("s1", call("m1"))
    machine.older_subagent("a1", call("m2", **subagent_fields("a1")))
    by_key = lines(report(machine, "session"))
    assert {key: (line.calls, line.sessions) for key, line in by_key.items()} == {"s1": (2, 1)}


def test_cost_is_the_sum_of_calls_by_day_and_tier(machine: Machine) -> None:
    machine.session("s1", call("m1", 100_000), call("m2", 250_000, second=1))
    line = report(machine).lines[0]
    prompts = [(0, 100_000), (200_000, 250_000)]
    expected = 0.0
    for tier, sent in prompts:
        usage = Usage(3, sent - 600, 597, 10)
        expected += compute_cost("claude-sonnet-4-5", line.key, tier, usage) or 0
    assert line.cost == pytest.approx(expected)
    assert line.unpriced == 0


def test_cache_writes_for_an_hour_cost_more(machine: Machine) -> None:
    """Recent Claude Code writes nearly all of its cache for an hour."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 90_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 90_000},
        "cache_read_input_tokens": 0,
        "output_tokens": 10,
    }
    message = {"model": "claude-opus-4-5", "id": "m1", "role": "assistant", "usage": usage}
    machine.session("s1", call("m1", message=message))
    (line,) = report(machine, "day").lines
    assert line.usage == Usage(3, 0, 90_000, 10, cache_write_1h=90_000)
    assert line.cost == pytest.approx((3 * 5 + 90_000 * 10 + 10 * 25) / 1e6)


def test_fast_mode_costs_more(machine: Machine) -> None:
    usage = {"input_tokens": 1_000, "output_tokens": 100}
    for id, speed in (("m1", "standard"), ("m2", "fast"), ("m3", "standard")):
        message = {"model": "claude-opus-4-6", "id": id, "usage": {**usage, "speed": speed}}
        machine.session(f"s-{id}", call(id, message=message, sessionId=f"s-{id}"))
    costs = {key: line.cost for key, line in lines(report(machine, "session")).items()}
    assert costs["s-m1"] == costs["s-m3"] == pytest.approx((1_000 * 5 + 100 * 25) / 1e6)
    assert costs["s-m2"] == pytest.approx(6 * (costs["s-m1"] or 0))


def test_advice_is_billed_at_the_advisors_price(machine: Machine) -> None:
    """The advisor's pass is in no context, and counts in tokens and cost, once in two files."""
    passes = [
        {"type": "message", "input_tokens": 100, "output_tokens": 10},
        {"type": "advisor_message", "input_tokens": 500, "output_tokens": 50,
         "model": "claude-fable-5"},
        {"type": "message", "input_tokens": 200, "output_tokens": 20},
    ]  # fmt: skip
    usage = {"input_tokens": 300, "output_tokens": 30, "iterations": passes}
    line = call("m1", message={"model": "claude-opus-5", "id": "m1", "usage": usage})
    machine.session("s1", line, line)
    machine.session("s2", line, call("m2", 1_000, second=9, model="my-own"))
    whole = report(machine, "model")
    by_key = lines(whole)
    assert (whole.total.calls, whole.total.peak_sent) == (2, 1_000)
    opus, fable = by_key["claude-opus-5"], by_key["claude-fable-5"]
    assert (opus.calls, opus.usage, opus.peak_sent) == (1, Usage(300, 0, 0, 30), 200)
    assert opus.cost == pytest.approx((300 * 5 + 30 * 25) / 1e6)
    assert (fable.calls, fable.usage, fable.peak_sent) == (0, Usage(500, 0, 0, 50), None)
    assert fable.cost == pytest.approx((500 * 10 + 50 * 50) / 1e6)


def test_cost_of_the_client_counts_if_no_price_is_known() -> None:
    seen = SessionSeen(agent="pi", session="s1", records_compactions=True)
    usage = Usage(1_000, 0, 0, 10)
    events = [
        seen,
        Call(at=NOON, id="c1", usage=usage, model="my-own", cost=0.25),
        Spent(at=NOON, id="c2", usage=usage, model="my-own", cost=0.5),
        Call(at=NOON, id="c3", usage=usage, model="claude-opus-5", cost=99.0),
        Call(at=NOON, id="c4", usage=usage, model="free", cost=0.125),
        Call(at=NOON, id="c5", usage=usage, model="free"),
    ]
    transcript = Transcript("pi", "/x.jsonl", 0.0, 1, session="s1")
    item = TranscriptSummary(transcript, summarise(fold(Session(), events)))
    whole = build_report([item], "model", EVERYTHING)
    by_key = lines(whole)
    own, known, free = by_key["my-own"], by_key["claude-opus-5"], by_key["free"]
    assert (own.cost, own.client_cost, own.unpriced) == (0.75, 0.75, 0)
    assert (known.cost, known.client_cost) == (pytest.approx((5_000 + 250) / 1e6), None)
    assert (free.cost, free.client_cost, free.unpriced) == (0.125, 0.125, 1)
    assert whole.total.client_cost == 0.875
    assert whole.total.cost == pytest.approx(0.875 + (known.cost or 0))


def test_calls_without_a_price_are_counted_and_their_cost_is_unknown(machine: Machine) -> None:
    machine.session("s1", call("m1"), call("m2", model="my-own"), call("m3", model=None))
    whole = report(machine, "model")
    by_key = lines(whole)
    assert set(by_key) == {"claude-sonnet-4-5", "my-own", "unknown"}
    assert by_key["my-own"].cost is None
    assert (whole.total.unpriced, by_key["my-own"].unpriced) == (2, 1)
    assert whole.total.cost == by_key["claude-sonnet-4-5"].cost


def test_session_without_a_project_is_under_unknown(machine: Machine) -> None:
    machine.session("s1", call("m1", cwd=None))
    assert list(lines(report(machine, "project"))) == ["unknown"]
    assert report(machine, "project", ReportFilter(project="x")).lines == []


def test_report_without_files_has_unknown_totals(machine: Machine) -> None:
    whole = report(machine)
    assert whole.lines == []
    assert (whole.total.calls, whole.total.peak_sent, whole.total.cost) == (0, None, None)


def snapshot(second: int) -> bytes:
    """What Claude Code writes on a terminal before a prompt; a fork begins with all of them."""
    return packed({"type": "file-history-snapshot", "snapshot": {"timestamp": clock(second)}})


def queued(second: int) -> bytes:
    """What Claude Code writes before a headless prompt."""
    return packed({"type": "queue-operation", "operation": "enqueue", "timestamp": clock(second)})


@pytest.mark.parametrize("begin", [snapshot, queued])
@pytest.mark.parametrize("is_headless", [True, False])
def test_fork_with_the_smaller_path_leaves_the_calls_to_its_original(
    machine: Machine, begin: Callable[[int], bytes], is_headless: bool
) -> None:
    """Both have the same first call; a fork was begun after that."""
    own = [user_record(), call("m1", 50_000), call("m2", 60_000, second=1)]
    copied = [] if is_headless else [snapshot(0)]
    machine.session("b-original", *copied, *own, call("m4", 60_000, second=99))
    machine.session("a-fork", *copied, begin(9), *own, call("m3", 70_000, second=10))
    by_key = lines(report(machine, "session"))
    original, fork = by_key["b-original"], by_key["a-fork"]
    assert (original.calls, original.peak_sent, original.end_sent) == (3, 60_000, 60_000)
    assert (fork.calls, fork.peak_sent, fork.end_sent) == (1, 70_000, 70_000)


def test_of_two_files_that_begin_alike_the_original_has_no_other_calls(machine: Machine) -> None:
    own = [user_record(), call("m1", 50_000), call("m2", 60_000, second=1)]
    machine.session("b-original", *own)
    machine.session("a-fork", *own, call("m3", 70_000, second=10))
    by_key = lines(report(machine, "session"))
    assert {key: line.calls for key, line in by_key.items()} == {"a-fork": 1, "b-original": 2}


def test_call_that_a_fork_copied_under_another_id_is_in_no_sum() -> None:
    usage = Usage(1_000, 0, 100_000, 10)
    calls = [
        Call(at=NOON + number, id=f"c{number}", usage=usage, model="claude-opus-5", is_copy=is_copy)
        for number, is_copy in enumerate([True, True, False])
    ]
    transcript = Transcript("opencode", "/x.db", 0.0, 0, session="s1")
    session = fold(Session(), calls)
    item = TranscriptSummary(transcript, summarise(session))
    line = build_report([item], "session", EVERYTHING).total
    assert (line.calls, line.usage.output, line.misses.calls) == (1, 10, 1)


def test_fork_adds_only_its_own_calls(machine: Machine) -> None:
    machine.session("s1", call("m1", 50_000), call("m2", 60_000, second=1))
    fork: dict[str, Any] = {"sessionId": "s2"}
    machine.session(
        "s2", call("m1", 50_000, second=9, **fork), call("m3", 70_000, second=9, **fork)
    )
    by_key = lines(report(machine, "session"))
    assert {key: line.calls for key, line in by_key.items()} == {"s1": 2, "s2": 1}
    assert by_key["s2"].end_sent == 70_000


def test_fork_starts_with_its_own_first_call(machine: Machine) -> None:
    """The calls that it copied have the times of its original."""
    copied = call("m1", 50_000)
    machine.session("s1", copied)
    machine.session("s2", queued(9), copied, call("m2", 60_000, second=10))
    facts = {key: line.session for key, line in lines(report(machine, "session")).items()}
    assert {key: (each and each.first, each and each.last) for key, each in facts.items()} == {
        "s1": (NOON, NOON),
        "s2": (NOON + 10, NOON + 10),
    }


def test_session_in_two_files_has_the_times_of_both(machine: Machine) -> None:
    """A subagent may outlive the main thread."""
    machine.session("s1", call("m1"), call("m2", second=5))
    machine.subagent("s1", "a1", call("m3", second=30, **subagent_fields("a1")))
    facts = lines(report(machine, "session"))["s1"].session
    assert facts is not None
    assert (facts.first, facts.last) == (NOON, NOON + 30)
