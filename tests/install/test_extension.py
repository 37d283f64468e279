"""Agents with extensions: Brimline's file among them, and no other file touched."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import all_agents, get_agent
from brimline.install.installed import find_installed
from brimline.install.shared_file import backup_path

from .machine import HOOK, Machine, program

AGENTS = [
    agent.name for agent in all_agents() if agent.has_hooks and agent.install_spec.is_extension
]
pytestmark = pytest.mark.parametrize("agent", AGENTS)


def config(machine: Machine, agent: str) -> Any:
    """The configuration that setup writes into the extension."""
    line = re.search(r"^const CONFIG = (.*)$", machine.file(agent).read_text(), re.MULTILINE)
    assert line
    return json.loads(line[1])


def test_extension_gets_absolute_paths_of_daemon_and_launcher(machine: Machine, agent: str) -> None:
    change = machine.set_up(agent)
    assert (change.path, change.before) == (machine.file(agent), None)
    written = config(machine, agent)
    assert (written["agent"], written["socket"]) == (agent, "/state/hook.sock")
    assert written["launcher"] == HOOK
    assert written["timeoutMs"] == 2000


def test_autostart_option_is_kept_whatever_the_default(machine: Machine, agent: str) -> None:
    for autostart in (True, False):
        machine.set_up(agent, autostart=autostart)
        assert config(machine, agent)["autostart"] is autostart
        machine.set_up(agent, default_autostart=not autostart)
        assert config(machine, agent)["autostart"] is autostart


def test_second_setup_changes_nothing(machine: Machine, agent: str) -> None:
    assert machine.set_up(agent).notes == (get_agent(agent).install_spec.next_step,)
    again = machine.plan(agent)
    assert (again.pending, again.what, again.notes) == (False, "already set up", ())


def test_outdated_or_edited_extension_is_replaced(machine: Machine, agent: str) -> None:
    machine.set_up(agent, program=program("/old"))
    with machine.file(agent).open("a") as file:
        file.write("// mine\n")
    machine.set_up(agent)
    assert f'"{HOOK}"' in machine.file(agent).read_text()
    assert "mine" not in machine.file(agent).read_text()
    machine.remove(agent)
    assert list(machine.places.home.iterdir()) == []


def test_removal_leaves_nothing_even_of_an_edited_extension(machine: Machine, agent: str) -> None:
    machine.set_up(agent)
    with machine.file(agent).open("a") as file:
        file.write("// mine\n")
    removal = machine.remove(agent)
    assert (removal.what, removal.after) == ("Brimline's extension is removed", None)
    assert list(machine.places.home.iterdir()) == []
    assert machine.remove(agent).what == "nothing to remove"


@pytest.mark.parametrize("text", ["export default () => {}\n", ""])
def test_foreign_file_of_the_same_name_is_left_alone(
    machine: Machine, agent: str, text: str
) -> None:
    path = machine.write(text, agent)
    change = machine.set_up(agent)
    assert change.reason == f"{path}: file: it exists and is not Brimline's. Move it away first"
    assert machine.remove(agent).what == "nothing to remove"
    assert path.read_text() == text
    assert not backup_path(path).exists()


def test_project_scope_changes_nothing_in_the_home(tmp_path: Path, agent: str) -> None:
    machine = Machine(tmp_path, scope="project")
    project_file = get_agent(agent).install_spec.project_file
    assert project_file is not None
    change = machine.set_up(agent)
    assert change.path == machine.project / project_file
    assert any("paths of this machine" in note for note in change.notes)
    assert list(machine.home.iterdir()) == []


def test_extension_uses_the_socket_even_with_http_transport(machine: Machine, agent: str) -> None:
    assert "commands" in machine.plan(agent, transport="http").notes[0]


def test_path_that_the_file_cannot_hold_is_refused(machine: Machine, agent: str) -> None:
    change = machine.set_up(agent, program=program("/caf\udce9"))
    assert "not UTF-8" in str(change.reason)
    assert not machine.file(agent).exists()


def test_installed_extension_is_absent_foreign_current_or_outdated(
    machine: Machine, agent: str
) -> None:
    events = tuple(get_agent(agent).install_spec.events)
    assert find_installed(agent, machine.places, machine.options, "user").missing == events
    machine.write("", agent)
    assert find_installed(agent, machine.places, machine.options, "user").missing == events
    machine.file(agent).unlink()
    machine.set_up(agent, autostart=True)
    installed = find_installed(agent, machine.places, machine.options, "user")
    assert (installed.events, installed.missing, installed.outdated, installed.autostart) == (
        events,
        (),
        (),
        True,
    )
    machine.set_up(agent, autostart=False)
    assert not find_installed(agent, machine.places, machine.options, "user").autostart
    other_options = msgspec.structs.replace(machine.options, program=program("/new"))
    assert find_installed(agent, machine.places, other_options, "user").outdated == events


def test_extension_of_an_earlier_version_names_the_installation(
    machine: Machine, agent: str
) -> None:
    machine.set_up(agent)
    path = machine.file(agent)
    for old, names_installation in (("launcher", False), ("client", True)):
        path.write_text(path.read_text().replace('"launcher": ', f'"{old}": '))
        installed = find_installed(agent, machine.places, machine.options, "user")
        assert installed.names_installation is names_installation
        assert bool(installed.outdated) is names_installation


def test_folder_in_place_of_the_extension_is_reported(machine: Machine, agent: str) -> None:
    machine.file(agent).mkdir(parents=True)
    installed = find_installed(agent, machine.places, machine.options, "user")
    assert str(machine.file(agent)) in str(installed.reason)


def test_extension_folder_follows_the_agents_variables(
    machine: Machine, tmp_path: Path, agent: str
) -> None:
    env = {"PI_CODING_AGENT_DIR": str(tmp_path / "a"), "XDG_CONFIG_HOME": str(tmp_path / "b")}
    machine.places = msgspec.structs.replace(machine.places, env=env)
    own = "a/extensions" if agent == "pi" else f"b/{agent}/plugins"
    assert machine.plan(agent).path == tmp_path / own / "brimline.js"
