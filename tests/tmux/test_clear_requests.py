"""Intents on the disk: whole or not there, one for each session."""

from pathlib import Path

import pytest

from brimline.observations import Pane
from brimline.tmux.clear_requests import (
    KEEP_OUTCOME_S,
    ClearRequest,
    load_requests,
    remove_old_requests,
    save_request,
)

PANE = Pane("/tmp/tmux-0/default", "%3")


def intent(session: str = "s1", at: float = 1.0) -> ClearRequest:
    """One that was asked for at a time."""
    return ClearRequest(session, "claude", PANE, "/work/notes.md", at)


def test_kept_is_what_was_kept(tmp_path: Path) -> None:
    """What is read is what was written; the last one of a session counts."""
    save_request(tmp_path, intent("s2", 2.0))
    save_request(tmp_path, intent("s1", 1.0))
    save_request(tmp_path, intent("s2", 3.0))
    assert load_requests(tmp_path) == [intent("s1", 1.0), intent("s2", 3.0)]
    assert load_requests(tmp_path, "s2") == [intent("s2", 3.0)]
    assert load_requests(tmp_path, "s3") == []


def test_private(tmp_path: Path) -> None:
    """Nobody else can read it, and nothing half-written is left."""
    save_request(tmp_path, intent())
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("session", ["../../etc/x", "a/b", "", "x" * 300, "a b", "é\n"])
def test_session_names_no_other_place(tmp_path: Path, session: str) -> None:
    """Whatever a session is called, its file is in the state folder."""
    save_request(tmp_path, intent(session))
    assert [path.parent for path in tmp_path.iterdir()] == [tmp_path]
    assert load_requests(tmp_path, session) == [intent(session)]


def test_broken_file_is_none(tmp_path: Path) -> None:
    """A file that is no intent is passed over."""
    (tmp_path / "clear-x.json").write_text("{")
    save_request(tmp_path, intent())
    assert load_requests(tmp_path) == [intent()]


def test_tidy(tmp_path: Path) -> None:
    """What ended long ago is forgotten, what a killed process left too; what is open stays."""
    save_request(tmp_path, ClearRequest("old", "claude", PANE, "/n", 1.0, "done", since=1.0))
    save_request(tmp_path, ClearRequest("open", "claude", PANE, "/n", 1.0, "clearing", since=1.0))
    save_request(
        tmp_path, ClearRequest("new", "claude", PANE, "/n", 2.0, "failed", since=KEEP_OUTCOME_S)
    )
    (tmp_path / ".clear-12345678").write_text("{")
    remove_old_requests(tmp_path, KEEP_OUTCOME_S + 2.0)
    assert [one.session for one in load_requests(tmp_path)] == ["open", "new"]
    assert len(list(tmp_path.iterdir())) == 2
