"""What an agent is made to do in its shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

from brimline.testing.fake_model import Reply

PAUSE = 0.01
KNOCK = "knock"
"""The file by which an agent asks for something to be done to the daemon; then it waits."""
WAITING = f"while test -e {KNOCK}; do sleep {PAUSE}; done"
DOCUMENT = "The parser is half done."
"""What a handoff says."""


def brimline(*words: str) -> str:
    """One of our commands, as an agent's shell runs it."""
    return shlex.join([sys.executable, "-m", "brimline", *words])


def handing_over(shell: Callable[[str], Reply], *more: str) -> Reply:
    """A step at which the agent writes a handoff and hands it over."""
    return shell(f"echo {DOCUMENT!r} > notes.md && {brimline('handoff', 'notes.md', *more)}")


def knock(*deeds: str) -> str:
    """A command at which the daemon is killed with -9, started, or both, before it ends."""
    return f"echo {' '.join(deeds)} > {KNOCK}.new; mv {KNOCK}.new {KNOCK}; {WAITING}"
