"""A new agent is a folder of `agents/`, and nothing else has to change for it."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import brimline

FOLDER = Path(__file__).parent / "otter"
TIMEOUT_S = 60


class Installation:
    """A copy of Brimline with Otter's folder in it, and a home with one session of Otter."""

    def __init__(self, root: Path) -> None:
        self.packages, self.home = root / "packages", root / "home"
        package = self.packages / "brimline"
        shutil.copytree(
            Path(brimline.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(FOLDER, package / "agents" / "otter")
        self.transcript = self.home / ".otter" / "s1.otter"
        self.transcript.parent.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PYTHONPATH": str(self.packages),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root),
        }
        now = time.time()
        self.write(otter="s1", cwd=str(self.home), window=10_000, at=now - 60)
        self.write(user="Count the fish", at=now - 50)
        self.write(call="c1", reply="There are nine.", tokens=8_990, at=now - 40)

    def write(self, **record: Any) -> None:
        """Append a record to the transcript."""
        with self.transcript.open("a") as file:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def run(self, *words: str, stdin: bytes = b"") -> str:
        """The output of a command that succeeds."""
        result = subprocess.run(
            [sys.executable, "-m", "brimline", *words],
            env=self.env,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout.decode()

    def hook(self, event: str) -> str:
        """The answer to a hook, which is run as `setup` wrote it."""
        hooks = json.loads((self.home / ".otter" / "hooks.json").read_text())["hooks"]
        command = hooks[event][0]["hooks"][0]["command"]
        sent = {
            "session_id": "s1",
            "hook_event_name": event,
            "transcript_path": str(self.transcript),
            "cwd": str(self.home),
        }
        result = subprocess.run(
            ["sh", "-c", command],
            env=self.env,
            input=json.dumps(sent).encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return result.stdout.decode()


@pytest.fixture
def otter(tmp_path: Path) -> Installation:
    """An installation that knows Otter."""
    return Installation(tmp_path)


@pytest.fixture
def daemon(otter: Installation) -> Iterator[None]:
    """Its daemon, in the foreground: one in the background does not inherit PYTHONPATH."""
    command = [sys.executable, "-m", "brimline", "serve", "--port", "any"]
    with subprocess.Popen(command, env=otter.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"running" in process.stdout.readline()
        yield
        otter.run("serve", "--stop")


def test_new_agent_is_not_in_status(otter: Installation) -> None:
    """`status` lists its session."""
    (session,) = json.loads(otter.run("status", "--json"))
    assert (session["agent"], session["session_id"], session["percent"]) == ("otter", "s1", 89.9)


def test_new_agent_cannot_be_inspected(otter: Installation) -> None:
    """`inspect` detects its transcript and knows its name and window."""
    shown = otter.run("inspect", str(otter.transcript))
    assert "Otter" in shown
    assert "89.9%" in shown


def test_new_agent_has_no_handoff_draft(otter: Installation) -> None:
    """A draft has what the user asked for and the agent replied."""
    draft = otter.run("handoff", "--draft", "s1")
    assert "Count the fish" in draft
    assert "There are nine." in draft


def test_setup_of_new_agent_cannot_be_removed(otter: Installation) -> None:
    """`setup` writes its hooks, and `setup --remove` leaves nothing."""
    otter.run("setup", "otter")
    assert "SessionStart" in (otter.home / ".otter" / "hooks.json").read_text()
    otter.run("setup", "otter", "--remove")
    assert not (otter.home / ".otter" / "hooks.json").exists()


@pytest.mark.usefixtures("daemon")
def test_new_agent_is_not_told_its_level(otter: Installation) -> None:
    """Its hook answers with the message of the level that its context has reached."""
    otter.run("setup", "otter")
    otter.hook("SessionStart")
    assert "89.9%" in otter.hook("PostToolUse")
