"""Commands that the scripted agent runs in its shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

from brimline.testing.fake_model import Reply

POLL_S = 0.01
REQUEST_FILE = (
    "daemon-request"  # its text names actions on the daemon; the test removes it when they are done
)
WAIT_FOR_DAEMON = f"while test -e {REQUEST_FILE}; do sleep {POLL_S}; done"
DOCUMENT = "The parser is half done."


def brimline(*words: str) -> str:
    """A brimline command for the agent's shell."""
    return shlex.join([sys.executable, "-m", "brimline", *words])


def hand_over(shell: Callable[[str], Reply], *more: str) -> Reply:
    """A reply with which the agent writes a handoff and hands it over."""
    return shell(f"echo {DOCUMENT!r} > notes.md && {brimline('handoff', 'notes.md', *more)}")


def request_daemon(*actions: str) -> str:
    """A command that waits until the daemon was killed with -9, started, or both."""
    new = f"{REQUEST_FILE}.new"
    return f"echo {' '.join(actions)} > {new}; mv {new} {REQUEST_FILE}; {WAIT_FOR_DAEMON}"
