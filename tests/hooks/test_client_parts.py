"""What a client in Python is made of: the interpreter's C modules, and nothing else."""

import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from brimline.hooks.client import autostart, client, exchange, offline, payload

from .agent import CLIENT, Agent, compile_client, python_client
from .test_client_line import CASES

MODULES = {"_json", "_socket", "fcntl", "select"}
"""What it may import beside what the interpreter has at its start."""


def imported(arguments: list[str], stdin: bytes) -> set[str]:
    """The modules that Python imports for a command."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", *arguments]
    env = {"BRIMLINE_AUTOSTART": "0"}
    done = subprocess.run(command, input=stdin, capture_output=True, check=True, env=env)
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.parametrize("kind", ["hook", "statusline", "start"])
@pytest.mark.parametrize("way", [[], ["--no-daemon", "1-1"]], ids=["asking", "handed over"])
def test_imports(tmp_path: Path, kind: str, way: list[str]) -> None:
    """A client imports C modules alone, and only those that it needs."""
    arguments = [str(CLIENT), *way, kind, "claude", str(tmp_path / "x"), str(tmp_path / "spool")]
    body, line = CASES["a call"]
    unneeded = {"_socket"} if way else set[str]()
    assert imported(arguments, body) - imported(["-c", "pass"], b"") == MODULES - unneeded
    assert (tmp_path / "spool").exists()
    assert line


def test_modules_are_compiled() -> None:
    """What it may import has no source in Python."""
    program = "import sys; print(*(getattr(__import__(n), '__file__', 'none') for n in sys.argv))"
    command = [sys.executable, "-I", "-S", "-c", program.replace("sys.argv", "sys.argv[1:]")]
    done = subprocess.run([*command, *MODULES], capture_output=True, text=True, check=True)
    assert not [path for path in done.stdout.split() if path.endswith(".py")]


@pytest.fixture
def moved(tmp_path: Path, folder: Path) -> Agent:
    """An agent whose client is a copy that was never imported."""
    for part in (client, exchange, payload, offline, autostart):
        assert part.__file__
        shutil.copy(part.__file__, tmp_path)
    command = [*python_client()[:-1], str(tmp_path / "client.py")]
    return Agent(command, folder, folder / "hook.sock")


def test_no_cache(moved: Agent) -> None:
    """Without Python's cache it does the same, and writes nothing but the spool."""
    body, line = CASES["a call"]
    assert moved.run(body, "statusline").out == line
    assert len(moved.spooled()) == 1
    assert not Path(moved.command[-1]).with_name("__pycache__").exists()


@pytest.mark.parametrize("keep", [0, 8, 20, 200])
def test_torn_cache(moved: Agent, keep: int) -> None:
    """A cache that a full disk cut off is passed over."""
    for part in ("exchange", "payload", "offline"):
        source = Path(moved.command[-1]).with_name(f"{part}.py")
        command = [sys.executable, "-m", "py_compile", str(source)]
        subprocess.run(command, check=True)
        cache = Path(cache_from_source(str(source)))
        cache.write_bytes(cache.read_bytes()[:keep])
    body, line = CASES["a call"]
    done = moved.run(body, "statusline")
    assert (done.code, done.out, done.told) == (0, line, b"")
    assert len(moved.spooled()) == 1


def test_relative_path(moved: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds its parts also where it is run from its own folder."""
    monkeypatch.chdir(Path(moved.command[-1]).parent)
    here = Agent([*moved.command[:-1], "client.py"], moved.folder, moved.socket)
    body, line = CASES["a call"]
    assert here.run(body, "statusline").out == line


def test_no_python(compiled: Path, folder: Path) -> None:
    """A compiled client whose Python is gone harms nobody."""
    agent = Agent([str(compiled), "/nowhere/python", str(CLIENT)], folder, folder / "hook.sock")
    done = agent.run(b"{}")
    assert (done.code, done.out, done.told) == (0, b"", b"")


def test_compiles_without_a_warning(compiled: Path, tmp_path: Path) -> None:
    """The compiler has nothing to say, though it is asked."""
    compile_client(tmp_path / "again")
    assert (tmp_path / "again").stat().st_size == compiled.stat().st_size
