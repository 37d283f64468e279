"""Sets aside files that cannot be the store: they are renamed, never deleted."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from brimline.files.file_lock import lock_file
from brimline.store.problems import StoreProblem, report_problem
from brimline.store.sqlite.header import Label, Unusable, sidecars

LOST = (
    "A new store was started: sessions are read again from the agents' transcripts, but queued "
    "messages, handoffs and older history that only this file had are missing."
)
DISMISS = "Remove the file to dismiss this message."


@contextmanager
def locked_folder(folder: Path) -> Generator[None]:
    """Let one process at a time move the store's files or create them."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock_file(handle)
        yield
    finally:
        os.close(handle)


def free_name(path: Path, label: Label) -> Path:
    """Return a free name next to the path: `brimline.db.broken-2026-01-31T120000`."""
    stem = f"{path.name}.{label}-{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, 1_000)))
    targets = (path.with_name(name) for name in names)
    return next(each for each in targets if not any(map(os.path.lexists, [each, *sidecars(each)])))


def quarantine(path: Path, unusable: Unusable) -> None:
    """Set a file aside and report it; the caller holds the folder's lock.

    Files that another process keeps next to the database are moved with it: SQLite must not apply
    them to the new file.
    """
    target = free_name(path, unusable.label)
    moved = [
        part.rename(new_path)
        for part, new_path in zip([path, *sidecars(path)], [target, *sidecars(target)], strict=True)
        if os.path.lexists(part)
    ]
    new_path = moved[0] if moved else target
    advice = f"{LOST} {DISMISS}"
    if unusable.label == "foreign":
        advice = (
            f"It was not changed, and a new store was started at {path}. Move it to where it "
            f"belongs: `mv {new_path} FOLDER`."
        )
    report(path, f"{path} {unusable.reason}; it is kept as {new_path}.", advice, new_path)


def report(path: Path, what: str, advice: str, new_path: Path | None) -> None:
    """Log and record a problem of the store at a path."""
    problem = StoreProblem(time.time(), what, None if new_path is None else str(new_path), advice)
    report_problem(path.parent, problem)
