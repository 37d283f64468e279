"""What setup remembers of each file: what was there before, and the user's own status line.

One file in the state folder. A file of the agents is given back byte for byte only while it is what
we wrote, over what we copied; both are known by their hashes.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.errors import InvalidSettings
from brimline.setup.file import held, told
from brimline.setup.merge import Own
from brimline.setup.recipe import Scope

Mode: TypeAlias = Literal["prepend", "append", "replace"]
"""Where our status line goes beside the user's own: before it, after it, instead of it."""

NAME = "setup.json"


class StatusLine(msgspec.Struct, frozen=True):
    """The user's own status line, if they have one, and where ours goes beside it."""

    own: Own | None
    mode: Mode


class Kept(msgspec.Struct, frozen=True):
    """What is remembered of a file.

    `before` is the hash of what was there, None where there was no file. `wrote` is the hash of
    what we wrote, None where somebody else had a hand in it. `made` is the first folder that we
    made on the way to the file.
    """

    agent: str
    scope: Scope
    before: str | None = None
    wrote: str | None = None
    status_line: StatusLine | None = None
    made: str | None = None


class _File(msgspec.Struct, frozen=True):
    files: dict[str, Kept] = msgspec.field(default_factory=dict[str, Kept])


_file = msgspec.json.Decoder(_File)


def digest(data: bytes) -> str:
    """By what a file's content is known."""
    return hashlib.sha256(data).hexdigest()


def load(state: Path) -> Mapping[str, Kept]:
    """What is remembered, by the path of the file."""
    return _decoded(state / NAME, told(state / NAME))


def save(state: Path, path: Path, kept: Kept | None) -> None:
    """Remember something of a file, or nothing any more."""

    def work(before: bytes | None) -> bytes:
        files = {**_decoded(state / NAME, before), str(path): kept}
        left = {path: one for path, one in files.items() if one is not None}
        return msgspec.json.format(msgspec.json.encode(_File(left)), indent=2)

    with held(state / NAME, private=True) as file:
        file.change(work)


def status_line(
    state: Path, project: str | None, transcript: str | None = None
) -> StatusLine | None:
    """What is to be shown beside our status line in a project: as set up there, else for the user.

    Of two folders of the user's it is the one with the transcript; that one is the user's, also
    where it was set up as a project. None where no status line of ours was set up.
    """
    files = [(Path(path).parent, kept) for path, kept in load(state).items() if kept.status_line]
    root = os.path.realpath(project) if project else None
    own = Path(transcript) if transcript else None
    found = [kept for at, kept in files if kept.scope == "project" and str(at.parent) == root]
    found += [kept for at, kept in files if own and own.is_relative_to(at / "projects")]
    found += [kept for _, kept in files if kept.scope == "user"]
    return found[0].status_line if found else None


def _decoded(path: Path, data: bytes | None) -> Mapping[str, Kept]:
    if data is None:
        return {}
    try:
        return _file.decode(data).files
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"is not what setup wrote: {error}. Move it away to go on without it"
        raise InvalidSettings(str(path), "file", problem) from error
