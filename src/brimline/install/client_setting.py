"""One value in a client's own settings: written, and restored to what was there before.

Other programs write these files too. So a value is written next to everything else, byte for byte,
and restored only while it is still ours.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from brimline.agents.compaction_setting import CompactionSetting
from brimline.errors import InvalidSettings
from brimline.files.jsonc import (
    Dialect,
    Document,
    Json,
    JsonPath,
    insert,
    remove,
    replace,
    to_json,
)
from brimline.install.install import parse_settings
from brimline.install.shared_file import (
    first_missing_folder,
    lock_shared_file,
    read_if_exists,
    remove_empty_folders,
)
from brimline.install.toml_key import read_toml_key, remove_toml_key, set_toml_key

RECORDS_NAME = "compact-at.json"


class SettingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A value that we wrote, and what there was before.

    `source` is the text of the value before, None if there was none; then what is at the first
    `added` steps of the key is ours, `inserted` as a whole. `folder` is the topmost folder that we
    created for the file, and `is_new_file` says that there was none. `limit` is the limit that the
    value makes of `model`, whose window is `window`, since `at`.
    """

    agent: str
    path: str
    key: tuple[str | int, ...]
    value: int | float
    at: float
    model: str
    limit: int
    window: int
    source: str | None = None
    added: int = 0
    inserted: Any = None  # JSON: msgspec takes no recursive types
    is_new_file: bool = False
    folder: str | None = None
    dialect: Dialect | None = None


class _Records(msgspec.Struct, frozen=True):
    settings: tuple[SettingRecord, ...] = ()


_decoder = msgspec.json.Decoder(_Records)


def load_records(state: Path) -> tuple[SettingRecord, ...]:
    """Return what we wrote into clients' settings; raises InvalidSettings."""
    return _decode(state / RECORDS_NAME, read_if_exists(state / RECORDS_NAME))


def write_setting(state: Path, wanted: SettingRecord, setting: CompactionSetting) -> SettingRecord:
    """Write a value and its record; raises InvalidSettings, and then the file is as before.

    The record comes first: if we are killed between the two, removal finds nothing of ours.
    """
    path = Path(wanted.path)
    missing, record = first_missing_folder(path), wanted
    earlier = _find(load_records(state), wanted)

    def edit(before: bytes | None) -> bytes:
        nonlocal record
        if earlier is not None and _has_value(path, before, earlier):
            record = _take_over(wanted, earlier)  # the user's own value is the one before our first
        else:
            record = _describe(path, before, wanted, missing)
        inserted = _nest(record, setting.siblings)
        record = msgspec.structs.replace(record, inserted=inserted)
        _save(state, record)
        return _set(path, before, record)

    try:
        with lock_shared_file(path) as file:
            file.update(edit)
    except InvalidSettings:
        if earlier is None:
            _save(state, wanted, remove=True)
        if missing is not None:
            remove_empty_folders(path, missing)
        raise
    return record


def restore_setting(state: Path, record: SettingRecord) -> bool:
    """Restore what was there before; False if another value is there, which is left."""
    path, is_ours = Path(record.path), True

    def edit(before: bytes | None) -> bytes | None:
        nonlocal is_ours
        is_ours = before is not None and _has_value(path, before, record)
        return _restore(path, before or b"", record) if is_ours else before

    if path.parent.is_dir():
        with lock_shared_file(path) as file:
            file.update(edit)
    _save(state, record, remove=True)
    if record.folder is not None:
        remove_empty_folders(path, Path(record.folder))
    return is_ours


def _take_over(wanted: SettingRecord, earlier: SettingRecord) -> SettingRecord:
    return msgspec.structs.replace(
        wanted,
        source=earlier.source,
        added=earlier.added,
        is_new_file=earlier.is_new_file,
        folder=earlier.folder,
    )


def _describe(
    path: Path, before: bytes | None, wanted: SettingRecord, missing: Path | None
) -> SettingRecord:
    """Return the record with what is there before the value is written."""
    source, added = None, 1
    if wanted.dialect is None:
        source = read_toml_key(path, before or b"", str(wanted.key[0]))
    else:
        document, key = parse_settings(path, wanted.dialect, before), wanted.key
        if (value := document.find(key)) is not None:
            source = document.source(value)
        added = next((n for n in range(1, len(key)) if document.find(key[:n]) is None), len(key))
        _require_object(document, key[: added - 1])
    folder = None if missing is None else str(missing)
    return msgspec.structs.replace(
        wanted, source=source, added=added, is_new_file=before is None, folder=folder
    )


def _nest(record: SettingRecord, siblings: Mapping[str, Json]) -> Json:
    """Return what is inserted at the first `added` steps of the key."""
    value: Json = record.value
    for depth in range(len(record.key) - 1, record.added - 1, -1):
        inner: dict[str, Json] = {str(record.key[depth]): value}
        if depth == len(record.key) - 1:
            inner |= siblings
        value = inner
    return value


def _set(path: Path, before: bytes | None, record: SettingRecord) -> bytes:
    if record.dialect is None:
        return set_toml_key(path, before or b"", str(record.key[0]), record.value)
    document = parse_settings(path, record.dialect, before)
    if document.find(record.key) is not None:
        return _encode(replace(document, record.key, to_json(record.value)))
    return _encode(insert(document, record.key[: record.added], record.inserted))


def _restore(path: Path, before: bytes, record: SettingRecord) -> bytes | None:
    if record.dialect is None:
        name = str(record.key[0])
        after = remove_toml_key(path, before, name, record.source)
        return None if record.is_new_file and not after.strip() else after
    document = parse_settings(path, record.dialect, before)
    if record.source is not None:
        return _encode(replace(document, record.key, record.source))
    inserted = document.find(record.key[: record.added])
    is_whole = inserted is not None and inserted.to_python() == record.inserted
    after = remove(document, record.key[: record.added] if is_whole else record.key)
    if record.is_new_file and not after.root.children and not after.comments:
        return None
    return _encode(after)


def _has_value(path: Path, content: bytes | None, record: SettingRecord) -> bool:
    if record.dialect is None:
        return read_toml_key(path, content or b"", str(record.key[0])) == str(record.value)
    value = parse_settings(path, record.dialect, content).find(record.key)
    return value is not None and value.to_python() == record.value


def _require_object(document: Document, key: JsonPath) -> None:
    value = document.find(key)
    if value is None or value.kind != "object":
        name = ".".join(map(str, key))
        raise InvalidSettings(document.name, name, "expected an object; fix it by hand")


def _encode(document: Document) -> bytes:
    return document.text.encode("utf-8")


def _find(records: tuple[SettingRecord, ...], like: SettingRecord) -> SettingRecord | None:
    return next((one for one in records if (one.path, one.key) == (like.path, like.key)), None)


def _save(state: Path, record: SettingRecord, remove: bool = False) -> None:
    """Replace or remove the record of a key; the file of records goes with the last one."""
    path = state / RECORDS_NAME

    def edit(before: bytes | None) -> bytes | None:
        records = _decode(path, before)
        others = tuple(one for one in records if (one.path, one.key) != (record.path, record.key))
        kept = others if remove else (*others, record)
        if not kept:
            return None
        return msgspec.json.format(msgspec.json.encode(_Records(kept)), indent=2)

    if remove and not os.path.lexists(path):
        return
    with lock_shared_file(path, private=True) as file:
        file.update(edit)


def _decode(path: Path, data: bytes | None) -> tuple[SettingRecord, ...]:
    if data is None:
        return ()
    try:
        return _decoder.decode(data).settings
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = f"cannot be decoded: {error}. Move it away to continue without it"
        raise InvalidSettings(str(path), "file", reason) from error
