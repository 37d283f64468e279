"""The cost of one session, and which of its calls are another session's."""

import os
from pathlib import Path

import pytest

from brimline.agents.transcripts.source import Tally, begun_at
from brimline.context.tracker import Session
from brimline.context.window import NO_OVERRIDES
from brimline.sessions import index
from brimline.sessions.files import LoadedSession, find_session, load_session
from brimline.sessions.session_cost import find_copied_calls, find_session_cost
from brimline.sessions.status import survey_sessions

from .machine import Machine, call, clock, packed, user_record


def queued(second: int) -> bytes:
    return packed({"type": "queue-operation", "timestamp": clock(second)})


def test_call_in_two_files_of_a_session_costs_once(machine: Machine) -> None:
    machine.session("s1", call("m1"), call("m2", second=1), folder="-one")
    machine.session("s1", call("m2", second=1), call("m3", second=2), folder="-two")
    machine.session("s2", call("m4"), call("m5"), call("m6"), folder="-other")
    costs = [
        find_session_cost(load_session(find_session(machine.places, id)), machine.places,
                          machine.cache).cost
        for id in ("s1", "s2")
    ]  # fmt: skip
    assert costs[0] == pytest.approx(costs[1])


def test_session_without_calls_or_files_has_no_copies(machine: Machine) -> None:
    machine.session("s1", queued(9), user_record())
    loaded = load_session(find_session(machine.places, "s1"))
    streamed = LoadedSession(Session(agent="claude"), Tally())
    for each in (loaded, streamed):
        assert find_copied_calls(each, machine.places, machine.cache) == set()
    assert not machine.cache.exists()


@pytest.mark.parametrize(
    ("lines", "second"),
    [
        ([queued(5), user_record(second=1)], 5),
        ([user_record(second=1), queued(5)], 1),
        ([packed({"type": "mode"}), packed({"type": "mode"})], None),
        ([packed({"timestamp": "yesterday"})], None),
    ],
)
def test_file_was_begun_at_the_last_time_before_its_messages(
    machine: Machine, lines: list[bytes], second: int | None
) -> None:
    path = machine.session("s1", *lines)
    expected = None if second is None else begun_at(str(machine.session("s2", queued(second))))
    assert begun_at(str(path)) == expected


def test_missing_file_was_begun_at_no_time(tmp_path: Path) -> None:
    assert begun_at(str(tmp_path / "missing.jsonl")) is None


def listed(machine: Machine) -> dict[str, float | None]:
    """The cost of each session in a list, by files alone."""
    survey = survey_sessions(machine.places, ["claude"], None, NO_OVERRIDES, machine.cache)
    return {status.session: status.cost for status in survey.sessions}


def test_call_in_two_files_of_a_session_costs_once_in_a_list(machine: Machine) -> None:
    machine.session("s1", call("m1"), call("m2", second=1), folder="-one")
    machine.session("s1", call("m2", second=1), call("m3", second=2), folder="-two")
    machine.session("s2", call("m4"), call("m5"), call("m6"), folder="-other")
    for _ in range(2):  # also from the state file
        costs = listed(machine)
        assert costs["s1"] == pytest.approx(costs["s2"])


def test_fork_of_an_older_session_has_the_cost_of_its_own_calls_in_a_list(
    machine: Machine,
) -> None:
    original = [call("m1", second=1), call("m2", second=2)]
    machine.session("fork", queued(9), *original, call("m3", second=10))
    path = machine.session("original", *original)
    machine.session("one", call("m4"))
    os.utime(path, (1.0, 1.0))
    for since in (2.0, None):
        survey = survey_sessions(machine.places, ["claude"], since, NO_OVERRIDES, machine.cache)
        costs = {status.session: status.cost for status in survey.sessions}
        assert [each.session for each in survey.sessions if each.is_fork] == ["fork"]
        assert ("original" in costs) == (since is None)
        assert costs["fork"] == pytest.approx(costs["one"])


def test_session_that_was_not_read_whole_has_no_cost_in_a_list(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.session("s1", call("m1"))
    monkeypatch.setattr(index, "TAILS_ABOVE_BYTES", 0)
    assert listed(machine) == {"s1": None}


def test_fork_has_no_cost_if_there_is_too_much_to_read_for_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.session("fork", queued(9), call("m1", second=1), call("m3", second=10))
    listed(machine)
    machine.session("original", call("m1", second=1))
    monkeypatch.setattr(index, "TAILS_ABOVE_BYTES", 0)
    assert listed(machine) == {"fork": None, "original": None}
