"""A glance at the sessions: which are active, what their threads hold."""

from brimline.events import MAIN
from brimline.survey.index import TAILS_ABOVE_BYTES
from brimline.survey.status import SessionStatus, StatusSurvey, survey_sessions
from brimline.windows import NO_OVERRIDES, Overrides

from .machine import NOON, Machine, call, compaction, of_agent, told
from .test_index import with_hole


def looked(
    machine: Machine, since: float | None = None, overrides: Overrides = NO_OVERRIDES
) -> StatusSurvey:
    """All sessions of Claude Code on a machine."""
    return survey_sessions(machine.places, ["claude"], since, overrides, machine.cache)


def only(found: StatusSurvey) -> SessionStatus:
    """The only session."""
    assert len(found.sessions) == 1
    return found.sessions[0]


def test_glance(machine: Machine) -> None:
    """A session with what its thread holds, its window and its project."""
    machine.session("s1", told(), call("m1", 50_000), call("m2", 90_000, second=5))
    glance = only(looked(machine))
    assert (glance.agent, glance.session, glance.project) == ("claude", "s1", "/project")
    assert (glance.modified, glance.subagents) == (NOON, ())
    row = glance.main
    assert (row.thread, row.model, row.cycle) == (MAIN, "claude-sonnet-4-5", 0)
    assert (row.reading.sent, row.reading.percent) == (90_000, 45.0)
    assert row.reading.at == NOON + 5


def test_after_a_compaction(machine: Machine) -> None:
    """What is held is unknown, the cycle is the next."""
    machine.session("s1", call("m1", 160_000), compaction(5))
    row = only(looked(machine)).main
    assert (row.reading.sent, row.reading.percent, row.reading.state) == (None, None, "unknown")
    assert row.cycle == 1


def test_subagents(machine: Machine) -> None:
    """Subagents are below their session, the latest first; one that only compacts is not shown."""
    machine.session("s1", call("m1"))
    for second, name in enumerate(("a1", "a2", "acompact-1")):
        machine.subagent("s1", name, call(name, 9_000, second=second, **of_agent(name)))
    glance = only(looked(machine))
    assert [row.thread for row in glance.threads] == [MAIN, "a2", "a1"]


def test_older_subagents(machine: Machine) -> None:
    """A subagent's file beside the sessions is shown below the session that its records name."""
    machine.session("s1", call("m1"))
    machine.loose("a1", call("m2", 9_000, **of_agent("a1")))
    assert [row.thread for row in only(looked(machine)).threads] == [MAIN, "a1"]


def test_since(machine: Machine) -> None:
    """Only sessions that were active since then; a subagent that is keeps its session there."""
    machine.session("s1", call("m1"))
    assert len(looked(machine, NOON).sessions) == 1
    found = looked(machine, NOON + 1)
    assert (found.sessions, found.transcripts) == ([], 1)


def test_no_call(machine: Machine) -> None:
    """A session without a call is not shown."""
    machine.session("s1", told())
    machine.session("s2")
    assert looked(machine).sessions == []
    assert looked(machine).problems == []


def test_overrides(machine: Machine) -> None:
    """What the user says about windows and limits holds."""
    machine.session("s1", call("m1", 50_000))
    told_us = Overrides({"claude": 100_000}, {"claude-sonnet-4-5": 80_000})
    reading = only(looked(machine, overrides=told_us)).main.reading
    assert (reading.percent, reading.limit and reading.limit.tokens) == (50.0, 80_000)


def test_client_settings(machine: Machine) -> None:
    """What the user told the client holds for its sessions."""
    (machine.home / ".claude" / "settings.json").write_text('{"autoCompactEnabled": false}')
    machine.session("s1", call("m1", 50_000))
    limit = only(looked(machine)).main.reading.limit
    assert limit is not None
    assert limit.origin == "off"


def test_large_files(machine: Machine) -> None:
    """Of a machine with much on it only the ends are read: the cycle is not known."""
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m1", 90_000), told())
    row = only(looked(machine)).main
    assert (row.reading.sent, row.cycle) == (90_000, None)
