"""Several setups at once, and setups that are killed."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.jsonc import parse
from brimline.setup.entries import has_our_entries
from brimline.setup.manifest import find_status_line

from .machine import Machine

pytestmark = pytest.mark.slow

TEXT = '{\n  "model": "opus",\n  "statusLine": {"type": "command", "command": "mine"}\n}\n'

# Installs and removes agents in turns.
PROGRAM = """
import sys
from pathlib import Path
from brimline.agents.hook_command import Program
from brimline.setup.install import SetupOptions
from brimline.setup.plan import apply, plan
from brimline.transcripts.source import Places
root, start, times, *what = sys.argv[1:]
places = Places(Path(root, "home"), {})
print("begun", flush=True)
for number in range(int(times)):
    program = Program("/python", "/client.py", "/state/hook.sock", "/state/spool", start)
    remove = what[number % len(what)] == "out"
    wish = SetupOptions(program, Path(root, "state"), Path(root, "project"), remove=remove)
    for change in plan(["claude", "codex", "gemini"], places, wish):
        apply(change)
"""


def started(root: Path, start: str, times: int, *what: str) -> "subprocess.Popen[str]":
    """A process that sets up; `what` is `in` or `out`, in turns."""
    words = [sys.executable, "-c", PROGRAM, str(root), start, str(times), *what]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(*processes: "subprocess.Popen[str]") -> None:
    """Wait until each has ended well."""
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")


def test_several_at_once(tmp_path: Path) -> None:
    """Of several installations at once one wins everywhere; each hook is there once."""
    machine = Machine(tmp_path)
    machine.write(TEXT)
    finished(*(started(tmp_path, f"/{name}/brimline-hook", 5, "in") for name in "abc"))
    for agent in ("claude", "codex", "gemini"):
        told = machine.settings(agent)["hooks"]
        assert list(told) == list(get_agent(agent).install_spec.events)
        assert all(len(groups) == 1 for groups in told.values())
        assert len({json.dumps(groups) for groups in told.values()}) == 1
    machine.take_out()
    assert machine.file().read_text() == TEXT


def test_in_and_out_at_once(tmp_path: Path) -> None:
    """However two that undo each other meet, the user's own is never lost."""
    machine = Machine(tmp_path)
    machine.write(TEXT)
    finished(*(started(tmp_path, "/a/brimline-hook", 12, *turns) for turns in (("in", "out"),) * 2))
    machine.set_up()
    found = find_status_line(machine.wish.state, None)
    assert found is not None
    assert found.own is not None
    assert found.own.command == "mine"
    machine.take_out()
    assert machine.file().read_text() == TEXT
    assert machine.around() == ["settings.json"]


@pytest.mark.parametrize("round", range(12))
def test_killed_half_way(tmp_path: Path, round: int) -> None:
    """Killed at any moment, setup leaves the old file or the new one, and can be done again."""
    machine = Machine(tmp_path)
    path = machine.write(TEXT)
    process = started(tmp_path, "/a/brimline-hook", 1_000, "in", "out")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(random.Random(round).uniform(0, 0.3))
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stdout.close()
    process.stderr.close()
    text = path.read_text()
    assert text == TEXT or has_our_entries(
        parse(text, get_agent("claude").install_spec.dialect, "f")
    )
    machine.set_up()
    machine.take_out()
    assert (path.read_text(), machine.around()) == (TEXT, ["settings.json"])
