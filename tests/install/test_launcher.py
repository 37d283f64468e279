"""The launcher in the state folder: what it runs, when it is updated, and when it is removed."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from brimline.agents.hook_command import Program
from brimline.errors import InvalidSettings
from brimline.install.installed import remove_unused_launcher
from brimline.install.launcher import (
    find_cache,
    is_gone,
    read_launcher,
    refresh_launcher,
    write_launcher,
)
from brimline.install.manifest import MANIFEST_NAME

from .machine import Machine

# Prints its arguments, one per line.
PRINTER = '#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n'


def installation(root: Path, state: Path, has_compiled: bool = True) -> Program:
    """An installation whose Python and compiled client print their arguments."""
    folder = root / "it's #1 \udce9"
    folder.mkdir(parents=True, exist_ok=True)
    python, script, compiled = (folder / name for name in ("python", "client.py", "brimline-hook"))
    script.touch()
    for program in (python, compiled) if has_compiled else (python,):
        program.write_text(PRINTER)
        program.chmod(0o755)
    socket, spool = str(state / "hook.sock"), str(state / "spool")
    return Program(str(python), str(script), socket, spool, str(compiled) if has_compiled else None)


def run(program: Program, *words: str) -> list[str]:
    """Run the launcher with these arguments; returns what it printed."""
    result = subprocess.run(
        [program.launcher, *words], capture_output=True, stdin=subprocess.DEVNULL, check=True
    )
    assert result.stderr == b""
    return os.fsdecode(result.stdout).splitlines()


def test_launcher_runs_the_compiled_client_if_there_is_one(tmp_path: Path) -> None:
    program = installation(tmp_path, tmp_path)
    write_launcher(program)
    paths = [program.python, program.script, "start", "claude", program.socket, program.spool]
    assert run(program, "claude", "start") == ["brimline-hook", *paths]
    Path(str(program.compiled)).unlink()
    assert run(program, "claude", "start") == ["python", "-I", "-S", *paths[1:]]


def test_event_that_the_daemon_may_know_is_passed_to_the_python_client(tmp_path: Path) -> None:
    program = installation(tmp_path, tmp_path)
    write_launcher(program)
    assert run(program, "pi", "delivered", "17-4")[:7] == [
        "python", "-I", "-S", program.script, "--no-daemon", "17-4", "delivered",
    ]  # fmt: skip


@pytest.mark.parametrize("has_compiled", [True, False])
def test_launcher_can_be_read_back_with_any_path(tmp_path: Path, has_compiled: bool) -> None:
    program = installation(tmp_path / "new\nline 'n \"quote", tmp_path, has_compiled)
    write_launcher(program)
    assert read_launcher(tmp_path) == program


@pytest.mark.parametrize("text", [None, b"", b"#!/bin/sh\n", b"python='", b"\xff"])
def test_file_that_is_no_launcher_is_read_as_none(tmp_path: Path, text: bytes | None) -> None:
    if text is not None:
        (tmp_path / "brimline-hook").write_bytes(text)
    assert read_launcher(tmp_path) is None


def test_launcher_is_the_users_alone_and_executable(tmp_path: Path) -> None:
    program = installation(tmp_path, tmp_path / "state")
    write_launcher(program)
    path = Path(program.launcher)
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o600)
    write_launcher(program)
    assert path.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["brimline-hook"]


def test_launcher_that_cannot_be_written_is_a_settings_error(tmp_path: Path) -> None:
    program = installation(tmp_path, tmp_path)
    Path(program.launcher).mkdir()
    with pytest.raises(InvalidSettings, match="brimline-hook"):
        write_launcher(program)


def test_installation_is_gone_without_its_python_or_its_client(tmp_path: Path) -> None:
    """A dangling link to Python is left when that is uninstalled, a client when it was replaced."""
    program = installation(tmp_path, tmp_path)
    assert not is_gone(program)
    assert is_gone(msgspec.structs.replace(program, script=str(tmp_path / "python3.12/client.py")))
    Path(program.python).unlink()
    Path(program.python).symlink_to(tmp_path / "no python")
    assert is_gone(program)


# The update after an upgrade.


def test_launcher_of_a_gone_installation_is_updated(tmp_path: Path) -> None:
    old, new = (installation(tmp_path / name, tmp_path) for name in ("old", "new"))
    write_launcher(old)
    refresh_launcher(new)
    assert read_launcher(tmp_path) == old, "another installation that works is kept"
    Path(old.script).unlink()
    refresh_launcher(new)
    assert read_launcher(tmp_path) == new


def test_launcher_of_the_same_environment_is_updated(tmp_path: Path) -> None:
    program = installation(tmp_path, tmp_path)
    write_launcher(msgspec.structs.replace(program, compiled=None))
    refresh_launcher(program)
    assert read_launcher(tmp_path) == program
    path = Path(program.launcher)
    text = path.read_bytes()
    path.write_bytes(text + b"# an earlier version's\n")
    refresh_launcher(program)
    assert path.read_bytes() == text


def test_unreadable_launcher_is_replaced(tmp_path: Path) -> None:
    program = installation(tmp_path, tmp_path)
    Path(program.launcher).write_text("#!/bin/sh\n# an earlier version's\n")
    refresh_launcher(program)
    assert read_launcher(tmp_path) == program


def test_launcher_is_not_created_without_setup_nor_for_a_cache(tmp_path: Path) -> None:
    program = installation(tmp_path / "uv/archive-v0/x/bin", tmp_path)
    refresh_launcher(program)
    assert not Path(program.launcher).exists()
    old = msgspec.structs.replace(program, python="/gone/python")
    write_launcher(old)
    (tmp_path / "uv/CACHEDIR.TAG").touch()
    refresh_launcher(program)
    assert read_launcher(tmp_path) == old


def test_environment_in_a_cache_is_found_by_the_mark_above_it(tmp_path: Path) -> None:
    """uv 0.13.7 marks its cache and each environment, also that of an installed tool."""
    python = tmp_path / "uv/archive-v0/a1/bin/python"
    python.parent.mkdir(parents=True)
    (python.parents[1] / "CACHEDIR.TAG").touch()
    assert find_cache(python) is None
    (tmp_path / "uv/CACHEDIR.TAG").touch()
    assert find_cache(python) == tmp_path / "uv"
    assert find_cache(Path(sys.executable)) is None


def test_environment_of_pipx_run_is_in_a_cache_and_an_installed_one_is_not(tmp_path: Path) -> None:
    for folder in ("cache/pipx/0123456789abcde", "share/pipx/venvs/brimline"):
        (tmp_path / folder / "bin").mkdir(parents=True)
        (tmp_path / folder / "pipx_metadata.json").touch()
    temporary = tmp_path / "cache/pipx/0123456789abcde/bin/python"
    assert find_cache(temporary) == tmp_path / "cache/pipx"
    assert find_cache(tmp_path / "share/pipx/venvs/brimline/bin/python") is None


# Removal.


def machine_with_launcher(root: Path) -> Machine:
    machine = Machine(root)
    program = installation(root, machine.options.state)
    machine.options = msgspec.structs.replace(machine.options, program=program)
    write_launcher(program)
    return machine


def has_launcher(machine: Machine) -> bool:
    """Whether the launcher is left when those that nobody uses are removed."""
    remove_unused_launcher(machine.places, machine.options)
    return Path(machine.options.program.launcher).exists()


def test_launcher_stays_until_the_last_agent_is_removed(tmp_path: Path) -> None:
    machine = machine_with_launcher(tmp_path)
    for agent in ("claude", "pi"):
        machine.set_up(agent)
    machine.set_up("claude", scope="project", cwd=tmp_path / "elsewhere")
    machine.remove("claude")
    assert has_launcher(machine)
    machine.remove("pi")
    assert has_launcher(machine)
    machine.remove("claude", scope="project", cwd=tmp_path / "elsewhere")
    assert not has_launcher(machine)
    assert not has_launcher(machine)


def test_launcher_stays_if_the_manifest_is_lost(tmp_path: Path) -> None:
    machine = machine_with_launcher(tmp_path)
    machine.set_up("codex")
    (machine.options.state / MANIFEST_NAME).unlink()
    assert has_launcher(machine)


def test_deleted_project_does_not_keep_the_launcher(tmp_path: Path) -> None:
    machine = machine_with_launcher(tmp_path)
    machine.set_up("codex", scope="project")
    (machine.project / ".codex/hooks.json").unlink()
    assert not has_launcher(machine)
