"""Secrets in files: the daemon's own, and the token of a fleet's server.

The daemon's is random, and only its user can read the file. Programs send it as `Authorization:
Bearer SECRET`. A browser or another program's settings get a token that is derived from it for one
purpose and gives no other access.
"""

import hashlib
import hmac
import logging
import os
import secrets
import stat
from pathlib import Path
from typing import Literal, TypeAlias

from brimline.errors import StoreFailed
from brimline.files.atomic_file import replace_file
from brimline.files.regular_file import read_regular_file

LOGGER = logging.getLogger("brimline.server")

NAME = "secret"
SECRET_BYTES = 32
MAX_FILE_BYTES = 1 << 10
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Purpose: TypeAlias = Literal["page", "hooks"]  # the page's cookie, or HTTP hooks


def load_or_create_secret(state: Path) -> str:
    """Return the secret; create one if there is none, or if others could read it.

    Raises StoreFailed if the file can be neither read nor written.
    """
    try:
        return _read(state) or _create(state)
    except OSError as error:
        hint = "Remove it: the daemon then creates a new one."
        raise StoreFailed(str(state / NAME), error.strerror or str(error), hint) from error


def read_secret(state: Path) -> str | None:
    """Return the daemon's secret, or None if we cannot read one."""
    try:
        return _read(state)
    except OSError:
        return None


def read_token_file(path: str) -> str:
    """Return the token of `uplink.token_file` or `--token-file`.

    Raises OSError, or UnicodeDecodeError if it is not ASCII.
    """
    return read_regular_file(path, MAX_FILE_BYTES).decode("ascii").strip()


def derive_token(secret: str, purpose: Purpose) -> str:
    """Return the token for one purpose; the secret cannot be computed from it."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def _read(state: Path) -> str | None:
    """Return the secret; None if there is no file, or if other users could read it."""
    try:
        file = os.open(state / NAME, FLAGS)
    except FileNotFoundError:
        return None
    try:
        if not _is_private(os.fstat(file)):
            LOGGER.warning("other users could read %s, replacing the secret", state / NAME)
            return None
        text = os.read(file, MAX_FILE_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    return text if len(text) >= SECRET_BYTES and text.isalnum() else None


def _is_private(status: os.stat_result) -> bool:
    is_own = status.st_uid == os.getuid() and stat.S_ISREG(status.st_mode)
    return is_own and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _create(state: Path) -> str:
    secret = secrets.token_hex(SECRET_BYTES)
    replace_file(state / NAME, f"{secret}\n".encode(), sync=True)
    return secret
