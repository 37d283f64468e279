"""A Brimline that only tells how it was started, and an agent that waits for all it left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STAY = "BRIMLINE_STAY"
"""Names a file; who was started lives until it is gone."""

TELLS = """
import json, os, sys, time
own = "/proc/self/fd/"
streams = {n: os.readlink(own + n) for n in os.listdir(own) if os.path.exists(own + n)}
told = {
    "words": sys.argv[1:], "safe": sys.flags.safe_path, "folder": os.getcwd(),
    "session": os.getsid(0), "env": dict(os.environ), "streams": streams,
}
place = f"{os.environ['BRIMLINE_STATE_DIR']}/started.{os.getpid()}"
with open(f"{place}.new", "w") as file:
    json.dump(told, file)
os.rename(f"{place}.new", place)
print("it was started")
while os.path.exists(os.environ.get("BRIMLINE_STAY", "")):
    time.sleep(0.02)
"""

WAITS = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
os.dup2(1, 9)
code = subprocess.call(sys.argv[1:], close_fds=False)
try:
    while True:
        os.wait()
except ChildProcessError:
    sys.exit(code)
"""
"""Runs a client with a descriptor more than it should have, and ends when nothing of it is left."""


@dataclass(frozen=True)
class Started:
    """How a daemon was started."""

    words: list[str]
    safe: bool
    folder: str
    session: int
    env: dict[str, str]
    streams: dict[str, str]


def interpreter(folder: Path) -> str:
    """A Python whose Brimline is the one that tells."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = folder / "lib" / version / "site-packages" / "brimline"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(TELLS)
    return str(folder / "bin" / "python")


def waited_for(command: Sequence[str]) -> list[str]:
    """A client's command, run so that it ends when all that it started has ended."""
    return [sys.executable, "-c", WAITS, *command]


def started(folder: Path) -> list[Started]:
    """Who was started for a state folder."""
    found = [path for path in folder.glob("started.*") if path.suffix != ".new"]
    return [Started(**json.loads(path.read_text())) for path in found]


def own_session() -> int:
    """The session of this process, which is the agent's."""
    return os.getsid(0)
