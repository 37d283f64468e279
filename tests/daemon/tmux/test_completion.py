"""`brimline completion` in the real shells: what Tab completes."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
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


SESSIONS = {"3f2a-one": "Fix: the parser's [end]", "3f2b-two": "Write $HOME docs"}
COMPLETION_MAX_S = 0.3


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two sessions, in the index."""
    for id, title in SESSIONS.items():
        message = {"role": "user", "content": title}
        record = {"type": "user", "sessionId": id, "cwd": "/p", "uuid": "u1", "message": message}
        path = tmp_path / ".claude" / "projects" / "-p" / f"{id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record | {"timestamp": "2026-11-01T10:00:00.000Z"}) + "\n")
        os.utime(path, (time.time() - len(title), time.time() - len(title)))
    run(tmp_path, "status", "--all")
    return tmp_path


def run(home: Path, *arguments: str) -> str:
    """The output of a command as a process of its own."""
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    words = [sys.executable, "-m", "brimline", *arguments]
    return subprocess.run(
        words, env=env, cwd=home, capture_output=True, check=True, text=True
    ).stdout


@pytest.fixture(params=START)
def shell(request: pytest.FixtureRequest, home: Path) -> Iterator[Terminal]:
    """A shell in a terminal, with the completion of Brimline loaded as its help says."""
    name = str(request.param)
    require_program(name)
    bin = Path(sys.executable).parent
    path = f"{bin}:{os.environ['PATH']}"
    terminal = Terminal(START[name], home, {"PATH": path, "HOME": str(home)})
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
        ("brimline inspect 3f2a", "brimline inspect 3f2a-one"),
        ("brimline send 3f2b", "brimline send 3f2b-two"),
        ("brimline handoff --ask 3f2b", "brimline handoff --ask 3f2b-two"),
    ],
    ids=["command", "option", "choice", "agent", "argument", "target", "session", "session option"],
)
def test_tab_completes(shell: Terminal, typed: str, completed: str) -> None:
    shell.type(typed)
    shell.until(lambda: typed in shell.text, "not typed")
    shell.press("Tab")
    shell.until(lambda: completed in f"{shell.text.rstrip()} ", f"{completed!r} is not completed")


def test_tab_lists_sessions_with_their_titles(
    shell: Terminal, request: pytest.FixtureRequest
) -> None:
    shell.type("brimline explain 3f2")
    shell.press("Tab", "Tab")
    shell.until(lambda: all(id in shell.text for id in SESSIONS), "sessions are not listed")
    if "bash" not in request.node.name:  # it has no descriptions
        assert all(title in shell.text for title in SESSIONS.values())


def test_sessions_are_listed_fast_the_newest_first(home: Path) -> None:
    """The time is that of the processor: the machine may be busy with other tests."""
    spent = [used_cpu_s()]
    listed = ""
    for _ in range(5):
        listed = run(home, "completion", "sessions")
        spent.append(used_cpu_s())
    newest_first = sorted(SESSIONS.items(), key=lambda each: len(each[1]))
    assert listed.splitlines() == [f"{id}\t{title}" for id, title in newest_first]
    assert min(end - start for start, end in pairwise(spent)) < COMPLETION_MAX_S


def used_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_sessions_are_listed_without_reading_transcripts(home: Path) -> None:
    """What no command has read yet has its agent's name instead of a title."""
    (home / ".claude" / "projects" / "-p" / "4a-new.jsonl").write_text("not read")
    assert run(home, "completion", "sessions").startswith("4a-new\tclaude\n")
