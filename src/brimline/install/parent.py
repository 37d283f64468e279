"""The session that is notified about a project's sessions: `parent` in Brimline's own settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from brimline.errors import InvalidSettings
from brimline.install.managed_file import ManagedFile

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

KEY = "parent"


def parent_file(path: Path, state: Path, session: str | None) -> ManagedFile:
    """Return the change that sets the parent in a settings file; None removes it."""
    return ManagedFile(
        name=KEY,
        path=path,
        state=state,
        remove=session is None,
        add_ours=lambda before: _set_parent(path, before or b"", session or ""),
        remove_ours=lambda before: _remove_parent(path, before),
    )


def check_session_id(session: str) -> str:
    """Return a session id that can be written to a file; raises InvalidSettings if it cannot."""
    if not session or not session.isprintable() or session != session.strip():
        raise InvalidSettings("argument", KEY, f"expected a session's id: got {session!r}")
    return session


def _set_parent(path: Path, before: bytes, session: str) -> bytes:
    from tomlkit import item

    document = _parse(path, before)
    if KEY in document:
        document[KEY] = session
        return document.as_string().encode()
    # The first line is the one place that is never inside a table.
    newline = b"\r\n" if b"\r\n" in before else b"\n"
    return f"{KEY} = {item(session).as_string()}".encode() + newline + before


def _remove_parent(path: Path, before: bytes) -> bytes:
    document = _parse(path, before)
    if KEY in document:
        document.remove(KEY)
    return document.as_string().encode()


def _parse(path: Path, data: bytes) -> "TOMLDocument":
    from tomlkit import parse

    try:
        document = parse(data.decode("utf-8"))
    except ValueError as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
    if KEY in document and not isinstance(document[KEY], str):
        raise InvalidSettings(str(path), KEY, "expected a string; fix it by hand")
    return document
