"""Finding the transcript of a run, and its new records."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from brimline.agents.transcripts.source import Places, parse_time
from brimline.context.events import MAIN
from brimline.run.run_state import RunClues, TranscriptLocator
from brimline.sessions.files import find_session, load_session

from .homes import PROJECT, home_of

ID = "00000001-0000-4000-8000-000000000001"
BEGAN = parse_time("2026-01-02T03:04:00Z") or 0.0  # before every recorded call
# After every recorded call, and before the files were written here.
AFTER = parse_time("2026-01-03T00:00:00Z") or 0.0


def follower(
    home: Path, agent: str, *command: str, folder: str = PROJECT, since: float = BEGAN
) -> TranscriptLocator:
    return TranscriptLocator(RunClues(agent, Places(home, {}), folder, since, command))


def found_session(
    by: TranscriptLocator, session: str | None = None, last: bool = True
) -> str | None:
    """The session that it finds."""
    by.read_new(session, last)
    return by.session.id if by.session else None


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "pi", "gemini", "opencode"])
def test_transcript_in_folder_is_found(agent: str, tmp_path: Path) -> None:
    home = home_of(agent, "tool-loop", tmp_path)
    assert found_session(follower(home, agent)) is not None
    assert found_session(follower(home, agent, folder="/elsewhere")) is None


def test_transcript_written_before_run_is_skipped(tmp_path: Path) -> None:
    home = home_of("claude", "tool-loop", tmp_path)
    for path in home.rglob("*.jsonl"):
        os.utime(path, (BEGAN - 10, BEGAN - 10))
    assert found_session(follower(home, "claude")) is None


def test_session_started_before_run_is_skipped(tmp_path: Path) -> None:
    """Unless the command resumes it."""
    home = home_of("claude", "tool-loop", tmp_path)
    middle = parse_time("2026-01-02T03:04:06.300Z") or 0.0
    assert found_session(follower(home, "claude", "claude", "-p", since=middle)) is None
    assert found_session(follower(home, "claude", "claude", "-p", "-c", since=middle)) == ID
    assert found_session(follower(home, "claude", "claude", "--continue", since=AFTER)) is None


def test_session_named_in_command_is_found(tmp_path: Path) -> None:
    home = home_of("claude", "tool-loop", tmp_path)
    for words in (["--resume", ID], [f"--resume={ID}"]):
        by = follower(home, "claude", *words, folder="/elsewhere", since=AFTER)
        assert found_session(by) == ID


def test_session_named_in_stream_is_found(tmp_path: Path) -> None:
    home = home_of("codex", "tool-loop", tmp_path)
    assert found_session(follower(home, "codex", folder="/elsewhere"), ID) == ID
    assert found_session(follower(home, "codex"), "another") is None


def test_newest_transcript_is_taken(tmp_path: Path) -> None:
    home = home_of("claude", "tool-loop", tmp_path)
    (first,) = home.rglob("*.jsonl")
    second = first.with_name("0000000b-0000-4000-8000-00000000000b.jsonl")
    second.write_bytes(first.read_bytes().replace(ID.encode(), second.stem.encode()))
    os.utime(first, (AFTER, AFTER))
    assert found_session(follower(home, "claude")) == second.stem
    os.utime(second, (AFTER - 9, AFTER - 9))
    assert found_session(follower(home, "claude")) == ID


@pytest.mark.parametrize("agent", ["claude", "codex", "pi"])
def test_incremental_reading_equals_one_reading_at_the_end(agent: str, tmp_path: Path) -> None:
    home = home_of(agent, "auto-compact", tmp_path)
    (path,) = home.rglob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"")
    by = follower(home, agent)
    for line in lines:
        with path.open("ab") as file:
            file.write(line)
        by.read_new(ID)
    assert by.session is not None
    read_at_once = load_session(find_session(Places(home, {}), ID, [agent])).session
    assert by.session == msgspec.structs.replace(read_at_once, title=None)  # a run needs no title


@pytest.mark.parametrize(
    ("agent", "scene"), [("claude", "subagent-background"), ("codex", "subagent")]
)
def test_last_read_includes_subagents(agent: str, scene: str, tmp_path: Path) -> None:
    by = follower(home_of(agent, scene, tmp_path), agent)
    by.read_new(ID)
    assert by.session is not None
    assert list(by.session.threads) == [MAIN]
    by.read_new(ID, last=True)
    assert len(by.session.threads) == 2
    assert by.session.project == PROJECT


def test_no_transcript_is_no_error(tmp_path: Path) -> None:
    for agent in ("claude", "codex", "copilot", "pi", "gemini", "opencode"):
        assert found_session(follower(tmp_path / "none", agent)) is None


def test_removed_transcript_is_no_error(tmp_path: Path) -> None:
    home = home_of("claude", "tool-loop", tmp_path)
    by = follower(home, "claude")
    assert found_session(by, last=False) == ID
    shutil.rmtree(home)
    assert found_session(by, last=True) == ID
    assert by.session is not None
    assert len(by.session.threads[MAIN].calls) == 3


def test_invalid_database_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database")
    assert found_session(follower(tmp_path, "opencode")) is None
    assert found_session(follower(tmp_path, "opencode"), "ses_1") is None
