"""The files and folders that Brimline created, by everything that it recorded.

Hooks, a client's setting for its compaction and an MCP server may be in one file, or in files of
one folder, and are removed in any order: the last of them takes the file and the folder with it.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.errors import InvalidSettings
from brimline.install.manifest import load_manifest
from brimline.install.shared_file import read_if_exists

COMPACT_AT_RECORDS, MCP_RECORDS = "compact-at.json", "mcp.json"  # in the state folder


class _CreatedFile(msgspec.Struct, frozen=True):
    """A file with something of ours: whether it is new, and the topmost folder that is new."""

    path: str
    is_new_file: bool = False
    folder: str | None = None


class _CreatedFiles(msgspec.Struct, frozen=True):
    settings: tuple[_CreatedFile, ...] = ()


_decoder = msgspec.json.Decoder(_CreatedFiles)


def is_created(state: Path, path: Path) -> bool:
    """Return whether Brimline created a file, and still has something in it."""
    return any(each.is_new_file and each.path == str(path) for each in _load(state))


def find_created_folder(state: Path, path: Path) -> Path | None:
    """Return the topmost folder around a file that Brimline created; None if it created none."""
    folders = [Path(each.folder) for each in _load(state) if each.folder is not None]
    return min(filter(path.is_relative_to, folders), key=lambda one: len(one.parts), default=None)


def _load(state: Path) -> list[_CreatedFile]:
    """Return what all records say; one that is damaged says nothing, and is named by its owner."""
    created: list[_CreatedFile] = []
    with suppress(InvalidSettings):
        for path, entry in load_manifest(state).items():
            created.append(_CreatedFile(path, entry.is_new_file, entry.created_folder))
    for name in (COMPACT_AT_RECORDS, MCP_RECORDS):
        with suppress(InvalidSettings, msgspec.DecodeError, UnicodeDecodeError):
            created += _decoder.decode(read_if_exists(state / name) or b"{}").settings
    return created
