"""The TCP port that this user's daemon had last; the next one uses it again.

HTTP hooks in an agent's settings name it. On a machine with several users the default port may
belong to another user's daemon, which must not get these prompts.
"""

import os
from contextlib import suppress
from pathlib import Path

NAME = "port"
MAX_BYTES = 16
WRITING = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_port(state: Path) -> int | None:
    """Return the port of the last daemon; None if there was none."""
    try:
        file = os.open(state / NAME, READING)
    except OSError:
        return None
    try:
        text = os.read(file, MAX_BYTES).strip()
    except OSError:
        return None
    finally:
        os.close(file)
    port = int(text) if text.isdigit() else 0
    return port if 0 < port < 1 << 16 else None


def write_port(state: Path, port: int) -> None:
    """Save the port if possible; without the file the default port is tried first."""
    draft = state / f"{NAME}.{os.getpid()}"
    with suppress(OSError):
        with open(os.open(draft, WRITING, 0o600), "w") as file:
            file.write(f"{port}\n")
        draft.replace(state / NAME)
