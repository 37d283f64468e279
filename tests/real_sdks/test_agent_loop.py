"""The agent loop of the docs: it never overflows, and passes both type checkers in strict mode."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from brimline.testing.fake_model import FakeModel, Reply, Scenario, ToolCall

from .bill import held, sent

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "example-agent.md"
MAX_LINES = 60
TIMEOUT_S = 300

WINDOW = 12_000
SUMMARISE = "Summarise what is done"
SUMMARY = Reply(text="The notes say little.", when=SUMMARISE)
END = Reply(text="That is all.")


def read(tokens: int, added: int | None = None) -> Reply:
    """A reply that reads a file of this many tokens."""
    return Reply(tools=(ToolCall("read", {"path": f"{tokens}.txt"}),), added=added)


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


def play(program: Path, scenario: Scenario) -> tuple[list[str], FakeModel]:
    """Run the loop in the fake's window, with files of words to read; returns what it printed."""
    code = program.read_text()
    small = code.replace("Tracker(model=MODEL,", f"Tracker(model=MODEL, window={WINDOW},")
    assert small != code
    program.write_text(small.replace('"claude-opus-5-5", 4_000', '"claude-opus-5-5", 1_000'))
    for reply in scenario.main:
        for tool in reply.tools:
            path = program.parent / str(tool.input["path"])
            path.write_text("word " * (4 * int(path.stem) // 5))
    with FakeModel(msgspec.structs.replace(scenario, window=WINDOW)) as fake:
        printed = run(
            sys.executable,
            program,
            folder=program.parent,
            ANTHROPIC_BASE_URL=fake.base_url,
            ANTHROPIC_API_KEY="dummy",
        )
    return printed.splitlines(), fake


def statuses(fake: FakeModel) -> list[int]:
    """The statuses of the requests that were refused."""
    return [each.status for each in fake.refused]


def test_steady_growth_is_compacted_before_it_overflows(program: Path) -> None:
    """Twenty results of 1,500 tokens do not fit into the window at once."""
    summaries = (SUMMARY,) * 9  # as many as are asked for; the others are left over
    replies = (*summaries, *(read(1_500) for _ in range(20)), END)
    printed, fake = play(program, Scenario(main=replies))
    assert statuses(fake) == []
    assert max(sent(each) for each in fake.billed) <= WINDOW
    cycles = int(printed[-1].rpartition(" ")[2])
    assert cycles >= 2
    assert [line.split(":")[0] for line in printed[:2]] == ["level 50", "level 65"]
    assert len(fake.billed) == 21 + cycles
    assert printed[-1] == f"{held(fake.billed[-1])} tokens held in cycle {cycles}"


def test_large_result_that_fits_after_a_compaction_is_sent_whole(program: Path) -> None:
    replies = (SUMMARY, read(6_000, added=6_600), END)
    printed, fake = play(program, Scenario(main=replies))
    assert statuses(fake) == []
    first, summary, last = fake.billed
    assert sent(first) > 6_600
    assert 6_000 < sent(last) < 8_000
    assert sent(summary) < WINDOW
    assert printed[-1] == f"{held(last)} tokens held in cycle 1"


def test_result_that_is_larger_than_the_window_is_left_out(program: Path) -> None:
    printed, fake = play(program, Scenario(main=(read(20_000), END)))
    assert statuses(fake) == []
    assert [sent(each) < 1_000 for each in fake.billed] == [True, True]
    assert printed[-1].endswith("in cycle 0")


def test_refused_summary_leaves_the_conversation_as_it_was(program: Path) -> None:
    """The loop goes on, and sends a note in the place of a result that does not fit."""
    refused = Reply(error="prompt_too_long", when=SUMMARISE)
    replies = (refused, refused, read(3_000, added=6_600), read(3_000, added=6_600), END)
    printed, fake = play(program, Scenario(main=replies))
    assert statuses(fake) == [400, 400]
    assert printed.count("no summary: BadRequestError") == 2
    sents = [sent(each) for each in fake.billed]
    assert sents[1] > sents[0] + 2_900
    assert sents[2] < 6_600
    assert printed[-1].endswith("in cycle 0")


def test_loop_passes_pyright_in_strict_mode(program: Path) -> None:
    venv = Path(sys.prefix)
    config = {"strict": ["."], "venvPath": str(venv.parent), "venv": venv.name}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(config))
    printed = run(sys.executable, "-m", "pyright", "--project", ".", folder=program.parent)
    assert "0 errors" in printed


@pytest.mark.long  # pyright checks the same
def test_loop_passes_mypy_in_strict_mode(program: Path) -> None:
    run(sys.executable, "-m", "mypy", "--strict", program, folder=program.parent)
