"""Private folders: 0700 under any umask, and never one that other users could change."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brimline.errors import UnsafeFolder
from brimline.files.folder_safety import make_private_folder
from brimline.files.private_folder import create_private_folder

USER, OTHER_USER = 54_321, 54_322  # two ordinary users; neither needs an account


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int) -> Generator[None]:
    """Change the umask for a while."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("make", [create_private_folder, make_private_folder])
@pytest.mark.usefixtures("without_privileges")
def test_new_folders_are_private_under_any_umask(
    tmp_path: Path, mask: int, make: Callable[[Path], None]
) -> None:
    """Existing folders keep their mode."""
    tmp_path.chmod(0o755)
    with umask(mask):
        make(tmp_path / "one" / "two" / "three")
    names = ("one", "one/two", "one/two/three")
    assert {name: mode_of(tmp_path / name) for name in names} == dict.fromkeys(names, 0o700)
    assert mode_of(tmp_path) == 0o755


def test_folder_that_others_can_write_is_fixed_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    make_private_folder(folder)
    assert mode_of(folder) == 0o755
    assert f"{folder}: removed the permissions 022 of other users" in caplog.text
    caplog.clear()
    make_private_folder(folder)
    assert caplog.text == ""


def test_strict_folder_has_no_permissions_for_others(tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o755)
    make_private_folder(folder, strict=True)
    assert mode_of(folder) == 0o700
    (tmp_path / "link").symlink_to(folder)
    make_private_folder(tmp_path / "link")
    with pytest.raises(UnsafeFolder, match="it is a link"):
        make_private_folder(tmp_path / "link", strict=True)


@pytest.mark.parametrize("depth", ["state", "below/state", "link/state"])
@pytest.mark.parametrize("exists", [False, True])
def test_parent_that_others_can_write_is_refused(tmp_path: Path, depth: str, exists: bool) -> None:
    """Others could rename the folder and put their own in its place."""
    parent = tmp_path / "parent"
    (parent / "below").mkdir(parents=True)
    (parent / "link").symlink_to("below")
    if exists:
        (parent / depth).mkdir()
    parent.chmod(0o777)
    with pytest.raises(UnsafeFolder, match="other users can replace it") as refused:
        make_private_folder(parent / depth)
    assert f"`chmod go-w {parent}`" in (refused.value.hint or "")
    assert (parent / depth).exists() == exists


def test_link_into_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "public" / "target").mkdir(parents=True)
    (tmp_path / "public").chmod(0o777)
    (tmp_path / "state").symlink_to(tmp_path / "public" / "target")
    with pytest.raises(UnsafeFolder, match="other users can replace it"):
        make_private_folder(tmp_path / "state")


def test_sticky_parent_is_accepted(tmp_path: Path) -> None:
    """In a folder such as /tmp others cannot rename our files."""
    tmp_path.chmod(0o1777)
    make_private_folder(tmp_path / "state")
    assert mode_of(tmp_path / "state") == 0o700


def test_file_in_place_of_a_folder_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(OSError, match=str(tmp_path / "file")):
            make_private_folder(path)


# Two real users.


@pytest.fixture
def shared() -> Iterator[Path]:
    """A sticky folder that every user can reach, as /tmp."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users: run this test as root")
    folder = Path(tempfile.mkdtemp(prefix="brimline-test-", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def as_user(user: int, work: Callable[[], object]) -> str:
    """The error of work in another user's process, or an empty text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            work()
        except BaseException as error:  # noqa: BLE001 - it is shown where the test is
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        message = pipe.read().decode()
    os.waitpid(child, 0)
    return message


def test_folder_of_another_user_is_refused(shared: Path) -> None:
    folder = shared / "state"
    assert as_user(OTHER_USER, lambda: folder.mkdir(mode=0o777)) == ""
    folder.chmod(0o777)
    error = as_user(USER, lambda: make_private_folder(folder))
    expected = f"it belongs to another user (expected uid {USER}, got {OTHER_USER})"
    assert error.startswith(f"UnsafeFolder: {folder} is not safe to use: {expected}")
    assert "BRIMLINE_STATE_DIR" in error
    assert mode_of(folder) == 0o777


def test_link_of_another_user_is_refused(shared: Path) -> None:
    """Its owner can change its target."""
    home = shared / "home"
    assert as_user(USER, lambda: make_private_folder(home / "state")) == ""
    assert as_user(OTHER_USER, lambda: (shared / "link").symlink_to(home)) == ""
    error = as_user(USER, lambda: make_private_folder(shared / "link" / "state"))
    assert "is a link of another user" in error


def test_parent_of_another_user_is_refused(shared: Path) -> None:
    """The owner of a folder can rename what others have in it."""
    parent = shared / "theirs"
    assert as_user(OTHER_USER, lambda: (parent.mkdir(), parent.chmod(0o1777))) == ""
    error = as_user(USER, lambda: make_private_folder(parent / "state"))
    assert f"belongs to another user (uid {OTHER_USER})" in error


def test_parent_owned_by_root_is_accepted(shared: Path) -> None:
    assert as_user(USER, lambda: make_private_folder(shared / "mine" / "state")) == ""
    assert mode_of(shared / "mine" / "state") == 0o700


def test_group_writable_parent_is_refused_unless_the_group_is_roots(shared: Path) -> None:
    parent = shared / "parent"
    parent.mkdir()
    os.chown(parent, USER, OTHER_USER)
    parent.chmod(0o770)
    assert "other users can replace it" in as_user(USER, lambda: make_private_folder(parent / "s"))
    os.chown(parent, USER, 0)
    parent.chmod(0o770)
    assert as_user(USER, lambda: make_private_folder(parent / "s")) == ""
