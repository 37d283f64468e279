"""Problems that a store had: recorded in a small file next to it for every surface to show."""

import logging
import os
from pathlib import Path

import msgspec

from brimline.files.atomic_file import replace_file

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
    problems = [*_read_recorded(folder), problem][-MAX_KEPT:]
    try:
        data = msgspec.json.format(msgspec.json.encode(problems), indent=2)
        replace_file(folder / FILE_NAME, data)
    except OSError as error:
        LOGGER.warning("cannot record this in %s: %s", folder / FILE_NAME, error)


def open_problems(folder: Path, now: float) -> list[StoreProblem]:
    """Return the recorded problems to show, oldest first.

    A problem is no longer shown after 7 days, or when the user has removed or moved the kept file.
    """
    recent = [each for each in _read_recorded(folder) if now - each.at <= SHOWN_FOR_S]
    return [each for each in recent if each.kept is None or os.path.lexists(each.kept)]


def _read_recorded(folder: Path) -> list[StoreProblem]:
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=list[StoreProblem])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []
