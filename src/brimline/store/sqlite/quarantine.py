"""Files that are no longer the store: kept under another name, never deleted."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from brimline.file_lock import lock_file
from brimline.store.problems import StoreProblem, report_problem
from brimline.store.sqlite.header import Label, Unusable

SIDECARS = ("-wal", "-shm")  # what SQLite keeps beside a database while it is open

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


def set_aside(path: Path, label: Label) -> Path:
    """Rename a database, with the files that SQLite keeps beside it, to a name that is free.

    Returns the new name of the first of them. What another process keeps beside the database goes
    along: it must not be taken for the new file's.
    """
    target = free_name(path, label)
    moved = [_move(path, target, suffix) for suffix in ("", *SIDECARS)]
    return next((file for file in moved if file is not None), target)


def free_name(path: Path, label: Label) -> Path:
    """Return a name beside the path that nothing has: `brimline.db.broken-2026-01-31T120000`."""
    stem = f"{path.name}.{label}-{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, 1_000)))
    return next(
        target
        for target in (path.with_name(name) for name in names)
        if not any(os.path.lexists(f"{target}{suffix}") for suffix in ("", *SIDECARS))
    )


def quarantine(path: Path, unusable: Unusable) -> None:
    """Set a file aside and report it; the caller holds the folder's lock."""
    kept = set_aside(path, unusable.label)
    advice = f"{LOST} {DISMISS}"
    if unusable.label == "foreign":
        advice = (
            f"It was not changed, and a new store was started at {path}. Move it to where it "
            f"belongs: `mv {kept} FOLDER`."
        )
    report(path, f"{path} {unusable.reason}; it is kept as {kept}.", advice, kept)


def report(path: Path, what: str, advice: str, kept: Path | None) -> None:
    """Log and record a problem of the store at a path."""
    problem = StoreProblem(time.time(), what, None if kept is None else str(kept), advice)
    report_problem(path.parent, problem)


def sidecars(path: Path) -> Sequence[Path]:
    """Return the paths of the files that SQLite keeps beside a database."""
    return [path.with_name(path.name + suffix) for suffix in SIDECARS]


def _move(path: Path, target: Path, suffix: str) -> Path | None:
    part, kept = (place.with_name(place.name + suffix) for place in (path, target))
    if not os.path.lexists(part):
        return None
    part.rename(kept)
    return kept
