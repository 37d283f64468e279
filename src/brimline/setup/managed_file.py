"""A file beside the agents' settings that setup writes too: with ours in it, or as it was."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.setup.file import backup_of, told
from brimline.setup.install import FileChange
from brimline.setup.manifest import Kept, digest, load
from brimline.setup.recipe import Scope


class Beside(msgspec.Struct, frozen=True):
    """A file, what it holds with ours in it, and what it holds without; None is no file.

    `name` is what it is remembered by. Where all of it is ours (`whole`), what was there before is
    given back whatever became of it; else only while nobody else had a hand in it.
    """

    name: str
    path: Path
    state: Path
    remove: bool
    put: Callable[[bytes | None], bytes]
    take: Callable[[bytes], bytes | None]
    whole: bool = False
    scope: Scope = "user"

    @property
    def kept(self) -> Kept | None:
        """What is remembered of this file."""
        return load(self.state).get(str(self.path))

    def outcome(self, before: bytes | None) -> FileChange:
        """What becomes of the file; InvalidSettings where it cannot be edited."""
        kept = self.kept
        if self.remove:
            return FileChange(None if before is None else self._without(before, kept))
        after = self.put(before)
        if kept is None:
            was = None if before is None else digest(before)
            return FileChange(after, Kept(self.name, self.scope, was, digest(after)), first=True)
        ours = self.whole or (before is not None and kept.wrote == digest(before))
        wrote = digest(after) if ours else None
        return FileChange(after, msgspec.structs.replace(kept, scope=self.scope, wrote=wrote))

    def _without(self, before: bytes, kept: Kept | None) -> bytes | None:
        if kept and (self.whole or kept.wrote == digest(before)):
            if kept.before is None:
                return None
            original = told(backup_of(self.path))
            if original is not None and digest(original) == kept.before:
                return original
        return self.take(before)
