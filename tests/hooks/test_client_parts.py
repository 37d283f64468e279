"""The Python client imports only C modules of the interpreter."""

import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from brimline.hooks.client import autostart, client, exchange, offline, payload

from .agent import CLIENT, Agent, compile_client, python_client
from .test_client_unanswered import LINE, OFF, offline_line

# Imported by the client in addition to those of a bare interpreter.
MODULES = {"_json", "_socket", "fcntl", "select"}


def imported_modules(arguments: list[str], stdin: bytes) -> set[str]:
    command = [sys.executable, "-I", "-S", "-X", "importtime", *arguments]
    env = {"BRIMLINE_AUTOSTART": "0"}
    result = subprocess.run(command, input=stdin, capture_output=True, check=True, env=env)
    lines = result.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.parametrize("kind", ["hook", "statusline", "start", "statusline-restart"])
@pytest.mark.parametrize("way", [[], ["--no-daemon", "1-1"]], ids=["asking", "handed over"])
def test_client_imports_only_the_c_modules_it_needs(
    tmp_path: Path, kind: str, way: list[str]
) -> None:
    arguments = [str(CLIENT), *way, kind, "claude", str(tmp_path / "x"), str(tmp_path / "spool")]
    unneeded = {"_socket"} if way else set[str]()
    assert (
        imported_modules(arguments, LINE) - imported_modules(["-c", "pass"], b"")
        == MODULES - unneeded
    )
    assert (tmp_path / "spool").exists()


def test_modules_of_the_client_are_not_written_in_python() -> None:
    program = "import sys; print(*(getattr(__import__(n), '__file__', 'none') for n in sys.argv))"
    command = [sys.executable, "-I", "-S", "-c", program.replace("sys.argv", "sys.argv[1:]")]
    result = subprocess.run([*command, *MODULES], capture_output=True, text=True, check=True)
    assert not [path for path in result.stdout.split() if path.endswith(".py")]


@pytest.fixture
def copied_client(tmp_path: Path, folder: Path) -> Agent:
    """An agent whose client is a copy that was never imported."""
    for part in (client, exchange, payload, offline, autostart):
        assert part.__file__
        shutil.copy(part.__file__, tmp_path)
    command = [*python_client()[:-1], str(tmp_path / "client.py")]
    return Agent(command, folder, folder / "hook.sock")


def test_client_without_a_bytecode_cache_works_and_writes_none(copied_client: Agent) -> None:
    assert copied_client.run(LINE, "statusline").stdout == offline_line(copied_client, OFF)
    assert len(copied_client.take_spooled()) == 1
    assert not Path(copied_client.command[-1]).with_name("__pycache__").exists()


@pytest.mark.parametrize("keep", [0, 8, 20, 200])
def test_truncated_bytecode_cache_is_ignored(copied_client: Agent, keep: int) -> None:
    for part in ("exchange", "payload", "offline"):
        source = Path(copied_client.command[-1]).with_name(f"{part}.py")
        command = [sys.executable, "-m", "py_compile", str(source)]
        subprocess.run(command, check=True)
        cache = Path(cache_from_source(str(source)))
        cache.write_bytes(cache.read_bytes()[:keep])
    line = offline_line(copied_client, OFF)
    result = copied_client.run(LINE, "statusline")
    assert (result.code, result.stdout, result.stderr) == (0, line, b"")
    assert len(copied_client.take_spooled()) == 1


def test_client_runs_from_its_own_folder(
    copied_client: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(copied_client.command[-1]).parent)
    here = Agent(
        [*copied_client.command[:-1], "client.py"], copied_client.folder, copied_client.socket
    )
    assert here.run(LINE, "statusline").stdout == offline_line(here, OFF)


def test_compiled_client_without_python_exits_silently(compiled: Path, folder: Path) -> None:
    agent = Agent([str(compiled), "/nowhere/python", str(CLIENT)], folder, folder / "hook.sock")
    result = agent.run(b"{}")
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")


def test_client_compiles_without_a_warning(compiled: Path, tmp_path: Path) -> None:
    compile_client(tmp_path / "again")
    assert (tmp_path / "again").stat().st_size == compiled.stat().st_size
