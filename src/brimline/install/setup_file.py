"""A file other than an agent's settings that setup writes: an extension, a service, a setting.

The one setting is `parent` in Brimline's own settings, the session that is notified about others.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.agents.install_spec import Scope
from brimline.errors import InvalidSettings
from brimline.install.created_files import is_created
from brimline.install.install import FileChange
from brimline.install.manifest import ManifestEntry, hash_content, load_manifest, restore_original
from brimline.install.toml_key import parse_toml, remove_toml_key, set_toml_key


class SetupFile(msgspec.Struct, frozen=True):
    """A file, and the functions that add our content to it and remove that; None is no file.

    `name` is the manifest's. `has_ours` recognises content of an installation of which the manifest
    knows nothing: then there is no original to restore. If the file `is_all_ours` the original is
    restored in any case, else only if no other program has changed the file.
    """

    name: str
    path: Path
    state: Path
    remove: bool
    add_ours: Callable[[bytes | None], bytes]
    remove_ours: Callable[[bytes], bytes | None]
    has_ours: Callable[[bytes], bool] | None = None
    is_all_ours: bool = False
    scope: Scope = "user"

    @property
    def entry(self) -> ManifestEntry | None:
        return load_manifest(self.state).get(str(self.path))

    def plan_change(self, before: bytes | None) -> FileChange:
        """Return the change of a file with this content; raises InvalidSettings."""
        entry = self.entry
        is_ours = self.is_all_ours or (entry is not None and entry.wrote(before))
        if self.remove:
            return FileChange(
                restore_original(self.path, before, entry if is_ours else None, self.remove_ours)
            )
        after = self.add_ours(before)
        written_hash = hash_content(after)
        if entry is None and before is not None and self.has_ours and self.has_ours(before):
            return FileChange(after, ManifestEntry(self.name, self.scope))
        if entry is None:
            original_hash = None if before is None else hash_content(before)
            is_new = before is None or is_created(self.state, self.path)
            entry = ManifestEntry(
                self.name, self.scope, original_hash, written_hash, is_new_file=is_new
            )
            return FileChange(after, entry, is_first=True)
        entry = msgspec.structs.replace(
            entry, scope=self.scope, written_hash=written_hash if is_ours else None
        )
        return FileChange(after, entry)


PARENT_KEY = "parent"


def parent_file(path: Path, state: Path, session: str | None) -> SetupFile:
    """Return the change that sets the parent in a settings file; None removes it."""
    return SetupFile(
        name=PARENT_KEY,
        path=path,
        state=state,
        remove=session is None,
        add_ours=lambda before: _set_parent(path, before or b"", session or ""),
        remove_ours=lambda before: _remove_parent(path, before),
    )


def check_session_id(session: str) -> str:
    """Return a session id that can be written to a file; raises InvalidSettings if it cannot."""
    if not session or not session.isprintable() or session != session.strip():
        raise InvalidSettings("argument", PARENT_KEY, f"expected a session's id: got {session!r}")
    return session


def _set_parent(path: Path, before: bytes, session: str) -> bytes:
    _require_text(path, before)
    return set_toml_key(path, before, PARENT_KEY, session)


def _remove_parent(path: Path, before: bytes) -> bytes:
    _require_text(path, before)
    return remove_toml_key(path, before, PARENT_KEY)


def _require_text(path: Path, data: bytes) -> None:
    document = parse_toml(path, data)
    if PARENT_KEY in document and not isinstance(document[PARENT_KEY], str):
        raise InvalidSettings(str(path), PARENT_KEY, "expected a string; fix it by hand")
