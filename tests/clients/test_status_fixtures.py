"""`status` and `report` on what the real clients left behind, of each agent, without a client."""

from pathlib import Path

import pytest

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.context.window import NO_OVERRIDES
from brimline.sessions.files import find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import ReportFilter, build_report, summaries
from brimline.sessions.status import StatusSurvey, survey_sessions

from .fixture import load_fixture

SUBAGENTS = (
    "claude/subagent-sync",
    "codex/subagent",
    "copilot/subagent",
    "gemini/subagent",
    "opencode/subagent",
)
LOOPS = tuple(f"{agent}/tool-loop" for agent in agent_names())


def places_of(scene: str, tmp_path: Path) -> Places:
    """The home folder of a recorded scene."""
    client, _, name = scene.partition("/")
    return Places(load_fixture(client, name, tmp_path).last.home, {})


def survey_home(places: Places, tmp_path: Path) -> StatusSurvey:
    """Survey all sessions of a home folder."""
    return survey_sessions(places, agent_names(), None, NO_OVERRIDES, tmp_path / "cache")


@pytest.mark.parametrize("scene", LOOPS)
def test_session_is_listed_with_its_last_call(scene: str, tmp_path: Path) -> None:
    """Each agent's session is shown, with what its last call sent."""
    survey = survey_home(places_of(scene, tmp_path), tmp_path)
    assert (survey.problems, [g.agent for g in survey.sessions]) == ([], [scene.partition("/")[0]])
    reading = survey.sessions[0].main.reading
    assert reading.sent is not None
    assert reading.state == "measured"


@pytest.mark.parametrize("scene", SUBAGENTS)
def test_subagent_is_below_its_session(scene: str, tmp_path: Path) -> None:
    """A subagent is one thread below its session's own."""
    survey = survey_home(places_of(scene, tmp_path), tmp_path)
    assert [(g.main.thread, len(g.subagents)) for g in survey.sessions] == [(MAIN, 1)]


@pytest.mark.parametrize("scene", SUBAGENTS)
def test_report_counts_every_thread(scene: str, tmp_path: Path) -> None:
    """A report has one session, and the calls of its subagent too."""
    places = places_of(scene, tmp_path)
    transcripts = find_transcripts(places)
    index = TranscriptIndex.load(tmp_path / "cache")
    index.update(transcripts)
    index.dedupe_calls(transcripts, agent_names())
    total = build_report(summaries(index, transcripts), "session", ReportFilter()).total
    calls = sum(
        len(thread.calls)
        for transcript in transcripts
        if (session := index.session(transcript))
        for thread in session.threads.values()
    )
    assert (total.sessions, total.calls) == (1, calls)
    assert calls > 2
