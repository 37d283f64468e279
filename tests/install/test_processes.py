"""Several setups at once, and killed setups."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.files.jsonc import parse
from brimline.install.entries import has_our_entries
from brimline.install.manifest import MANIFEST_NAME, find_status_line

from .machine import FILES, Machine

pytestmark = pytest.mark.slow

TEXT = '{\n  "model": "opus",\n  "statusLine": {"type": "command", "command": "mine"}\n}\n'

# Installs and removes agents in turns.
PROGRAM = """
import sys
from pathlib import Path
from brimline.agents.hook_command import Program
from brimline.install.install import SetupOptions
from brimline.install.plan import apply, plan
from brimline.agents.transcripts.source import Places
root, start, times, *what = sys.argv[1:]
places = Places(Path(root, "home"), {})
print("begun", flush=True)
for number in range(int(times)):
    program = Program("/python", "/client.py", f"{start}/hook.sock", f"{start}/spool")
    remove = what[number % len(what)] == "out"
    wish = SetupOptions(program, Path(root, "state"), Path(root, "project"), remove=remove)
    for change in plan(["claude", "codex", "gemini"], places, wish):
        apply(change)
"""


def started(root: Path, start: str, times: int, *actions: str) -> "subprocess.Popen[str]":
    """A process that runs setup; `actions` are `in` and `out`, in turns."""
    words = [sys.executable, "-c", PROGRAM, str(root), start, str(times), *actions]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(*processes: "subprocess.Popen[str]") -> None:
    """Wait until each has succeeded."""
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")


def test_concurrent_setups_leave_each_hook_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write(TEXT)
    finished(*(started(tmp_path, f"/{name}", 5, "in") for name in "abc"))
    for agent in ("claude", "codex", "gemini"):
        hooks = machine.settings(agent)["hooks"]
        assert list(hooks) == list(get_agent(agent).install_spec.events)
        assert all(len(groups) == 1 for groups in hooks.values())
        assert len({json.dumps(groups) for groups in hooks.values()}) == 1
    machine.remove()
    assert machine.file().read_text() == TEXT


def test_concurrent_setup_and_removal_keep_the_users_status_line(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write(TEXT)
    finished(*(started(tmp_path, "/a", 12, *turns) for turns in (("in", "out"),) * 2))
    machine.set_up()
    status_line = find_status_line(machine.options.state, None)
    assert status_line is not None
    assert status_line.own is not None
    assert status_line.own.command == "mine"
    machine.remove()
    assert machine.file().read_text() == TEXT
    assert machine.folder_names() == ["settings.json"]
    assert not (machine.options.state / MANIFEST_NAME).exists()


def test_concurrent_removal_leaves_no_hook_without_its_launcher(tmp_path: Path) -> None:
    """One process removes the last agent, and with it the launcher, while others add agents."""
    home, state = tmp_path / "home", tmp_path / "state"
    home.mkdir()
    env = {"HOME": str(home), "BRIMLINE_STATE_DIR": str(state), "PATH": "/nowhere"}
    for _ in range(3):
        runs = [
            subprocess.Popen(
                [sys.executable, "-m", "brimline", "setup", *words],
                cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for words in (["claude"], ["claude", "--remove"], ["codex"], ["codex", "--remove"])
        ]  # fmt: skip
        finished(*runs)
        files = [home / name for name in (FILES["claude"], FILES["codex"])]
        is_used = any(file.exists() and "brimline-hook" in file.read_text() for file in files)
        assert (state / "brimline-hook").exists() or not is_used


@pytest.mark.parametrize("round", range(12))
def test_killed_setup_leaves_the_old_or_new_file_and_can_be_repeated(
    tmp_path: Path, round: int
) -> None:
    machine = Machine(tmp_path)
    path = machine.write(TEXT)
    process = started(tmp_path, "/a", 1_000, "in", "out")
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
    for agent in ("claude", "codex", "gemini"):
        machine.remove(agent)
    assert (path.read_text(), machine.folder_names()) == (TEXT, ["settings.json"])
    assert list(machine.options.state.iterdir()) == []
