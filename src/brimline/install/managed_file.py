"""A file other than an agent's settings that setup writes: an extension, a service, a setting."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.agents.install_spec import Scope
from brimline.install.install import FileChange
from brimline.install.manifest import ManifestEntry, hash_content, load_manifest, restore_original


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
        if entry is None:
            original_hash = None if before is None else hash_content(before)
            entry = ManifestEntry(self.name, self.scope, original_hash, written_hash)
            return FileChange(after, entry, is_first=True)
        entry = msgspec.structs.replace(
            entry, scope=self.scope, written_hash=written_hash if is_ours else None
        )
        return FileChange(after, entry)
