"""A test that hangs fails after its timeout, and no process is left of it."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

HANGING = """
import subprocess, time
from pathlib import Path
import pytest

@pytest.fixture
def child():
    child = subprocess.Popen(["sleep", "600"])
    Path("pid").write_text(str(child.pid))
    time.sleep(600)

def test_hangs_in_its_fixture(child):
    pass

def test_runs_after_that():
    pass
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "in a worker"])
def test_hanging_test_fails_and_leaves_no_process(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    words = [sys.executable, "-m", "pytest", "-p", "conftest", "--timeout=1", *workers, "."]
    environment = {"PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(
        words,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "1 passed, 1 error" in ran.stdout
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "pid").read_text())).wait(60)  # it was killed a moment ago
