"""Problems that a store had: recorded in a small file beside it for every surface to show."""

import logging
import os
from contextlib import suppress
from pathlib import Path

import msgspec

FILE_NAME = "store-problems.json"
MAX_KEPT = 20
SHOWN_FOR_S = 7 * 86_400.0  # a problem that the user does nothing about is shown this long

LOGGER = logging.getLogger("brimline.store")


class StoreProblem(msgspec.Struct, frozen=True):
    """One event: what happened, where the affected file is kept now, and what the user can do."""

    at: float
    what: str
    kept: str | None
    advice: str


def report_problem(folder: Path, problem: StoreProblem) -> None:
    """Log a problem and record it in a folder; a failure to record it is logged only."""
    LOGGER.warning("%s %s", problem.what, problem.advice)
    draft = folder / f"{FILE_NAME}.new"
    try:
        kept = [*_read_recorded(folder), problem][-MAX_KEPT:]
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept), indent=2))
        draft.replace(folder / FILE_NAME)
    except OSError as error:
        LOGGER.warning("cannot record this in %s: %s", folder / FILE_NAME, error)
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def open_problems(folder: Path, now: float) -> list[StoreProblem]:
    """Return the recorded problems to show, oldest first.

    A problem is no longer shown after 7 days, or when the user has removed or moved the kept file.
    """
    return [problem for problem in _read_recorded(folder) if _is_open(problem, now)]


def _is_open(problem: StoreProblem, now: float) -> bool:
    if now - problem.at > SHOWN_FOR_S:
        return False
    return problem.kept is None or os.path.lexists(problem.kept)


def _read_recorded(folder: Path) -> list[StoreProblem]:
    """Return what is recorded; nothing if the file is missing or cannot be read."""
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=list[StoreProblem])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []
