"""Clear requests on disk: complete or absent, one per session."""

from pathlib import Path

import pytest

from brimline.agents.observations import Pane
from brimline.daemon.tmux.clear_requests import (
    KEEP_OUTCOME_S,
    ClearRequest,
    load_requests,
    remove_old_requests,
    save_request,
)

PANE = Pane("/tmp/tmux-0/default", "%3")


def request(session: str = "s1", at: float = 1.0) -> ClearRequest:
    """A clear request of a given time."""
    return ClearRequest(session, "claude", PANE, "/work/notes.md", at)


def test_loaded_request_is_the_last_saved_one(tmp_path: Path) -> None:
    save_request(tmp_path, request("s2", 2.0))
    save_request(tmp_path, request("s1", 1.0))
    save_request(tmp_path, request("s2", 3.0))
    assert load_requests(tmp_path) == [request("s1", 1.0), request("s2", 3.0)]
    assert load_requests(tmp_path, "s2") == [request("s2", 3.0)]
    assert load_requests(tmp_path, "s3") == []


def test_request_is_readable_by_its_owner_only_and_written_whole(tmp_path: Path) -> None:
    save_request(tmp_path, request())
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("session", ["../../etc/x", "a/b", "", "x" * 300, "a b", "é\n"])
def test_any_session_id_stays_inside_the_state_folder(tmp_path: Path, session: str) -> None:
    save_request(tmp_path, request(session))
    assert [path.parent for path in tmp_path.iterdir()] == [tmp_path]
    assert load_requests(tmp_path, session) == [request(session)]


def test_broken_file_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "clear-x.json").write_text("{")
    save_request(tmp_path, request())
    assert load_requests(tmp_path) == [request()]


def test_old_requests_and_temporary_files_are_deleted(tmp_path: Path) -> None:
    save_request(tmp_path, ClearRequest("old", "claude", PANE, "/n", 1.0, "done", since=1.0))
    save_request(tmp_path, ClearRequest("open", "claude", PANE, "/n", 1.0, "clearing", since=1.0))
    save_request(
        tmp_path, ClearRequest("new", "claude", PANE, "/n", 2.0, "failed", since=KEEP_OUTCOME_S)
    )
    (tmp_path / ".clear-12345678").write_text("{")
    remove_old_requests(tmp_path, KEEP_OUTCOME_S + 2.0)
    assert [loaded.session for loaded in load_requests(tmp_path)] == ["open", "new"]
    assert len(list(tmp_path.iterdir())) == 2
