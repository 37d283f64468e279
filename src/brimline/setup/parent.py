"""The session that is told of a project's sessions, as a line in our own settings.

All else in the file stays as it is. What comes of an edit is read again: where it does not say what
was wanted, and nothing else, the file is left alone.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from brimline.errors import InvalidSettings
from brimline.setup.managed_file import Beside

KEY = "parent"
_LINE = re.compile(
    r"""^[ \t]*(?:parent|"parent"|'parent')[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
    r"""(?P<rest>[^\n]*)(?P<end>\n|\Z)""",
    re.MULTILINE,
)


def beside(path: Path, state: Path, session: str | None) -> Beside:
    """The file as it is with this session for a parent; None takes the parent out again."""
    return Beside(
        name=KEY,
        path=path,
        state=state,
        remove=session is None,
        put=lambda before: _with(path, before, session or ""),
        take=lambda before: _without(path, before),
    )


def checked(session: str) -> str:
    """A session's id that can stand in a file; InvalidSettings for what cannot be one."""
    if not session or not session.isprintable() or session != session.strip():
        raise InvalidSettings("argument", KEY, f"expected a session's id: got {session!r}")
    return session


def _with(path: Path, before: bytes | None, session: str) -> bytes:
    text, told = _read(path, before or b"")
    line = f"{KEY} = {json.dumps(session, ensure_ascii=False)}"
    wanted = {**told, KEY: session}
    edited = _replaced(text, line) if KEY in told else iter([f"{line}{_newline(text)}{text}"])
    return _first(path, edited, wanted)


def _without(path: Path, before: bytes) -> bytes:
    text, told = _read(path, before)
    if KEY not in told:
        return before
    edited = (text[: found.start()] + text[found.end() :] for found in _LINE.finditer(text))
    return _first(path, edited, {key: told[key] for key in told if key != KEY})


def _replaced(text: str, line: str) -> Iterator[str]:
    """The text with one line or another in its place; a comment behind it stays."""
    for found in _LINE.finditer(text):
        rest = f"{found['rest']}{found['end']}"
        yield f"{text[: found.start()]}{line}{rest}{text[found.end() :]}"


def _first(path: Path, edited: Iterator[str], wanted: dict[str, Any]) -> bytes:
    """The first edit that says what is wanted."""
    for text in edited:
        if _says(text) == wanted:
            return text.encode()
    raise InvalidSettings(str(path), KEY, "stands where it cannot be edited: change it by hand")


def _says(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _read(path: Path, data: bytes) -> tuple[str, dict[str, Any]]:
    try:
        text = data.decode("utf-8")
        return text, tomllib.loads(text)
    except ValueError as error:
        raise InvalidSettings(str(path), "file", str(error)) from error


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
