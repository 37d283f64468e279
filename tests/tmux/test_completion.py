"""`brimline completion` in the real shells: what Tab completes."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.cli.completion import INSTALL, SCRIPTS
from system_programs import require_program

from .terminal import Terminal

pytestmark = pytest.mark.slow

START = {
    "bash": ("bash", "--norc", "--noprofile"),
    "zsh": ("zsh", "-f"),
    "fish": ("fish", "--no-config"),
}
LOAD = dict(zip(SCRIPTS, (line.strip() for line in INSTALL.splitlines()[1::2]), strict=True))
PREPARE = {"zsh": "autoload -U compinit && compinit -D; "}


@pytest.fixture(params=START)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    """A shell in a terminal, with the completion of Brimline loaded as its help says."""
    name = str(request.param)
    require_program(name)
    bin = Path(sys.executable).parent
    path = f"{bin}:{os.environ['PATH']}"
    terminal = Terminal(START[name], tmp_path, {"PATH": path, "HOME": str(tmp_path)})
    terminal.until(lambda: terminal.text.strip(), "no prompt")
    terminal.type(f"{PREPARE.get(name, '')}{LOAD[name]}; clear; echo rea''dy")
    terminal.press("Enter")
    terminal.until(lambda: "ready" in terminal.text.splitlines()[0], "not prepared")
    yield terminal
    terminal.close()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("brimline insp", "brimline inspect "),
        ("brimline report --proj", "brimline report --project"),
        ("brimline report --by mod", "brimline report --by model"),
        ("brimline status --agent open", "brimline status --agent opencode"),
        ("brimline setup gem", "brimline setup gemini"),
    ],
    ids=["command", "option", "choice", "agent", "argument"],
)
def test_tab_completes(shell: Terminal, typed: str, completed: str) -> None:
    shell.type(typed)
    shell.until(lambda: typed in shell.text, "not typed")
    shell.press("Tab")
    shell.until(lambda: completed in f"{shell.text.rstrip()} ", f"{completed!r} is not completed")
