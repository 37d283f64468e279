"""Where a rotating run is, on the disk: the same command continues after Ctrl-C or a kill."""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from brimline.files.atomic_file import replace_file
from brimline.files.file_lock import lock_file
from brimline.files.foreign_json import JsonDecoder
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import read_regular_file
from brimline.run.handoff_request import RunSession
from brimline.run.rotation import RotationCount
from brimline.run.window_result import WindowResult

FOLDER = "runs"


class RunRecord(msgspec.Struct, frozen=True):
    """A run in its present window, which began at `began_at` from `document`, None of the first.

    `windows` are those that ended; `session` is that of the present one, None while unknown, and
    `pid` its client's process.
    """

    iteration: int
    began_at: float
    windows: tuple[WindowResult, ...] = ()
    count: RotationCount = RotationCount()
    document: str | None = None
    session: RunSession | None = None
    pid: int | None = None


_records = JsonDecoder(RunRecord)


class RunRecordFile:
    """The record of one command in one folder; only one process at a time has it.

    `is_ours` is False while another process runs the same command here: nothing is recorded then.
    What cannot be written is not recorded; the run goes on.
    """

    def __init__(self, state: Path, command: Sequence[str], folder: str) -> None:
        key = sha256("\0".join((folder, *command)).encode("utf-8", "replace")).hexdigest()[:32]
        self.path = state / FOLDER / f"{key}.json"
        self._lock: int | None = None
        self.is_ours = False

    def open(self) -> None:
        """Become the one process that has the record, if there is no other."""
        with suppress(OSError):
            create_private_folder(self.path.parent)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._lock = os.open(self.path.with_suffix(".lock"), flags, 0o600)
            self.is_ours = lock_file(self._lock, 0.0)

    def read(self) -> RunRecord | None:
        """Return what an interrupted run left; None without one, or if it is damaged."""
        if not self.is_ours:
            return None
        try:
            return _records.decode_or_none(read_regular_file(self.path))
        except OSError:
            return None

    def write(self, record: RunRecord) -> None:
        if self.is_ours:
            with suppress(OSError):
                replace_file(self.path, msgspec.json.encode(record), sync=True)

    def remove(self) -> None:
        if self.is_ours:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the record to others; its lock file goes if there is no record."""
        if self._lock is not None:
            with suppress(OSError):
                if self.is_ours and not self.path.exists():
                    self.path.with_suffix(".lock").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock, self.is_ours = None, False
