"""Tests that share something slow run in one worker."""

import subprocess
import sys
from pathlib import Path

import pytest

from worker_groups import GROUPS, find_group

TESTS = Path(__file__).parent

RECORDING = """
import os, pytest
from pathlib import Path

@pytest.mark.parametrize("number", range(4))
def test_one(number):
    with Path("workers").open("a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_tests(group: str) -> None:
    assert list(TESTS.parent.glob(f"{group}*"))


def test_folder_module_and_other_tests_have_their_group() -> None:
    assert find_group("tests/web/test_load.py::test_a[x]") == "tests/web/"
    ledger = "tests/clients/test_ledger_pi.py"
    assert find_group(f"{ledger}::test_a") == find_group(f"{ledger}::test_b") == ledger
    assert find_group("tests/test_usage.py::test_a") == "tests/test_usage.py::test_a"


@pytest.mark.slow
def test_group_runs_in_one_worker_before_other_tests(tmp_path: Path) -> None:
    for name in ("tests/test_others.py", "tests/web/test_a.py", "tests/web/test_b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "tests/test_others.py").write_text("def test_other(): pass\n")
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / "tests/web" / name).write_text(RECORDING)
    words = ["-n", "2", "--dist", "loadgroup", "--import-mode=importlib", "-v", "--rootdir=."]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", *words, "tests"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "9 passed" in ran.stdout, ran.stdout + ran.stderr
    assert len(set((tmp_path / "workers").read_text().split())) == 1
