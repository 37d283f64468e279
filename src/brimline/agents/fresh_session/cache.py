"""Answers that are kept, one file each.

They only save the seconds that the client takes. A file may be deleted at any moment, a broken one
is as good as none, and two processes at once each write a whole one.
"""

import hashlib
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline._version import __version__
from brimline.agents.fresh_session.answers import Answer
from brimline.agents.fresh_session.configuration import hash_files
from brimline.files.atomic_file import replace_file
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import read_regular_file

FOLDER = "baselines"
MAX_AGE_S = 86_400.0  # changes of MCP servers and of the client's service are in no file


class CachedAnswer(msgspec.Struct, frozen=True):
    """An answer, when it was given, and the memory files as they were then."""

    version: str
    at: float
    memory: str
    answer: Answer


_cached_answer = msgspec.json.Decoder(CachedAnswer)


def cache_path(cache: Path, *parts: str) -> Path:
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    return cache / FOLDER / f"{key.hexdigest()[:32]}.json"


def load_answer(path: Path, now: float) -> CachedAnswer | None:
    """Return a cached answer; None if it is missing, corrupt, too old, or of other memory files."""
    try:
        cached = _cached_answer.decode(read_regular_file(path))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    current = cached.version == __version__ and abs(now - cached.at) < MAX_AGE_S
    if not current or cached.memory != hash_files(cached.answer.memory_files):
        return None
    return cached


def save_answer(path: Path, answer: Answer, now: float) -> CachedAnswer:
    """Keep an answer if it is one to rely on: counted, and with all MCP servers in it.

    A disk that is full or read-only only makes the next time slower.
    """
    cached = CachedAnswer(__version__, now, hash_files(answer.memory_files), answer)
    if not answer.estimated and not answer.without:
        with suppress(OSError):
            create_private_folder(path.parent)
            _remove_old(path.parent, now)
            replace_file(path, msgspec.json.encode(cached))
    return cached


def _remove_old(folder: Path, now: float) -> None:
    """Remove expired answers, and what a killed process left."""
    for path in folder.iterdir():
        with suppress(OSError):
            if now - path.stat().st_mtime > MAX_AGE_S:
                path.unlink()
