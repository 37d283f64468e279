"""The transcript of a run: which one it is, and what is new in it."""

import os
import shutil
from pathlib import Path

import pytest

from brimline.events import MAIN
from brimline.run.transcript_locator import RunClues, TranscriptLocator
from brimline.survey.files import find_session, load_session
from brimline.transcripts.source import Places, parse_time

from .homes import PROJECT, home_of

ID = "00000001-0000-4000-8000-000000000001"
BEGAN = parse_time("2026-01-02T03:04:00Z") or 0.0
"""Before every recorded call."""
AFTER = parse_time("2026-01-03T00:00:00Z") or 0.0
"""After every recorded call, and before the files were written here."""


def follower(
    home: Path, agent: str, *command: str, folder: str = PROJECT, since: float = BEGAN
) -> TranscriptLocator:
    """One that looks in a home."""
    return TranscriptLocator(RunClues(agent, Places(home, {}), folder, since, command))


def found(by: TranscriptLocator, session: str | None = None, last: bool = True) -> str | None:
    """The session that it finds."""
    by.read_new(session, last)
    return by.session.id if by.session else None


@pytest.mark.parametrize("agent", ["claude", "codex", "pi", "gemini", "opencode"])
def test_in_its_folder(agent: str, tmp_path: Path) -> None:
    """The transcript that was written since, of a session that began since, in our folder."""
    home = home_of(agent, "tool-loop", tmp_path)
    assert found(follower(home, agent)) is not None
    assert found(follower(home, agent, folder="/elsewhere")) is None


def test_written_before(tmp_path: Path) -> None:
    """A file that was not written since the run began is not its."""
    home = home_of("claude", "tool-loop", tmp_path)
    for path in home.rglob("*.jsonl"):
        os.utime(path, (BEGAN - 10, BEGAN - 10))
    assert found(follower(home, "claude")) is None


def test_began_before(tmp_path: Path) -> None:
    """A session with calls of before is another's, unless the command goes on with one."""
    home = home_of("claude", "tool-loop", tmp_path)
    middle = parse_time("2026-01-02T03:04:06.300Z") or 0.0
    assert found(follower(home, "claude", "claude", "-p", since=middle)) is None
    assert found(follower(home, "claude", "claude", "-p", "-c", since=middle)) == ID
    assert found(follower(home, "claude", "claude", "--continue", since=AFTER)) is None


def test_named_in_the_command(tmp_path: Path) -> None:
    """A session that the command names is the one, wherever it was."""
    home = home_of("claude", "tool-loop", tmp_path)
    for words in (["--resume", ID], [f"--resume={ID}"]):
        by = follower(home, "claude", *words, folder="/elsewhere", since=AFTER)
        assert found(by) == ID


def test_named_in_the_stream(tmp_path: Path) -> None:
    """A session that the stream named is the one; another is not taken for it."""
    home = home_of("codex", "tool-loop", tmp_path)
    assert found(follower(home, "codex", folder="/elsewhere"), ID) == ID
    assert found(follower(home, "codex"), "another") is None


def test_newest_of_several(tmp_path: Path) -> None:
    """Of several the newest is taken."""
    home = home_of("claude", "tool-loop", tmp_path)
    (first,) = home.rglob("*.jsonl")
    second = first.with_name("0000000b-0000-4000-8000-00000000000b.jsonl")
    second.write_bytes(first.read_bytes().replace(ID.encode(), second.stem.encode()))
    os.utime(first, (AFTER, AFTER))
    assert found(follower(home, "claude")) == second.stem
    os.utime(second, (AFTER - 9, AFTER - 9))
    assert found(follower(home, "claude")) == ID


@pytest.mark.parametrize("agent", ["claude", "codex", "pi"])
def test_reads_on(agent: str, tmp_path: Path) -> None:
    """Looking again and again while it grows is the same as looking once at the end."""
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
    assert by.session == load_session(find_session(Places(home, {}), ID, [agent])).session


@pytest.mark.parametrize(
    ("agent", "scene"), [("claude", "subagent-background"), ("codex", "subagent")]
)
def test_subagents(agent: str, scene: str, tmp_path: Path) -> None:
    """The last look also reads the subagents' files, each as a thread of its own."""
    by = follower(home_of(agent, scene, tmp_path), agent)
    by.read_new(ID)
    assert by.session is not None
    assert list(by.session.threads) == [MAIN]
    by.read_new(ID, last=True)
    assert len(by.session.threads) == 2
    assert by.session.project == PROJECT


def test_nothing_there(tmp_path: Path) -> None:
    """Without a home, a folder or a file there is nothing to find, and no error."""
    for agent in ("claude", "codex", "pi", "gemini", "opencode"):
        assert found(follower(tmp_path / "none", agent)) is None


def test_file_that_goes_away(tmp_path: Path) -> None:
    """A transcript that is gone later tells nothing more, and is no error."""
    home = home_of("claude", "tool-loop", tmp_path)
    by = follower(home, "claude")
    assert found(by, last=False) == ID
    shutil.rmtree(home)
    assert found(by, last=True) == ID
    assert by.session is not None
    assert len(by.session.threads[MAIN].calls) == 3


def test_database_that_is_none(tmp_path: Path) -> None:
    """What cannot be read tells nothing."""
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database")
    assert found(follower(tmp_path, "opencode")) is None
    assert found(follower(tmp_path, "opencode"), "ses_1") is None
