"""Hooks in a client's TOML: tables of ours next to the user's, and removed to the last byte."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.transcripts.source import Places
from brimline.install.installed import find_installed
from brimline.install.plan import plan

from .machine import HOOK, Machine

EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
MINE = '[[hooks]]\nevent = "Stop"\ncommand = "mine"\n'
TABLES = f'# mine\nmodel = "k"\n\n{MINE}\n[tui]\nx = 1'
LIST = 'hooks = [ { event = "Stop", command = "mine" } ] # mine\n\n[tui]\nx = 1\n'
CRLF = 'model = "k"\r\n'


def hooks_of(file: Path) -> list[Mapping[str, Any]]:
    return tomllib.loads(file.read_bytes().decode())["hooks"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("before", [TABLES, LIST, CRLF, "", "\n", "# only\n", None])
def test_file_is_restored_to_the_last_byte(machine: Machine, before: str | None) -> None:
    """The user's own hooks stay, in a list or in tables; a second setup changes nothing."""
    file = machine.file("kimi")
    if before is not None:
        machine.write(before, "kimi")
    machine.set_up("kimi")
    ours = [hook for hook in hooks_of(file) if hook["command"] != "mine"]
    assert [hook["event"] for hook in ours] == EVENTS
    assert {(hook["command"], hook["timeout"]) for hook in ours} == {(f"{HOOK} kimi hook", 2)}
    assert all(set(hook) == {"event", "command", "timeout"} for hook in ours)
    assert len(hooks_of(file)) - len(ours) == (before or "").count("mine" + '"')
    assert not machine.plan("kimi").pending
    machine.remove("kimi")
    assert (file.read_bytes().decode() if file.exists() else None) == before
    assert file.parent.exists() == (before is not None)


@pytest.mark.parametrize("before", [TABLES + "\n", LIST, CRLF])
def test_change_by_another_program_stays(machine: Machine, before: str) -> None:
    """A table that was added since, by the user or the client, is kept, and nothing else is."""
    file = machine.write(before, "kimi")
    machine.set_up("kimi")
    more = "\n[more]\ny = 2\n"
    file.write_bytes(file.read_bytes() + more.encode())
    machine.remove("kimi")
    assert tomllib.loads(file.read_text()) == tomllib.loads(before + more)
    if before is not LIST:
        assert file.read_bytes() == (before + more).encode()


def test_hooks_that_the_client_wrote_again_are_removed(machine: Machine) -> None:
    """The client writes its whole file when a setting changes: other layout, other order."""
    file = machine.write(TABLES, "kimi")
    machine.set_up("kimi", autostart=True)
    lines = [
        f"[[hooks]]\ntimeout = {hook.get('timeout', 9)}\ncommand = '{hook['command']}'\n"
        f"event = '{hook['event']}'\n"
        for hook in hooks_of(file)
    ]
    file.write_text("model = 'k'\n" + "".join(lines))
    machine.remove("kimi")
    written = tomllib.loads(file.read_text())
    assert written == {"model": "k", "hooks": [{"timeout": 9, "command": "mine", "event": "Stop"}]}


def test_hooks_without_a_manifest_are_replaced_and_removed(machine: Machine) -> None:
    """If the state folder was lost, what is removed is ours, and the backup is not the original."""
    file = machine.write(TABLES + "\n", "kimi")
    machine.set_up("kimi")
    for left in machine.options.state.glob("setup.json*"):
        left.unlink()
    for backup in file.parent.glob("config.toml.*"):
        backup.unlink()
    machine.set_up("kimi", autostart=True)
    assert [hook["command"] for hook in hooks_of(file)].count(f"{HOOK} kimi hook-restart") == 3
    machine.remove("kimi")
    assert file.read_text() == TABLES + "\n"


@pytest.mark.parametrize("text", ["hooks = 1\n", "[hooks]\nx = 1\n", "a = \n", "\xff"])
def test_file_that_is_not_understood_is_left_alone(machine: Machine, text: str) -> None:
    file = machine.write(text.encode("latin-1"), "kimi")
    change = machine.plan("kimi")
    assert (change.pending, bool(change.reason)) == (False, True)
    installed = find_installed("kimi", machine.places, machine.options, "user")
    assert installed.reason is not None
    assert file.read_bytes() == text.encode("latin-1")


def test_installed_hooks_are_reported(machine: Machine) -> None:
    """Doctor's view: all of them, then one that is missing and one with another command."""
    file = machine.file("kimi")
    machine.set_up("kimi", autostart=True)
    found = find_installed("kimi", machine.places, machine.options, "user")
    assert (list(found.events), found.missing, found.outdated) == (EVENTS, (), ())
    assert found.autostart
    text = (
        file.read_text().replace('"SessionEnd"', '"Interrupt"').replace("hook-restart", "hook", 1)
    )
    file.write_text(text)
    found = find_installed("kimi", machine.places, machine.options, "user")
    assert found.missing == ("SessionEnd",)
    assert set(found.outdated) == {"UserPromptSubmit", "Interrupt"}
    machine.set_up("kimi")
    assert [hook["event"] for hook in hooks_of(file)] == EVENTS


def test_client_without_hooks_of_a_project_is_not_changed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, scope="project")
    [change] = plan(["kimi"], Places(machine.home, {}), machine.options)
    assert (change.pending, change.path, change.reason) == (False, None, None)
    assert change.what == "Kimi Code reads no hooks of a project"
    assert find_installed("kimi", machine.places, machine.options, "project").events == ()
