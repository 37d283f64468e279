"""A client whose format changed is reported, not read as a session without calls."""

from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.survey.files import SessionFiles, load_session
from brimline.survey.format_drift import describe_drift, has_drifted
from brimline.survey.index import TranscriptIndex
from brimline.tracker import Session
from brimline.transcripts.source import Places, Tally, Transcript

SECOND_RECORD = b"token_usage_record"  # Codex writes each usage twice
FIXTURES = Path(__file__).parent.parent / "fixtures"


def copied_transcript(agent: str, home: Path, old: bytes = b"", new: bytes = b"") -> Transcript:
    """A copy of a recorded transcript in which a field has another name."""
    places = Places(home=FIXTURES / agent / "tool-loop" / "home", env={})
    (recorded,) = get_agent(agent).transcripts(places)
    path = home / f"{agent}.jsonl"
    data = Path(recorded.path).read_bytes()
    assert old in data
    data = data.replace(old, new).replace(SECOND_RECORD, b"renamed") if old else data
    path.write_bytes(data)
    return Transcript(agent, str(path), path.stat().st_mtime, path.stat().st_size)


@pytest.mark.parametrize(
    ("agent", "old", "new"),
    [
        ("codex", b'"info":', b'"details":'),
        ("pi", b'"usage":', b'"spending":'),
        ("gemini", b'"tokens":', b'"counts":'),
    ],
)
def test_renamed_usage_is_reported_at_every_run(
    agent: str, old: bytes, new: bytes, tmp_path: Path
) -> None:
    transcript = copied_transcript(agent, tmp_path, old, new)
    expected = describe_drift(agent, [transcript.path])
    assert load_session(SessionFiles(agent, "", (transcript,))).problems == (expected,)
    for _ in range(2):
        index = TranscriptIndex.load(tmp_path / "state")
        index.update([transcript])
        index.save()
        assert index.problems == [expected]


@pytest.mark.parametrize("agent", ["codex", "pi", "gemini"])
def test_known_format_is_not_reported(agent: str, tmp_path: Path) -> None:
    transcript = copied_transcript(agent, tmp_path)
    assert load_session(SessionFiles(agent, "", (transcript,))).problems == ()


@pytest.mark.parametrize(
    ("tally", "drifted"),
    [
        (Tally(records=100, unknown=10), True),
        (Tally(records=100, unknown=5, malformed=5), True),
        (Tally(records=100, unknown=9), False),
        (Tally(records=1000, unknown=50), False),
        (Tally(malformed=20), False),
    ],
)
def test_few_unknown_records_are_no_drift(tally: Tally, drifted: bool) -> None:
    assert has_drifted(Session(), tally) is drifted


def test_other_files_are_counted() -> None:
    assert "a.jsonl and 2 other files cannot" in describe_drift("pi", ["c", "a.jsonl", "b"])
