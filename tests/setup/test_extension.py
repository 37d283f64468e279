"""Agents that have extensions: a file of ours among them, and nobody else's touched."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import all_agents, get_agent
from brimline.setup.installed import find_installed
from brimline.setup.shared_file import backup_path

from .machine import Machine, program

AGENTS = [agent.name for agent in all_agents() if agent.install_spec.is_extension]
pytestmark = pytest.mark.parametrize("agent", AGENTS)


def told(machine: Machine, agent: str) -> Any:
    """What the part that asks is told."""
    found = re.search(r"^const CONFIG = (.*)$", machine.file(agent).read_text(), re.MULTILINE)
    assert found
    return json.loads(found[1])


def test_knows_the_daemon(machine: Machine, agent: str) -> None:
    """Where it is, and what is run where it does not answer, with absolute paths."""
    change = machine.set_up(agent)
    assert (change.path, change.before) == (machine.file(agent), None)
    found = told(machine, agent)
    assert (found["agent"], found["socket"], found["spool"]) == (
        agent,
        "/state/hook.sock",
        "/state/spool",
    )
    assert found["client"] == ["/usr/bin/python3", "-I", "-S", "/opt/client.py"]
    assert found["timeoutMs"] == 2000


def test_start_of_a_session_starts_the_daemon(machine: Machine, agent: str) -> None:
    """Where that is wished."""
    for wish in (True, False):
        machine.set_up(agent, autostart=wish)
        assert told(machine, agent)["autostart"] is wish
        machine.set_up(agent, default_autostart=not wish)
        assert told(machine, agent)["autostart"] is wish


def test_second_time(machine: Machine, agent: str) -> None:
    """There is nothing to write any more, and nothing to do."""
    assert machine.set_up(agent).notes == (get_agent(agent).install_spec.next_step,)
    again = machine.plan(agent)
    assert (again.pending, again.what, again.notes) == (False, "already set up", ())


def test_brought_up_to_date(machine: Machine, agent: str) -> None:
    """Another installation's file, or one that the user changed, becomes this one's."""
    machine.set_up(agent, program=program(script="/old/client.py"))
    with machine.file(agent).open("a") as file:
        file.write("// mine\n")
    machine.set_up(agent)
    assert "/opt/client.py" in machine.file(agent).read_text()
    assert "mine" not in machine.file(agent).read_text()
    machine.take_out(agent)
    assert list(machine.places.home.iterdir()) == []


def test_taken_out(machine: Machine, agent: str) -> None:
    """Nothing is left of it, whoever changed it meanwhile; a second time there is nothing to do."""
    machine.set_up(agent)
    with machine.file(agent).open("a") as file:
        file.write("// mine\n")
    gone = machine.take_out(agent)
    assert (gone.what, gone.after) == ("Brimline's extension is removed", None)
    assert list(machine.places.home.iterdir()) == []
    assert machine.take_out(agent).what == "nothing to remove"


@pytest.mark.parametrize("text", ["export default () => {}\n", ""])
def test_somebody_elses(machine: Machine, agent: str, text: str) -> None:
    """A file of that name that we did not write is neither replaced nor removed."""
    path = machine.write(text, agent)
    change = machine.set_up(agent)
    assert change.problem == f"{path}: file: it exists and is not Brimline's. Move it away first"
    assert machine.take_out(agent).what == "nothing to remove"
    assert path.read_text() == text
    assert not backup_path(path).exists()


def test_project_scope(tmp_path: Path, agent: str) -> None:
    """The project's own folder of extensions, and nothing in the user's home."""
    machine = Machine(tmp_path, scope="project")
    change = machine.set_up(agent)
    assert change.path == machine.project / get_agent(agent).install_spec.project_file
    assert any("paths of this machine" in note for note in change.notes)
    assert list(machine.home.iterdir()) == []


def test_nothing_is_posted(machine: Machine, agent: str) -> None:
    """An extension asks at the socket, also where hooks are to post."""
    assert "commands" in machine.plan(agent, transport="http").notes[0]


def test_path_that_is_no_text(machine: Machine, agent: str) -> None:
    """A path that cannot stand in the file is told, and nothing is written."""
    change = machine.set_up(agent, program=program(script="/caf\udce9/client.py"))
    assert "not UTF-8" in str(change.problem)
    assert not machine.file(agent).exists()


def test_found(machine: Machine, agent: str) -> None:
    """What is there is told: nothing, somebody else's, ours, another installation's."""
    events = tuple(get_agent(agent).install_spec.events)
    assert find_installed(agent, machine.places, machine.wish, "user").missing == events
    machine.write("", agent)
    assert find_installed(agent, machine.places, machine.wish, "user").missing == events
    machine.file(agent).unlink()
    machine.set_up(agent, autostart=True)
    told = find_installed(agent, machine.places, machine.wish, "user")
    assert (told.events, told.missing, told.outdated, told.autostart) == (events, (), (), True)
    machine.set_up(agent, autostart=False)
    assert not find_installed(agent, machine.places, machine.wish, "user").autostart
    other = msgspec.structs.replace(machine.wish, program=program(script="/new/client.py"))
    assert find_installed(agent, machine.places, other, "user").outdated == events


def test_found_where_nothing_can_be_read(machine: Machine, agent: str) -> None:
    """A folder in its place is told."""
    machine.file(agent).mkdir(parents=True)
    told = find_installed(agent, machine.places, machine.wish, "user")
    assert str(machine.file(agent)) in str(told.problem)


def test_folders_that_variables_name(machine: Machine, tmp_path: Path, agent: str) -> None:
    """The file is where the agent looks for it."""
    env = {"PI_CODING_AGENT_DIR": str(tmp_path / "a"), "XDG_CONFIG_HOME": str(tmp_path / "b")}
    machine.places = msgspec.structs.replace(machine.places, env=env)
    places = {"pi": "a/extensions/brimline.js", "opencode": "b/opencode/plugins/brimline.js"}
    assert machine.plan(agent).path == tmp_path / places[agent]
