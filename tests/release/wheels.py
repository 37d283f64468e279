"""Builds the wheels that the tests install."""

import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MACHINE = platform.machine()


def manylinux(machine: str) -> str:
    return f"manylinux_2_17_{machine}.manylinux2014_{machine}"


def run(*command: str | Path, **env: str) -> str:
    """Run a command that must succeed; returns its output."""
    done = subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def build_wheels(folder: Path) -> None:
    """Build the wheels in pure Python, for x86_64, and for this machine."""
    only = sorted({"any", manylinux("x86_64"), manylinux(MACHINE)})
    run(sys.executable, ROOT / "scripts/wheels.py", "--out", folder, "--only", *only)


def wheel_of(dist: Path, distribution: str, tag: str) -> Path:
    (wheel,) = dist.glob(f"{distribution}-*-py3-none-{tag}.whl")
    return wheel
