"""The daemon's secret: a random token in a file that only its user can read.

Programs send it as `Authorization: Bearer SECRET`. What is written into a browser or into another
program's settings is derived from it for one purpose, so that it opens nothing else.
"""

import hashlib
import hmac
import logging
import os
import secrets
import stat
from pathlib import Path
from typing import Literal, TypeAlias

from brimline.atomic_file import replace_file
from brimline.store.failures import StoreFailed

LOGGER = logging.getLogger("brimline.server")

NAME = "secret"
SECRET_BYTES = 32
MAX_FILE_BYTES = 1 << 10
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Purpose: TypeAlias = Literal["page", "hooks"]
"""What a derived token is for: the page's cookie, or hooks that a client posts itself."""


def load_or_create_secret(state: Path) -> str:
    """Return the secret of a state folder; make one if there is none, or if others could read it.

    Raises StoreFailed if the file can be neither read nor written.
    """
    try:
        return _read(state) or _create(state)
    except OSError as error:
        hint = "It must be a file of your own; remove it, and a new one is made."
        raise StoreFailed(str(state / NAME), error.strerror or str(error), hint) from error


def read_secret(state: Path) -> str | None:
    """Return the secret that a daemon has made, or None if there is none for us to read."""
    try:
        return _read(state)
    except OSError:
        return None


def derive_token(secret: str, purpose: Purpose) -> str:
    """Return the token for one purpose; the secret cannot be computed from it."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def _read(state: Path) -> str | None:
    """Return the secret; None if there is no file, or none that only we could read until now."""
    try:
        file = os.open(state / NAME, FLAGS)
    except FileNotFoundError:
        return None
    try:
        if not _is_private(os.fstat(file)):
            LOGGER.warning("%s could be read by others: a new secret replaces it", state / NAME)
            return None
        text = os.read(file, MAX_FILE_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    return text if len(text) >= SECRET_BYTES and text.isalnum() else None


def _is_private(found: os.stat_result) -> bool:
    ours = found.st_uid == os.getuid() and stat.S_ISREG(found.st_mode)
    return ours and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _create(state: Path) -> str:
    secret = secrets.token_hex(SECRET_BYTES)
    replace_file(state / NAME, f"{secret}\n".encode(), sync=True)
    return secret
