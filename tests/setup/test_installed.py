"""What is found of ours, whichever way it was set up."""

from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.setup.installed import InstalledHooks, find_installed

from .machine import Machine, program

ADDRESS = "http://127.0.0.1:8421"


def found(machine: Machine, agent: str = "claude", **wishes: Any) -> InstalledHooks:
    """What is found in the user's settings."""
    wish = machine.wish if not wishes else type(machine.wish)(**{**_plain(machine), **wishes})
    return find_installed(agent, machine.places, wish, "user")


def _plain(machine: Machine) -> dict[str, Any]:
    wish = machine.wish
    return {"program": wish.program, "state": wish.state, "cwd": wish.cwd}


def test_nothing(machine: Machine) -> None:
    """Where nothing is set up every event is missing."""
    told = found(machine)
    assert (told.events, told.missing, told.problem) == (
        (),
        get_agent("claude").install_spec.events,
        None,
    )


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("autostart", [False, True])
def test_as_set_up(machine: Machine, agent: str, autostart: bool) -> None:
    """Every hook is there and up to date; whether it starts the daemon is told."""
    machine.set_up(agent, autostart=autostart)
    told = found(machine, agent)
    assert (told.events, told.missing, told.outdated) == (
        tuple(get_agent(agent).install_spec.events),
        (),
        (),
    )
    assert told.autostart is autostart


def test_one_hook_starts_the_daemon(machine: Machine) -> None:
    """It is the start of a session's, and no other, also where the others post."""
    machine.set_up(autostart=True, transport="http")
    kinds = {event: hook.get("args", [None] * 3)[2] for event, [hook] in machine.hooks().items()}
    assert kinds.pop("SessionStart") == "start"
    assert set(kinds.values()) == {None}
    assert found(machine).addresses == (ADDRESS,)
    machine.set_up(autostart=False, transport="command")
    kinds = {event: hook["args"][2] for event, [hook] in machine.hooks().items()}
    assert set(kinds.values()) == {"hook"}


def test_of_another_installation(machine: Machine) -> None:
    """Hooks that run another installation's client are old."""
    machine.set_up(program=program("/old/brimline-hook"))
    assert found(machine).outdated == tuple(get_agent("claude").install_spec.events)


def test_some_are_missing(machine: Machine) -> None:
    """An event whose hook somebody took out is named."""
    machine.set_up()
    path = machine.file()
    path.write_text(path.read_text().replace('"PreCompact"', '"Other"'))
    assert found(machine).missing == ("PreCompact",)


OFF = '{"disableAllHooks": true}'
ON = '{"disableAllHooks": false}'


@pytest.mark.parametrize(
    ("user", "project", "local", "by"),
    [
        (OFF, "{}", "{}", "user"),
        ("{}", OFF, "{}", "project"),
        ("{}", "{}", OFF, "local"),
        (OFF, OFF, OFF, "local"),
        (OFF, ON, "{", None),
        (OFF, "{}", ON, None),
        ("{}", '{"disableAllHooks": "yes"}', "{}", None),
    ],
)
def test_switched_off(
    machine: Machine, user: str, project: str, local: str, by: str | None
) -> None:
    """The file that is nearest to the project tells whether hooks are run, and is named."""
    folder = machine.project / ".claude"
    folder.mkdir()
    files = {
        "user": machine.write(user),
        "project": folder / "settings.json",
        "local": folder / "settings.local.json",
    }
    files["project"].write_text(project)
    files["local"].write_text(local)
    machine.set_up()
    told = found(machine).disabled_by
    assert (told and (told.setting, told.path)) == (by and ("disableAllHooks", files[by]))


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ('{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
        ('{"hooksConfig": {"disabled": ["x", "brimline"]}}', "hooksConfig.disabled: brimline"),
        ('{"hooksConfig": {"enabled": true, "disabled": ["x"]}}', None),
        ('{"disableAllHooks": true}', None),
    ],
)
def test_switched_off_in_gemini(machine: Machine, text: str, setting: str | None) -> None:
    """Gemini CLI has a switch of its own, and a list of hooks that it does not run."""
    machine.write(text, "gemini")
    machine.set_up("gemini")
    told = found(machine, "gemini").disabled_by
    assert (told and told.setting) == setting


def test_status_line(machine: Machine) -> None:
    """It is told whether ours is there, is another installation's, or went after it was put in."""
    assert found(machine).status_line is None
    machine.set_up()
    assert found(machine).status_line == "current"
    assert found(machine, program=program("/new/brimline-hook")).status_line == "old"
    path = machine.file()
    path.write_text(path.read_text().replace("statusLine", "other"))
    assert found(machine).status_line == "gone"
    machine.take_out()
    assert found(machine).status_line is None


def test_status_line_of_others(machine: Machine) -> None:
    """Where setup never put one in, none is missed; nor has another agent one."""
    machine.write('{"statusLine": {"type": "command", "command": "mine"}}')
    machine.set_up("codex")
    assert (found(machine).status_line, found(machine, "codex").status_line) == (None, None)


def test_broken(machine: Machine) -> None:
    """A file that does not parse is told with the place."""
    path = machine.write("{oops")
    assert str(found(machine).problem).startswith(f"{path}: line 1, column 2")


def test_project(tmp_path: Path) -> None:
    """A project's own settings are another place."""
    machine = Machine(tmp_path, scope="project")
    machine.set_up()
    told = find_installed("claude", machine.places, machine.wish, "project")
    assert (told.missing, told.scope) == ((), "project")
    assert find_installed("claude", machine.places, machine.wish, "user").events == ()
