"""Programs of this folder that run in a process, and perhaps an environment, of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from clients.run import SOURCES, TIMEOUT_S, isolation_prefix

TESTS = Path(__file__).parents[1]

CaseT = TypeVar("CaseT")


def play(
    python: Path, module: str, case: type[CaseT], home: Path, environment: Mapping[str, str]
) -> list[CaseT]:
    """Return the cases that a program printed, one a line; it fails if a step was wrong."""
    done = subprocess.run(
        [*isolation_prefix(), python, "-m", module],
        env={
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": f"{TESTS}:{SOURCES}",
            **environment,
        },
        cwd=home,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [msgspec.json.decode(line, type=case) for line in lines]
