"""What the processes above one were told as they began, as far as the system says."""

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

STEPS = 32
"""So far up it is looked."""

LISTING_TIMEOUT_S = 2.0
"""So many seconds `ps` may take."""


class Process(NamedTuple):
    """A process of this user: its parent, and what it was told in the variables asked for."""

    parent: int
    told: Mapping[str, str]


def upwards(pid: int, names: Collection[str]) -> Iterator[Mapping[str, str]]:
    """What a process was told in variables of these names, then the one above it, and so on.

    It ends at a process that is another user's, or cannot be read. On macOS `ps` does the reading,
    which takes some time.
    """
    listed = None if sys.platform == "linux" else parsed(listing(), names)
    for _ in range(STEPS):
        process = _of_proc(pid, names) if listed is None else listed.get(pid)
        if process is None:
            return
        yield process.told
        pid = process.parent


def _of_proc(pid: int, names: Collection[str]) -> Process | None:
    """A process by Linux' own files."""
    place = f"/proc/{pid}"
    try:
        if pid <= 1 or os.stat(place).st_uid != os.getuid():
            return None
        with open(f"{place}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
        with open(f"{place}/environ", "rb") as file:
            entries = os.fsdecode(file.read()).split("\0")
    except (OSError, ValueError, IndexError):
        return None
    pairs = (entry.partition("=") for entry in entries)
    return Process(parent, {name: value for name, _, value in pairs if name in names})


def listing() -> str:
    """All processes of this user with the environment that each began with, as macOS lists them."""
    command = ["/bin/ps", "-x", "-E", "-ww", "-o", "pid=,ppid=,command="]
    try:
        done = subprocess.run(command, capture_output=True, timeout=LISTING_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(done.stdout)


def parsed(listed: str, names: Collection[str]) -> dict[int, Process]:
    """What `ps` listed, by the number of the process; a line that is none is passed over."""
    pattern = re.compile(rf"(?:^|\s)({'|'.join(map(re.escape, names))})=(\S+)")
    found: dict[int, Process] = {}
    for line in listed.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0].isdecimal() and words[1].isdecimal():
            found[int(words[0])] = Process(int(words[1]), dict(pattern.findall(words[2])))
    return found
