"""A key of a TOML file of the user's, or a table of ours; all else stays.

Keys are read, set and removed, tables added at the end and removed. A key is at the top of the
file, or in a table: `table.key`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from brimline.errors import InvalidSettings

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def read_toml_key(path: Path, data: bytes, key: str) -> str | None:
    """Return the text of a key's value; None if there is none. Raises InvalidSettings."""
    table, name = _find_table(path, parse_toml(path, data), key)
    return table[name].as_string() if table is not None and name in table else None


def set_toml_key(path: Path, data: bytes, key: str, value: str | float) -> bytes:
    from tomlkit import item

    document = parse_toml(path, data)
    table, name = _find_table(path, document, key)
    if table is not None and (name in table or table is not document):
        table[name] = value
        return document.as_string().encode()
    # The first line is the one place that is never inside a table.
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    return f"{key} = {item(value).as_string()}".encode() + newline + data


def remove_toml_key(path: Path, data: bytes, key: str, source: str | None = None) -> bytes:
    """Remove a key, or restore the text of its value."""
    from tomlkit import value

    document = parse_toml(path, data)
    table, name = _find_table(path, document, key)
    if table is not None and source is not None:
        table[name] = value(source)
    elif table is not None and name in table:
        del table[name]
    return document.as_string().encode()


def _find_table(path: Path, document: "TOMLDocument", key: str) -> tuple[Any, str]:
    """Return the table that a key belongs into, None if there is none, and the name in it."""
    *above, name = key.split(".")
    table: Any = document
    for step in above:
        value = table.get(step)
        if value is None:
            return None, name
        if not isinstance(value, dict):
            raise InvalidSettings(str(path), step, "expected a table; fix it by hand")
        table = cast(Any, value)
    return table, name


def read_toml_table(path: Path, data: bytes, key: Sequence[str | int]) -> Any:
    """Return the value at a key of several steps; None if there is none. Raises InvalidSettings."""
    value: Any = parse_toml(path, data).unwrap()
    for step in key:
        value = value.get(step) if isinstance(value, dict) else None  # pyright: ignore
    return value  # pyright: ignore


def add_toml_table(before: bytes, key: Sequence[str | int], value: Mapping[str, Any]) -> str:
    """Return the text that adds a table at the end of a file: a table can follow anything."""
    from tomlkit import item

    newline = "\r\n" if b"\r\n" in before else "\n"
    lines = [f"[{'.'.join(map(str, key))}]"]
    for name, part in value.items():
        lines.append(f"{name} = {item(part).as_string()}")  # pyright: ignore[reportUnknownMemberType]
    is_line_open = bool(before) and not before.endswith(b"\n")
    head = [""] * (bool(before.strip()) + is_line_open)
    return newline.join([*head, *lines, ""])


def remove_toml_table(path: Path, data: bytes, key: Sequence[str | int], text: str) -> bytes:
    """Remove a table that was added as this text; a file that was written again is parsed."""
    if data.count(text.encode()) == 1:
        return data.replace(text.encode(), b"")
    document = parse_toml(path, data)
    above: Any = document
    for step in key[:-1]:
        above = above[step]
    del above[key[-1]]
    return document.as_string().encode()


def parse_toml(path: Path, data: bytes) -> "TOMLDocument":
    from tomlkit import parse

    try:
        return parse(data.decode("utf-8"))
    except ValueError as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
