"""A file is replaced as a whole or not at all, and nothing is left beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brimline.files.atomic_file import find_drafts, replace_file, write_draft

FILL_DISK = """
import resource, signal, sys
from pathlib import Path
from brimline.files.atomic_file import replace_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    replace_file(Path(sys.argv[1]), b"x" * 2000)
except OSError as error:
    print(error.strerror)
"""


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_replaced_file_has_mode_0600_under_any_umask(
    tmp_path: Path, umask: int, sync: bool
) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    before = os.umask(umask)
    try:
        replace_file(path, b"new", sync=sync)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o600
    assert os.listdir(tmp_path) == ["state"]


def test_full_disk_keeps_the_old_content_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    words = [sys.executable, "-c", FILL_DISK, str(path)]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert output == "File too large\n"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_failed_rename_removes_draft(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(path, b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_draft_has_the_mode_of_the_file_it_replaces_unless_private(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_bytes(b"")
    path.chmod(0o754)
    draft = write_draft(path, b"new", private=False, like=path)
    private = write_draft(path, b"new", like=path)
    assert [mode_of(draft), mode_of(private)] == [0o754, 0o700]
    assert sorted(find_drafts(path)) == sorted([draft, private])


def test_draft_of_a_new_file_follows_the_umask_unless_private(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    before = os.umask(0o027)
    try:
        draft = write_draft(path, b"new", private=False, like=path)
    finally:
        os.umask(before)
    assert mode_of(draft) == 0o640


def test_file_name_is_not_used_as_a_pattern(tmp_path: Path) -> None:
    write_draft(tmp_path / "ab", b"")
    assert find_drafts(tmp_path / "[a]b") == []
    draft = write_draft(tmp_path / "[a]b", b"")
    assert find_drafts(tmp_path / "[a]b") == [draft]
