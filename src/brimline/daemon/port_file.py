"""The TCP port that this user's daemon had last; the next one uses it again.

HTTP hooks in an agent's settings name it. On a machine with several users the default port may
belong to another user's daemon, which must not get these prompts.
"""

from contextlib import suppress
from pathlib import Path

from brimline.files.atomic_file import replace_file
from brimline.files.regular_file import read_regular_file

NAME = "port"
MAX_BYTES = 16


def read_port(state: Path) -> int | None:
    """Return the port of the last daemon; None if there was none."""
    try:
        text = read_regular_file(state / NAME, MAX_BYTES, follow_links=False).strip()
    except OSError:
        return None
    port = int(text) if text.isdigit() else 0
    return port if 0 < port < 1 << 16 else None


def write_port(state: Path, port: int) -> None:
    """Save the port if possible; without the file the default port is tried first."""
    with suppress(OSError):
        replace_file(state / NAME, b"%d\n" % port)
