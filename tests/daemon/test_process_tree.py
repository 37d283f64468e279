"""Environments of processes; tests/server/test_parent_session.py has nested ones."""

import os
import subprocess
import sys

from brimline.daemon.process_tree import iter_environments

PRINT_CHAIN = """
import json, os
from brimline.daemon.process_tree import iter_environments
print(json.dumps(list(iter_environments(os.getpid(), ["LEVEL", "MISSING"]))[:2]))
"""


def test_own_environment_is_first_and_filtered() -> None:
    run = "import os, subprocess, sys; os.environ['LEVEL'] = 'inner'; subprocess.run(sys.argv[1:])"
    result = subprocess.run(
        [sys.executable, "-c", run, sys.executable, "-c", PRINT_CHAIN],
        env={**os.environ, "LEVEL": "outer"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == '[{"LEVEL": "inner"}, {"LEVEL": "outer"}]\n'


def test_invalid_process_ids_yield_nothing() -> None:
    assert [list(iter_environments(pid, ["PATH"])) for pid in (-1, 0, 1, 1 << 22, 1 << 40)] == [
        [], [], [], [], [],
    ]  # fmt: skip
