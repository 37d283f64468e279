"""Which sessions are active, and the context of their threads."""

from brimline.context.events import MAIN
from brimline.context.window import NO_OVERRIDES, Overrides
from brimline.sessions.index import TAILS_ABOVE_BYTES
from brimline.sessions.status import SessionStatus, StatusSurvey, survey_sessions

from .machine import NOON, Machine, call, compaction, subagent_fields, user_record
from .test_index import with_hole


def survey(
    machine: Machine, since: float | None = None, overrides: Overrides = NO_OVERRIDES
) -> StatusSurvey:
    """The status of all sessions of Claude Code on a machine."""
    return survey_sessions(machine.places, ["claude"], since, overrides, machine.cache)


def only(result: StatusSurvey) -> SessionStatus:
    """The only session."""
    assert len(result.sessions) == 1
    return result.sessions[0]


def test_status_has_context_window_and_project(machine: Machine) -> None:
    machine.session("s1", user_record(), call("m1", 50_000), call("m2", 90_000, second=5))
    glance = only(survey(machine))
    assert (glance.agent, glance.session, glance.project) == ("claude", "s1", "/project")
    assert (glance.modified, glance.subagents) == (NOON, ())
    row = glance.main
    assert (row.thread, row.model, row.cycle) == (MAIN, "claude-sonnet-4-5", 0)
    assert (row.reading.sent, row.reading.percent) == (90_000, 45.0)
    assert row.reading.source == "transcript"
    assert row.reading.at == NOON + 5


def test_context_after_a_compaction_is_unknown_in_the_next_cycle(machine: Machine) -> None:
    machine.session("s1", call("m1", 160_000), compaction(5))
    row = only(survey(machine)).main
    assert (row.reading.sent, row.reading.percent, row.reading.state) == (None, None, "unknown")
    assert row.cycle == 1


def test_subagents_are_below_their_session_latest_first(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    for second, name in enumerate(("a1", "a2", "acompact-1")):
        machine.subagent("s1", name, call(name, 9_000, second=second, **subagent_fields(name)))
    glance = only(survey(machine))
    assert [row.thread for row in glance.threads] == [MAIN, "a2", "a1"]


def test_subagent_file_beside_the_sessions_belongs_to_the_session_it_names(
    machine: Machine,
) -> None:
    machine.session("s1", call("m1"))
    machine.older_subagent("a1", call("m2", 9_000, **subagent_fields("a1")))
    assert [row.thread for row in only(survey(machine)).threads] == [MAIN, "a1"]


def test_session_of_subagents_alone_has_an_unknown_main_thread(machine: Machine) -> None:
    machine.subagent("s1", "a1", call("m1", 9_000, **subagent_fields("a1")))
    machine.subagent("s2", "acompact-1", call("m2", 9_000, **subagent_fields("acompact-1")))
    glance = only(survey(machine))
    threads = [(row.thread, row.reading.sent) for row in glance.threads]
    assert threads == [(MAIN, None), ("a1", 9_000)]


def test_version_and_evidence_of_the_main_file_count_for_subagents(machine: Machine) -> None:
    model = "claude-opus-4-8"
    result = {"agentId": "a2", "resolvedModel": "claude-opus-4-6[1m]"}
    main = call("m1", version="2.1.197", model=model) + user_record(toolUseResult=result)
    machine.session("s1", main)
    machine.subagent(
        "s1", "a1", call("m2", version="2.1.325", model=model, **subagent_fields("a1"))
    )
    machine.subagent("s1", "a2", call("m3", model="claude-opus-4-6", **subagent_fields("a2")))
    windows = {
        row.thread: row.reading.window and row.reading.window.tokens
        for row in only(survey(machine)).threads
    }
    assert windows == {MAIN: 200_000, "a1": 200_000, "a2": 1_000_000}


def test_since_keeps_a_session_with_an_active_subagent(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    assert len(survey(machine, NOON).sessions) == 1
    result = survey(machine, NOON + 1)
    assert (result.sessions, len(result.ids)) == ([], 1)


def test_session_without_calls_is_left_out(machine: Machine) -> None:
    machine.session("s1", user_record())
    machine.session("s2")
    assert survey(machine).sessions == []
    assert survey(machine).problems == []


def test_user_settings_override_window_and_limit(machine: Machine) -> None:
    machine.session("s1", call("m1", 50_000))
    told_us = Overrides({"claude": 100_000}, {"claude-sonnet-4-5": 80_000})
    reading = only(survey(machine, overrides=told_us)).main.reading
    assert (reading.percent, reading.limit and reading.limit.tokens) == (50.0, 80_000)


def test_client_settings_override_window_and_limit(machine: Machine) -> None:
    (machine.home / ".claude" / "settings.json").write_text('{"autoCompactEnabled": false}')
    machine.session("s1", call("m1", 50_000))
    limit = only(survey(machine)).main.reading.limit
    assert limit is not None
    assert limit.origin == "off"


def test_cycle_is_unknown_when_only_the_ends_are_read(machine: Machine) -> None:
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m1", 90_000), user_record())
    row = only(survey(machine)).main
    assert (row.reading.sent, row.cycle) == (90_000, None)
    assert row.reading.source == "end of transcript"
