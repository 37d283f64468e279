"""A client whose format changed is reported, not read as a session without calls."""

from pathlib import Path

import pytest

from brimline.agents.transcripts.source import Places, Tally, Transcript
from brimline.context.events import Call
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.sessions import index as transcript_index
from brimline.sessions.files import SessionFiles, find_transcripts, load_session
from brimline.sessions.format_drift import DriftedFile, describe_drift, has_drifted
from brimline.sessions.index import TranscriptIndex
from drifted_homes import CHANGES, RECORDED, Change, write_home


def transcript_of(agent: str, home: Path, change: Change | None) -> Transcript:
    """A copy of a recorded transcript in which the format changed."""
    write_home(agent, home, change)
    (transcript,) = find_transcripts(Places(home=home, env={}), [agent])
    return transcript


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("agent", RECORDED)
def test_changed_format_is_reported_at_every_run(
    agent: str, change: Change, tmp_path: Path
) -> None:
    transcript = transcript_of(agent, tmp_path / "home", change)
    (problem,) = load_session(SessionFiles(agent, "", (transcript,))).problems
    assert problem.startswith("Brimline does not understand this version of ")
    assert transcript.path in problem
    for _ in range(2):
        index = TranscriptIndex.load(tmp_path / "state")
        index.update([transcript])
        index.save()
        assert index.problems == [problem]


@pytest.mark.parametrize("agent", RECORDED)
def test_known_format_is_not_reported(agent: str, tmp_path: Path) -> None:
    transcript = transcript_of(agent, tmp_path / "home", None)
    assert load_session(SessionFiles(agent, "", (transcript,))).problems == ()
    index = TranscriptIndex.load(tmp_path / "state")
    index.update([transcript])
    assert index.problems == []


def test_changed_format_at_the_end_of_a_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_index, "TAILS_ABOVE_BYTES", 0)
    transcript = transcript_of("claude", tmp_path / "home", "usage renamed")
    index = TranscriptIndex.load(tmp_path / "state")
    index.update([transcript], tails=True)
    assert not index.is_fully_read(transcript)
    assert len(index.problems) == 1


@pytest.mark.parametrize(
    ("tally", "drifted"),
    [
        (Tally(records=100, unknown=10), True),
        (Tally(records=100, unknown=5, malformed=5), True),
        (Tally(records=100, unknown=9), False),
        (Tally(records=1000, unknown=50), False),
    ],
)
def test_few_unknown_records_are_no_drift(tally: Tally, drifted: bool) -> None:
    call = Call(id="m1", usage=Usage(1, 2, 3, 4))
    assert has_drifted(fold(Session(), [call]), tally) is drifted


@pytest.mark.parametrize(
    ("tally", "drifted"),
    [
        (Tally(records=20, unknown=3), True),
        (Tally(records=20, unknown=2), False),
        (Tally(records=19, unknown=9), False),
        (Tally(records=5, malformed=3), True),
        (Tally(records=5, malformed=2), False),
    ],
)
def test_fewer_unknown_records_are_drift_without_a_call(tally: Tally, drifted: bool) -> None:
    assert has_drifted(Session(), tally) is drifted


def test_newest_file_is_named_and_others_are_counted() -> None:
    files = [
        DriftedFile("a", 1.0, "0.1"),
        DriftedFile("b", 2.0, "0.2"),
        DriftedFile("c", 1.5, None),
    ]
    assert describe_drift("pi", files) == (
        "Brimline does not understand this version of Pi (0.2): b and 2 other files cannot be read "
        "fully, and its figures may be missing. Update Brimline."
    )
    same = [DriftedFile("a.db", 1.0, None), DriftedFile("a.db", 2.0, None)]
    assert "version of opencode: a.db cannot" in describe_drift("opencode", same)
