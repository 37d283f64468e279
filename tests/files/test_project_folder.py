"""Folders of projects, as transcripts and hooks name them."""

from pathlib import Path

from brimline.daemon.tmux.pane import find_pane
from brimline.files.project_folder import is_within, resolve_path
from brimline.install.manifest import find_status_line


def test_text_that_is_no_path_is_an_error(tmp_path: Path) -> None:
    """A transcript may name any text as its folder: it is no error, and in no folder."""
    text = f"{tmp_path}\0b"
    assert resolve_path(text) == text
    assert not is_within(text, str(tmp_path))
    assert not is_within(str(tmp_path), text)
    assert find_status_line(tmp_path, text) is None
    assert find_pane("claude", text, {}, 1) is None


def test_link_is_another_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert resolve_path(str(tmp_path / "link")) == str(tmp_path.resolve())
    assert is_within(str(tmp_path / "link" / "below"), str(tmp_path))
