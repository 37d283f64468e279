"""Otter's package, installed as a user would, and a home with one session of Otter."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import brimline

PROJECT = Path(__file__).parent / "otter"
RECORDED = PROJECT / "tests" / "recorded" / ".otter"
RECORDED_AT = 1_767_323_090.0  # 40 seconds after the last call
PACKAGE = "otter-brimline"
TIMEOUT_S = 60


def build_wheel(project: Path, folder: Path) -> Path:
    """Build a package as pip does, without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    subprocess.run(command, cwd=project, env=env, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class ScratchEnvironment:
    """An environment with this Brimline and its dependencies, to which packages are added."""

    def __init__(self, root: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
        self.python = root / "bin" / "python"
        (self._packages,) = root.glob("lib/python3*/site-packages")
        ours = [Path(brimline.__file__).parent.parent, *map(Path, sys.path)]
        paths = [str(path) for path in ours if path.name in ("src", "site-packages")]
        (self._packages / "brimline.pth").write_text("\n".join(paths) + "\n")
        command = root / "bin" / "brimline"
        command.write_text(f'#!/bin/sh\nexec {self.python} -m brimline "$@"\n')
        command.chmod(0o755)

    def install(self, wheel: Path) -> None:
        """Add a package without compiled parts."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self._packages)

    def write_package(self, name: str, agent: str, files: dict[str, str]) -> None:
        """Add a package of these files that adds an agent."""
        module = name.replace("-", "_")
        (self._packages / module).mkdir()
        for file, text in files.items():
            (self._packages / module / file).write_text(text)
        info = self._packages / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[brimline.agents]\n{agent} = {module}\n")


class OtterHome:
    """A home with a session of Otter near its window's end, and the user's settings."""

    def __init__(self, root: Path, python: Path) -> None:
        self.home, self.python = root / "home", python
        self.transcript = self.home / ".otter" / "s1.otter"
        self.transcript.parent.mkdir(parents=True)
        self.settings = self.home / ".config" / "brimline" / "config.toml"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root),
        }
        for path in RECORDED.iterdir():
            lines = (
                json.loads(line.replace("/home/dev", str(self.home)))
                for line in path.read_text().splitlines()
            )
            moved = [line | {"at": line["at"] + time.time() - RECORDED_AT} for line in lines]
            (self.transcript.parent / path.name).write_text("".join(map(_line, moved)))

    def write(self, **record: Any) -> None:
        """Append a record to the transcript."""
        record["at"] = time.time()
        with self.transcript.open("a") as file:
            file.write(_line(record))

    def enable(self, *packages: str) -> None:
        """Name packages in the user's settings."""
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(f"agents = {json.dumps(packages)}\n")

    def try_command(
        self, *words: str, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command, whatever its exit code is."""
        return subprocess.run(
            [self.python, "-m", "brimline", *words],
            env=self.env,
            cwd=cwd or self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def shell(self, command: str) -> str:
        """Return what a command line prints."""
        env = self.env | {"PATH": f"{self.python.parent}:{self.env['PATH']}", "LANG": "C.UTF-8"}
        result = subprocess.run(
            ["sh", "-c", command],
            env=env,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return result.stdout + result.stderr

    def run(self, *words: str) -> str:
        """Return the output of a command that succeeds and prints no error."""
        result = self.try_command(*words)
        assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
        return result.stdout

    def hook(self, event: str, **fields: str) -> str:
        """Return the answer to a hook, which is run as `setup` wrote it."""
        hooks = json.loads((self.home / ".otter" / "hooks.json").read_text())["hooks"]
        command = hooks[event][0]["hooks"][0]["command"]
        result = subprocess.run(
            ["sh", "-c", command],
            env=self.env,
            input=json.dumps(self.hook_input(event) | fields),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return result.stdout

    def hook_input(self, event: str) -> dict[str, str]:
        """Return what Otter gives a hook on its standard input."""
        return {
            "session_id": "s1",
            "hook_event_name": event,
            "transcript_path": str(self.transcript),
            "cwd": str(self.home),
        }


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"
