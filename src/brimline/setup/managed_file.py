"""A file other than an agent's settings that setup writes: an extension, a service, a setting."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.agents.install_spec import Scope
from brimline.setup.install import FileChange
from brimline.setup.manifest import ManifestEntry, hash_content, load_manifest
from brimline.setup.shared_file import backup_path, read_if_exists


class ManagedFile(msgspec.Struct, frozen=True):
    """A file, and the functions that add our content to it and remove that; None is no file.

    `name` is the manifest's. If the file `is_all_ours` the original is restored in any case, else
    only if no other program has changed the file.
    """

    name: str
    path: Path
    state: Path
    remove: bool
    add_ours: Callable[[bytes | None], bytes]
    remove_ours: Callable[[bytes], bytes | None]
    is_all_ours: bool = False
    scope: Scope = "user"

    @property
    def record(self) -> ManifestEntry | None:
        return load_manifest(self.state).get(str(self.path))

    def plan_change(self, before: bytes | None) -> FileChange:
        """Return the change of a file with this content; raises InvalidSettings."""
        record = self.record
        if self.remove:
            return FileChange(None if before is None else self._without(before, record))
        after = self.add_ours(before)
        if record is None:
            original_hash = None if before is None else hash_content(before)
            return FileChange(
                after,
                ManifestEntry(self.name, self.scope, original_hash, hash_content(after)),
                is_first=True,
            )
        is_ours = self.is_all_ours or (before is not None and record.wrote == hash_content(before))
        wrote = hash_content(after) if is_ours else None
        return FileChange(after, msgspec.structs.replace(record, scope=self.scope, wrote=wrote))

    def _without(self, before: bytes, record: ManifestEntry | None) -> bytes | None:
        if record and (self.is_all_ours or record.wrote == hash_content(before)):
            if record.before is None:
                return None
            original = read_if_exists(backup_path(self.path))
            if original is not None and hash_content(original) == record.before:
                return original
        return self.remove_ours(before)
