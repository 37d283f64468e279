"""A fake Brimline that records how it was started, and a parent that waits for its orphans."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STAY = "BRIMLINE_STAY"  # names a file; the daemon runs until it is removed

RECORDING_PROGRAM = """
import json, os, sys, time
own = "/proc/self/fd/"
streams = {n: os.readlink(own + n) for n in os.listdir(own) if os.path.exists(own + n)}
start = {
    "words": sys.argv[1:], "safe": sys.flags.safe_path, "folder": os.getcwd(),
    "session": os.getsid(0), "env": dict(os.environ), "streams": streams,
}
place = f"{os.environ['BRIMLINE_STATE_DIR']}/started.{os.getpid()}"
with open(f"{place}.new", "w") as file:
    json.dump(start, file)
os.rename(f"{place}.new", place)
print("it was started")
while os.path.exists(os.environ.get("BRIMLINE_STAY", "")):
    time.sleep(0.02)
"""

# Runs a client with an extra descriptor, and ends after all orphans of it.
WAITING_PROGRAM = """
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


@dataclass(frozen=True)
class DaemonStart:
    """How a daemon was started."""

    words: list[str]
    safe: bool
    folder: str
    session: int
    env: dict[str, str]
    streams: dict[str, str]


def make_interpreter(folder: Path) -> str:
    """Create a Python whose Brimline is the recording program."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = folder / "lib" / version / "site-packages" / "brimline"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(RECORDING_PROGRAM)
    return str(folder / "bin" / "python")


def waiting_command(command: Sequence[str]) -> list[str]:
    """Wrap a command so that it ends after all processes it started."""
    return [sys.executable, "-c", WAITING_PROGRAM, *command]


def recorded_starts(folder: Path) -> list[DaemonStart]:
    """Return all starts recorded in a state folder."""
    paths = [path for path in folder.glob("started.*") if path.suffix != ".new"]
    return [DaemonStart(**json.loads(path.read_text())) for path in paths]


def own_session_id() -> int:
    return os.getsid(0)
