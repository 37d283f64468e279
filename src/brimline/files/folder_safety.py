"""Refuse folders that other users could change or replace."""

import grp
import logging
import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from brimline.errors import UnsafeFolder
from brimline.files.private_folder import create_private_folder

LOGGER = logging.getLogger("brimline.folders")

ROOT_UID = 0
# In a user namespace (bubblewrap, a rootless container) the system's folders belong to this user.
# Outside of one it is an ordinary user, mostly called `nobody`.
OVERFLOW_UID = 65_534

_UID_MAP = "/proc/self/uid_map"
_WHOLE_UID_MAP = ["0", "0", "4294967295"]

TRUSTED_GID = 0
_OTHERS_ANY = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private_folder(path: Path, *, strict: bool = False) -> None:
    """Create a folder, or check an existing one: only this user may change what is in it.

    Write permission of others is removed with a warning, if `strict` every permission of others.
    UnsafeFolder if the folder is another user's, if others can replace it in one of the folders
    above, or if `strict` and it is a link.
    """
    path = Path(os.path.abspath(path))
    if strict and path.is_symlink():
        raise UnsafeFolder(str(path), "it is a link", f"Remove it: {_command('rm', path)}")
    check_parents(path)
    create_private_folder(path)
    status = path.stat()
    if status.st_uid != os.geteuid():
        reason = f"it belongs to another user (expected uid {os.geteuid()}, got {status.st_uid})"
        raise UnsafeFolder(str(path), reason, "Remove it, or set BRIMLINE_STATE_DIR to your own.")
    if unwanted := status.st_mode & (_OTHERS_ANY if strict else _OTHERS_WRITE):
        path.chmod(stat.S_IMODE(status.st_mode) & ~unwanted)
        LOGGER.warning("%s: removed the permissions %03o of other users", path, unwanted)


def check_parents(path: Path) -> None:
    """Raise UnsafeFolder if another user could put something else in the place of a path."""
    for place in (path, *path.parents):
        if place.is_symlink() and place.lstat().st_uid not in (ROOT_UID, os.geteuid()):
            hint = f"Remove it: {_command('rm', place)}"
            raise UnsafeFolder(str(path), f"{place} is a link of another user", hint)
    for parent in _real_parents(path):
        status = parent.stat()
        if status.st_uid not in _trusted_uids():
            reason = f"{parent}, which it is in, belongs to another user (uid {status.st_uid})"
            raise UnsafeFolder(str(path), reason, "Set BRIMLINE_STATE_DIR to a folder of your own.")
        if _others_may_rename_in(status):
            reason = f"other users can replace it: they can write to {parent}"
            hint = f"Remove that permission: {_command('chmod', 'go-w', parent)}"
            raise UnsafeFolder(str(path), reason, hint)


def _trusted_uids() -> set[int]:
    """Return the users whose folders only we or the system can change."""
    trusted = {ROOT_UID, os.geteuid()}
    with suppress(OSError), open(_UID_MAP) as uid_map:
        if uid_map.read().split() != _WHOLE_UID_MAP:
            trusted.add(OVERFLOW_UID)
    return trusted


def _real_parents(path: Path) -> Iterator[Path]:
    """Yield the existing folders above a path, and above what each link on the way leads to."""
    seen: set[Path] = set()
    for place in (path, *path.parents):
        for parent in Path(os.path.realpath(place)).parents:
            if parent not in seen and parent.is_dir():
                seen.add(parent)
                yield parent


def _others_may_rename_in(status: os.stat_result) -> bool:
    """Whether other users may rename what is in a folder; the sticky bit keeps them from it."""
    if status.st_mode & stat.S_ISVTX:
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_group_of_this_user_alone(status.st_gid)


def _is_group_of_this_user_alone(gid: int) -> bool:
    """Whether a group is root's, or the user's private one, which umask 002 lets write."""
    if gid == TRUSTED_GID:
        return True
    with suppress(KeyError):
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
        return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return False


def _command(*words: object) -> str:
    return f"`{shlex.join(map(str, words))}`"
