"""Intents on the disk: whole or not there, one for each session."""

from pathlib import Path

import pytest

from brimline.observations import Pane
from brimline.tmux.clear_requests import KEPT, Intent, keep, kept, tidy

PANE = Pane("/tmp/tmux-0/default", "%3")


def intent(session: str = "s1", at: float = 1.0) -> Intent:
    """One that was asked for at a time."""
    return Intent(session, "claude", PANE, "/work/notes.md", at)


def test_kept_is_what_was_kept(tmp_path: Path) -> None:
    """What is read is what was written; the last one of a session counts."""
    keep(tmp_path, intent("s2", 2.0))
    keep(tmp_path, intent("s1", 1.0))
    keep(tmp_path, intent("s2", 3.0))
    assert kept(tmp_path) == [intent("s1", 1.0), intent("s2", 3.0)]
    assert kept(tmp_path, "s2") == [intent("s2", 3.0)]
    assert kept(tmp_path, "s3") == []


def test_private(tmp_path: Path) -> None:
    """Nobody else can read it, and nothing half-written is left."""
    keep(tmp_path, intent())
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("session", ["../../etc/x", "a/b", "", "x" * 300, "a b", "é\n"])
def test_session_names_no_other_place(tmp_path: Path, session: str) -> None:
    """Whatever a session is called, its file is in the state folder."""
    keep(tmp_path, intent(session))
    assert [path.parent for path in tmp_path.iterdir()] == [tmp_path]
    assert kept(tmp_path, session) == [intent(session)]


def test_broken_file_is_none(tmp_path: Path) -> None:
    """A file that is no intent is passed over."""
    (tmp_path / "clear-x.json").write_text("{")
    keep(tmp_path, intent())
    assert kept(tmp_path) == [intent()]


def test_tidy(tmp_path: Path) -> None:
    """What ended long ago is forgotten, what a killed process left too; what is open stays."""
    keep(tmp_path, Intent("old", "claude", PANE, "/n", 1.0, "done", since=1.0))
    keep(tmp_path, Intent("open", "claude", PANE, "/n", 1.0, "clearing", since=1.0))
    keep(tmp_path, Intent("new", "claude", PANE, "/n", 2.0, "failed", since=KEPT))
    (tmp_path / ".clear-12345678").write_text("{")
    tidy(tmp_path, KEPT + 2.0)
    assert [one.session for one in kept(tmp_path)] == ["open", "new"]
    assert len(list(tmp_path.iterdir())) == 2
