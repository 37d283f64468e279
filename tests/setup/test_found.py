"""What is found of ours, whichever way it was set up."""

from pathlib import Path
from typing import Any

import pytest

from brimline.setup.found import Found, find
from brimline.setup.plan import RECIPES

from .machine import Machine, program

ADDRESS = "http://127.0.0.1:8420"


def found(machine: Machine, agent: str = "claude", **wishes: Any) -> Found:
    """What is found in the user's settings."""
    wish = machine.wish if not wishes else type(machine.wish)(**{**_plain(machine), **wishes})
    return find(agent, machine.places, wish, "user")


def _plain(machine: Machine) -> dict[str, Any]:
    wish = machine.wish
    return {"program": wish.program, "state": wish.state, "cwd": wish.cwd}


def test_nothing(machine: Machine) -> None:
    """Where nothing is set up every event is missing."""
    told = found(machine)
    assert (told.events, told.missing, told.problem) == ((), RECIPES["claude"].events, None)


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("autostart", [False, True])
def test_as_set_up(machine: Machine, agent: str, autostart: bool) -> None:
    """Every hook is there and up to date; whether it starts the daemon is told."""
    machine.set_up(agent, autostart=autostart)
    told = found(machine, agent)
    assert (told.events, told.missing, told.old) == (tuple(RECIPES[agent].events), (), ())
    assert told.autostart is autostart


def test_one_hook_starts_the_daemon(machine: Machine) -> None:
    """It is the start of a session's, and no other, also where the others post."""
    machine.set_up(autostart=True, address=ADDRESS)
    kinds = {event: hook.get("args", [None] * 3)[2] for event, [hook] in machine.hooks().items()}
    assert kinds.pop("SessionStart") == "start"
    assert set(kinds.values()) == {None}
    assert found(machine).posts
    machine.set_up()
    kinds = {event: hook["args"][2] for event, [hook] in machine.hooks().items()}
    assert set(kinds.values()) == {"hook"}


def test_of_another_installation(machine: Machine) -> None:
    """Hooks that run another installation's client are old."""
    machine.set_up(program=program("/old/brimline-hook"))
    assert found(machine).old == tuple(RECIPES["claude"].events)


def test_some_are_missing(machine: Machine) -> None:
    """An event whose hook somebody took out is named."""
    machine.set_up()
    path = machine.file()
    path.write_text(path.read_text().replace('"PreCompact"', '"Other"'))
    assert found(machine).missing == ("PreCompact",)


def test_switched_off(machine: Machine) -> None:
    """Where the user switched all hooks off, that is told."""
    machine.write('{"disableAllHooks": true}')
    machine.set_up()
    assert found(machine).switched_off


def test_broken(machine: Machine) -> None:
    """A file that does not parse is told with the place."""
    path = machine.write("{oops")
    assert str(found(machine).problem).startswith(f"{path}: line 1, column 2")


def test_project(tmp_path: Path) -> None:
    """A project's own settings are another place."""
    machine = Machine(tmp_path, scope="project")
    machine.set_up()
    assert find("claude", machine.places, machine.wish, "project").missing == ()
    assert find("claude", machine.places, machine.wish, "user").events == ()
