"""Setup's manifest, `setup.json` in the state folder: an entry for each file that setup wrote.

A file is restored byte for byte only if it has the content that we wrote, and the backup has the
content that we replaced; both are known by their hashes.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.install_spec import Scope
from brimline.errors import InvalidSettings
from brimline.files.project_folder import resolve_path
from brimline.install.entries import ReplacedStatusLine
from brimline.install.shared_file import backup_path, lock_shared_file, read_if_exists

LinePosition: TypeAlias = Literal["prepend", "append", "replace"]

MANIFEST_NAME = "setup.json"


class StatusLine(msgspec.Struct, frozen=True):
    """The user's own status line, if any, the position of ours, and the interval that we added.

    `interval` is in seconds; None if the user has set one.
    """

    own: ReplacedStatusLine | None
    mode: LinePosition
    interval: int | None = None


class ManifestEntry(msgspec.Struct, frozen=True):
    """What setup knows about a file that it has written.

    `original_hash` is None if there was no file. `written_hash` is that of what we wrote, None if
    another program has changed the file. `created_folder` is the topmost folder that we created for
    the file; `is_new_file`: Brimline created the file, perhaps for something else than hooks.
    """

    agent: str
    scope: Scope
    original_hash: str | None = msgspec.field(name="before", default=None)
    written_hash: str | None = msgspec.field(name="wrote", default=None)
    status_line: StatusLine | None = None
    created_folder: str | None = msgspec.field(name="made", default=None)
    is_new_file: bool = False

    def wrote(self, content: bytes | None) -> bool:
        """Return whether a content is what we wrote."""
        return content is not None and self.written_hash == hash_content(content)


class _Manifest(msgspec.Struct, frozen=True):
    files: dict[str, ManifestEntry] = msgspec.field(default_factory=dict[str, ManifestEntry])


_decoder = msgspec.json.Decoder(_Manifest)


def hash_content(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def load_manifest(state: Path) -> Mapping[str, ManifestEntry]:
    """Return the entries by path of the file."""
    return _decode(state / MANIFEST_NAME, read_if_exists(state / MANIFEST_NAME))


def save_entry(state: Path, path: Path, entry: ManifestEntry | None) -> None:
    """Replace the entry of a file; None removes it, and the manifest with its last entry."""

    def edit(before: bytes | None) -> bytes | None:
        files = {**_decode(state / MANIFEST_NAME, before), str(path): entry}
        remaining = {path: item for path, item in files.items() if item is not None}
        if not remaining:
            return None
        return msgspec.json.format(msgspec.json.encode(_Manifest(remaining)), indent=2)

    with lock_shared_file(state / MANIFEST_NAME, private=True) as file:
        file.update(edit)


def restore_original(
    path: Path,
    before: bytes | None,
    entry: ManifestEntry | None,
    remove_ours: Callable[[bytes], bytes | None],
) -> bytes | None:
    """Return the original content of a file; None is no file.

    `entry` is None if other programs have changed the file. Then, and if the backup is not the
    original, our part is removed from the current content.
    """
    if before is None or (entry and entry.original_hash is None):
        return None
    original = read_if_exists(backup_path(path)) if entry else None
    if entry and original is not None and hash_content(original) == entry.original_hash:
        return original
    return remove_ours(before)


def find_status_line(
    state: Path, project: str | None, transcript: str | None = None
) -> StatusLine | None:
    """Return the status line of a project, else of the user; None if none is installed.

    If there are several user folders, the one with the transcript counts, also if it was set up as
    a project.
    """
    entries = load_manifest(state).items()
    files = [(Path(path).parent, entry) for path, entry in entries if entry.status_line]
    root = resolve_path(project) if project else None
    matches = [entry for at, entry in files if entry.scope == "project" and str(at.parent) == root]
    if transcript:
        own = Path(transcript)
        matches += [entry for at, entry in files if own.is_relative_to(at / "projects")]
    matches += [entry for _, entry in files if entry.scope == "user"]
    return matches[0].status_line if matches else None


def _decode(path: Path, data: bytes | None) -> Mapping[str, ManifestEntry]:
    if data is None:
        return {}
    try:
        return _decoder.decode(data).files
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = f"cannot be decoded: {error}. Move it away to continue without it"
        raise InvalidSettings(str(path), "file", reason) from error
