"""Detection of installed hooks, however they were set up."""

import json
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.install.installed import InstalledHooks, find_installed

from .machine import HOOK, Machine, program

ADDRESS = "http://127.0.0.1:8421"


def installed(machine: Machine, agent: str = "claude", **changes: Any) -> InstalledHooks:
    """The hooks in the user's settings."""
    options = (
        machine.options if not changes else type(machine.options)(**{**_plain(machine), **changes})
    )
    return find_installed(agent, machine.places, options, "user")


def _plain(machine: Machine) -> dict[str, Any]:
    options = machine.options
    return {"program": options.program, "state": options.state, "cwd": options.cwd}


def test_every_event_is_missing_before_setup(machine: Machine) -> None:
    hooks = installed(machine)
    assert (hooks.events, hooks.missing, hooks.reason) == (
        (),
        get_agent("claude").install_spec.events,
        None,
    )


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("autostart", [False, True])
def test_installed_hooks_are_complete_current_and_report_autostart(
    machine: Machine, agent: str, autostart: bool
) -> None:
    machine.set_up(agent, autostart=autostart)
    hooks = installed(machine, agent)
    assert (hooks.events, hooks.missing, hooks.outdated) == (
        tuple(get_agent(agent).install_spec.events),
        (),
        (),
    )
    assert hooks.autostart is autostart


@pytest.mark.parametrize("autostart", [False, True])
def test_every_command_starts_the_daemon_if_autostart_is_on(
    machine: Machine, autostart: bool
) -> None:
    machine.set_up(autostart=autostart, transport="http")
    kinds = {event: hook.get("args", [None] * 2)[1] for event, [hook] in machine.hooks().items()}
    assert kinds.pop("SessionStart") == ("start" if autostart else "hook")
    assert kinds.pop("PreModelSwitch") == ("hook-restart" if autostart else "hook")
    assert set(kinds.values()) == {None}
    assert installed(machine).addresses == (ADDRESS,)
    machine.set_up(autostart=autostart, transport="command")
    kinds = {event: hook["args"][1] for event, [hook] in machine.hooks().items()}
    assert kinds.pop("SessionStart") == ("start" if autostart else "hook")
    assert set(kinds.values()) == {"hook-restart" if autostart else "hook"}
    line = json.loads(machine.file().read_text())["statusLine"]["command"]
    assert line == f"{HOOK} claude {'statusline-restart' if autostart else 'statusline'}"


def test_hooks_that_only_start_the_daemon_with_a_session_are_outdated(machine: Machine) -> None:
    machine.set_up(autostart=True)
    path = machine.file()
    path.write_text(path.read_text().replace("-restart", ""))
    hooks = installed(machine)
    assert hooks.outdated == tuple(e for e in hooks.events if e != "SessionStart")
    assert (hooks.autostart, hooks.status_line) == (True, "old")


def test_hooks_of_another_installation_are_outdated(machine: Machine) -> None:
    machine.set_up(program=program("/old"))
    assert installed(machine).outdated == tuple(get_agent("claude").install_spec.events)


def test_removed_hook_is_named_as_missing(machine: Machine) -> None:
    machine.set_up()
    path = machine.file()
    path.write_text(path.read_text().replace('"PreCompact"', '"Other"'))
    assert installed(machine).missing == ("PreCompact",)


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
def test_nearest_file_decides_whether_hooks_are_disabled(
    machine: Machine, user: str, project: str, local: str, by: str | None
) -> None:
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
    disabled_by = installed(machine).disabled_by
    assert (disabled_by and (disabled_by.setting, disabled_by.path)) == (
        by and ("disableAllHooks", files[by])
    )


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ('{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
        ('{"hooksConfig": {"disabled": ["x", "brimline"]}}', "hooksConfig.disabled: brimline"),
        ('{"hooksConfig": {"enabled": true, "disabled": ["x"]}}', None),
        ('{"disableAllHooks": true}', None),
    ],
)
def test_gemini_switch_and_disabled_list_are_read(
    machine: Machine, text: str, setting: str | None
) -> None:
    machine.write(text, "gemini")
    machine.set_up("gemini")
    disabled_by = installed(machine, "gemini").disabled_by
    assert (disabled_by and disabled_by.setting) == setting


def test_status_line_is_present_outdated_or_removed_since(machine: Machine) -> None:
    assert installed(machine).status_line is None
    machine.set_up()
    assert installed(machine).status_line == "current"
    assert installed(machine, program=program("/new")).status_line == "old"
    path = machine.file()
    path.write_text(path.read_text().replace("statusLine", "other"))
    assert installed(machine).status_line == "gone"
    machine.remove()
    assert installed(machine).status_line is None


def test_status_line_that_setup_never_installed_is_not_missing(machine: Machine) -> None:
    machine.write('{"statusLine": {"type": "command", "command": "mine"}}')
    machine.set_up("codex")
    assert (installed(machine).status_line, installed(machine, "codex").status_line) == (None, None)


def test_broken_file_is_reported_with_the_place(machine: Machine) -> None:
    path = machine.write("{oops")
    assert str(installed(machine).reason).startswith(f"{path}: line 1, column 2")


def test_project_settings_are_separate(tmp_path: Path) -> None:
    machine = Machine(tmp_path, scope="project")
    machine.set_up()
    hooks = find_installed("claude", machine.places, machine.options, "project")
    assert (hooks.missing, hooks.scope) == ((), "project")
    assert find_installed("claude", machine.places, machine.options, "user").events == ()
