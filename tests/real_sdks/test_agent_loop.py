"""The agent loop of the docs: it warns, compacts, and passes both type checkers in strict mode."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from brimline.testing.fake_model import FakeModel, Reply, Scenario, ToolCall

from .bill import held

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "example-agent.md"
MAX_LINES = 40
TIMEOUT_S = 300

CLOCK = (ToolCall("clock"),)
FILLING = Scenario(
    main=(
        *(Reply(tools=CLOCK, added=added) for added in (150_000, 350_000, 550_000, 750_000)),
        Reply(text="It was noon.", added=760_000),
        Reply(tools=CLOCK, added=5_000),
        Reply(text="Noon.", added=9_000),
    )
)
"""Four calls fill the window to 75 percent; the fifth writes the summary, two more follow."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The example in a file of its own."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    file = tmp_path / "loop.py"
    file.write_text(code)
    return file


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    path = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=path | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_loop_is_short(program: Path) -> None:
    assert len([line for line in program.read_text().splitlines() if line.strip()]) <= MAX_LINES


def test_loop_warns_and_compacts(program: Path) -> None:
    """Levels fire at 55 and 75 percent; the call after that follows a compaction."""
    with FakeModel(FILLING) as fake:
        printed = run(
            sys.executable,
            program,
            folder=program.parent,
            ANTHROPIC_BASE_URL=fake.base_url,
            ANTHROPIC_API_KEY="dummy",
        )
        assert len(fake.billed) == len(FILLING.main)
        assert printed.splitlines() == [
            "level 50: 55.0 % of the window",
            "level 65: 75.0 % of the window",
            f"{held(fake.billed[-1])} tokens held in cycle 1",
        ]


def test_loop_passes_pyright_in_strict_mode(program: Path) -> None:
    venv = Path(sys.prefix)
    config = {"strict": ["."], "venvPath": str(venv.parent), "venv": venv.name}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(config))
    printed = run(sys.executable, "-m", "pyright", "--project", ".", folder=program.parent)
    assert "0 errors" in printed


@pytest.mark.long  # pyright checks the same
def test_loop_passes_mypy_in_strict_mode(program: Path) -> None:
    run(sys.executable, "-m", "mypy", "--strict", program, folder=program.parent)
