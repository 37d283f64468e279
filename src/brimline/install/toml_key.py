"""A key at the top of a TOML file of the user's: read, set and removed; all else stays."""

from pathlib import Path
from typing import TYPE_CHECKING

from brimline.errors import InvalidSettings

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def read_toml_key(path: Path, data: bytes, key: str) -> str | None:
    """Return the text of a key's value; None if there is none. Raises InvalidSettings."""
    document = parse_toml(path, data)
    return document[key].as_string() if key in document else None


def set_toml_key(path: Path, data: bytes, key: str, value: str | float) -> bytes:
    from tomlkit import item

    document = parse_toml(path, data)
    if key in document:
        document[key] = value
        return document.as_string().encode()
    # The first line is the one place that is never inside a table.
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    return f"{key} = {item(value).as_string()}".encode() + newline + data


def remove_toml_key(path: Path, data: bytes, key: str, source: str | None = None) -> bytes:
    """Remove a key, or restore the text of its value."""
    from tomlkit import value

    document = parse_toml(path, data)
    if source is not None:
        document[key] = value(source)
    elif key in document:
        document.remove(key)
    return document.as_string().encode()


def parse_toml(path: Path, data: bytes) -> "TOMLDocument":
    from tomlkit import parse

    try:
        return parse(data.decode("utf-8"))
    except ValueError as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
