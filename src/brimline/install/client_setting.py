"""One value in a client's own settings: written, and restored to what was there before.

Other programs write these files too. So a value is written next to everything else, byte for byte,
and restored only while it is still ours.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

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
from brimline.install.created_files import (
    COMPACT_AT_RECORDS,
    find_created_folder,
    is_created,
)
from brimline.install.install import parse_settings
from brimline.install.shared_file import (
    first_missing_folder,
    lock_shared_file,
    read_if_exists,
    remove_empty_folders,
)
from brimline.install.toml_key import (
    add_toml_table,
    read_toml_key,
    read_toml_table,
    remove_toml_key,
    remove_toml_table,
    set_toml_key,
)


class WrittenValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that we wrote, and what there was before.

    `source` is the text of the value before, None if there was none; then what is at the first
    `added` steps of the key is ours, `inserted` as a whole. `folder` is the topmost folder that we
    created for the file, and `is_new_file` says that there was none. In TOML, whose `dialect` is
    None, a key of one step is one outside of tables; a longer one is a table, which must be new.
    """

    agent: str
    path: str
    key: tuple[str | int, ...]
    value: Any  # JSON: msgspec takes no recursive types
    at: float
    source: str | None = None
    added: int = 0
    inserted: Any = None
    is_new_file: bool = False
    folder: str | None = None
    dialect: Dialect | None = None


class SettingRecord(WrittenValue, frozen=True, kw_only=True):
    """A value that moves a client's compaction.

    `limit` is the limit that it makes of `model`, whose window is `window`, since `at`.
    """

    value: int | float
    model: str
    limit: int
    window: int


ValueT = TypeVar("ValueT", bound=WrittenValue)


class _Records(msgspec.Struct, Generic[ValueT], frozen=True):
    settings: tuple[ValueT, ...] = ()


class RecordFile(Generic[ValueT]):
    """A file in the state folder with what we wrote into clients' settings."""

    def __init__(self, path: Path, kind: type[ValueT]) -> None:
        self.path = path
        self._decoder = msgspec.json.Decoder(_Records[kind])

    def load(self) -> tuple[ValueT, ...]:
        """Return all records; raises InvalidSettings."""
        return self._decode(read_if_exists(self.path))

    def find(self, like: WrittenValue) -> ValueT | None:
        """Return the record of a key in a file."""
        records = self.load()
        return next((one for one in records if (one.path, one.key) == (like.path, like.key)), None)

    def save(self, record: ValueT, remove: bool = False) -> None:
        """Replace or remove the record of a key; the file goes with the last one."""

        def edit(before: bytes | None) -> bytes | None:
            records, key = self._decode(before), (record.path, record.key)
            others = tuple(one for one in records if (one.path, one.key) != key)
            kept = others if remove else (*others, record)
            return (
                msgspec.json.format(msgspec.json.encode(_Records(kept)), indent=2) if kept else None
            )

        if remove and not os.path.lexists(self.path):
            return
        with lock_shared_file(self.path, private=True) as file:
            file.update(edit)

    def _decode(self, data: bytes | None) -> tuple[ValueT, ...]:
        if data is None:
            return ()
        try:
            return self._decoder.decode(data).settings
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = f"cannot be decoded: {error}. Move it away to continue without it"
            raise InvalidSettings(str(self.path), "file", reason) from error


def setting_records(state: Path) -> RecordFile[SettingRecord]:
    return RecordFile(state / COMPACT_AT_RECORDS, SettingRecord)


def load_records(state: Path) -> tuple[SettingRecord, ...]:
    """Return what we wrote into clients' settings; raises InvalidSettings."""
    return setting_records(state).load()


def write_setting(state: Path, wanted: SettingRecord, setting: CompactionSetting) -> SettingRecord:
    """Write a value and its record; raises InvalidSettings, and then the file is as before."""
    return write_value(setting_records(state), wanted, setting.siblings)


def restore_setting(state: Path, record: SettingRecord) -> bool:
    """Restore what was there before; False if another value is there, which is left."""
    return restore_value(setting_records(state), record)


def write_value(
    records: RecordFile[ValueT], wanted: ValueT, siblings: Mapping[str, Json] | None = None
) -> ValueT:
    """Write a value and its record; raises InvalidSettings, and then the file is as before.

    The record comes first: if we are killed between the two, removal finds nothing of ours.
    """
    path = Path(wanted.path)
    missing, record = first_missing_folder(path), wanted
    created = find_created_folder(records.path.parent, path) or missing
    earlier = records.find(wanted)

    def edit(before: bytes | None) -> bytes:
        nonlocal record
        if earlier is not None and _has_value(path, before, earlier):
            record = _take_over(wanted, earlier)  # the user's own value is the one before our first
        else:
            record = _describe(path, before, wanted, created)
            is_new = record.is_new_file or is_created(records.path.parent, path)
            record = msgspec.structs.replace(record, is_new_file=is_new)
        record = msgspec.structs.replace(
            record, inserted=_insertion(record, before, siblings or {})
        )
        records.save(record)
        return _set(path, before, record)

    try:
        with lock_shared_file(path) as file:
            file.update(edit)
    except InvalidSettings:
        if earlier is None:
            records.save(wanted, remove=True)
        if missing is not None:
            remove_empty_folders(path, missing)
        raise
    return record


def restore_value(records: RecordFile[ValueT], record: ValueT) -> bool:
    """Restore what was there before; False if another value is there, which is left."""
    path, is_ours = Path(record.path), True

    def edit(before: bytes | None) -> bytes | None:
        nonlocal is_ours
        is_ours = before is not None and _has_value(path, before, record)
        return _restore(path, before or b"", record) if is_ours else before

    if path.parent.is_dir():
        with lock_shared_file(path) as file:
            file.update(edit)
    records.save(record, remove=True)
    if record.folder is not None:
        remove_empty_folders(path, Path(record.folder))
    return is_ours


def plan_value(wanted: WrittenValue, before: bytes | None) -> bytes:
    """Return a file's content with a value; nothing is written. Raises InvalidSettings."""
    record = _describe(Path(wanted.path), before, wanted, None)
    record = msgspec.structs.replace(record, inserted=_insertion(record, before, {}))
    return _set(Path(wanted.path), before, record)


def plan_restored(record: WrittenValue, before: bytes | None) -> bytes | None:
    """Return a file's content without our value; nothing is written. Raises InvalidSettings."""
    is_ours = before is not None and has_value(record, before)
    return _restore(Path(record.path), before or b"", record) if is_ours else before


def has_value(record: WrittenValue, content: bytes | None) -> bool:
    """Return whether a file with this content has the value; raises InvalidSettings."""
    return _has_value(Path(record.path), content, record)


def _take_over(wanted: ValueT, earlier: ValueT) -> ValueT:
    return msgspec.structs.replace(
        wanted,
        source=earlier.source,
        added=earlier.added,
        is_new_file=earlier.is_new_file,
        folder=earlier.folder,
    )


def _describe(path: Path, before: bytes | None, wanted: ValueT, created: Path | None) -> ValueT:
    """Return the record with what is there before the value is written."""
    source, added = None, 1
    if _is_table(wanted):
        if read_toml_table(path, before or b"", wanted.key) is not None:
            name = ".".join(map(str, wanted.key))
            raise InvalidSettings(
                str(path), name, "it exists and is not Brimline's. Remove it first"
            )
    elif wanted.dialect is None:
        source = read_toml_key(path, before or b"", str(wanted.key[0]))
    else:
        document, key = parse_settings(path, wanted.dialect, before), wanted.key
        if (value := document.find(key)) is not None:
            source = document.source(value)
        added = next((n for n in range(1, len(key)) if document.find(key[:n]) is None), len(key))
        _require_object(document, key[: added - 1])
    folder = None if created is None else str(created)
    return msgspec.structs.replace(
        wanted, source=source, added=added, is_new_file=before is None, folder=folder
    )


def _is_table(record: WrittenValue) -> bool:
    return record.dialect is None and len(record.key) > 1


def _insertion(record: WrittenValue, before: bytes | None, siblings: Mapping[str, Json]) -> Json:
    """Return what is inserted: JSON at the first `added` steps of the key, or a table's text."""
    if _is_table(record):
        return add_toml_table(before or b"", record.key, record.value)
    return _nest(record, siblings)


def _nest(record: WrittenValue, siblings: Mapping[str, Json]) -> Json:
    """Return what is inserted at the first `added` steps of the key."""
    value: Json = record.value
    for depth in range(len(record.key) - 1, record.added - 1, -1):
        inner: dict[str, Json] = {str(record.key[depth]): value}
        if depth == len(record.key) - 1:
            inner |= siblings
        value = inner
    return value


def _set(path: Path, before: bytes | None, record: WrittenValue) -> bytes:
    if _is_table(record):
        return (before or b"") + str(record.inserted).encode()
    if record.dialect is None:
        return set_toml_key(path, before or b"", str(record.key[0]), record.value)
    document = parse_settings(path, record.dialect, before)
    if document.find(record.key) is not None:
        return _encode(replace(document, record.key, to_json(record.value)))
    return _encode(insert(document, record.key[: record.added], record.inserted))


def _restore(path: Path, before: bytes, record: WrittenValue) -> bytes | None:
    if record.dialect is None:
        if _is_table(record):
            after = remove_toml_table(path, before, record.key, str(record.inserted))
        else:
            after = remove_toml_key(path, before, str(record.key[0]), record.source)
        return None if record.is_new_file and not after.strip() else after
    document = parse_settings(path, record.dialect, before)
    if record.source is not None:
        return _encode(replace(document, record.key, record.source))
    inserted = document.find(record.key[: record.added])
    is_whole = inserted is not None and inserted.to_python() == record.inserted
    after = remove(document, record.key[: record.added] if is_whole else record.key)
    return None if record.is_new_file and after.is_empty else _encode(after)


def _has_value(path: Path, content: bytes | None, record: WrittenValue) -> bool:
    if _is_table(record):
        return read_toml_table(path, content or b"", record.key) == record.value
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
