"""A second user of this machine: a real process with another uid; needs root."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

UID = 65_534
PATIENCE_S = 60.0

# Imports come before the change of user: only its owner may be able to read Python's folder.
PREAMBLE = """
import encodings.idna, http.client, json, os, socket, stat, sys, time, traceback
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
given = json.loads(sys.argv[1])
"""


def require_second_user() -> None:
    """Skip a test that cannot become another user; in CI that is a failure."""
    if os.geteuid() == 0:
        return
    missing = "run the tests as root: only root can start a process of a second user"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


def run_as_second_user(program: str, **given: Any) -> Any:
    """Run a program as the second user; returns its last output as JSON."""
    text = PREAMBLE.format(uid=UID) + program
    completed = subprocess.run(
        [sys.executable, "-c", text, json.dumps(given)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        cwd="/",
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout.strip().splitlines()[-1])


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter and read, as a home often is."""
    require_second_user()
    with tempfile.TemporaryDirectory(prefix="brimline-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
