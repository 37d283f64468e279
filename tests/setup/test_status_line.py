"""The user's own status line is kept, known to ours, and given back."""

import json
from pathlib import Path

import pytest

from brimline.errors import InvalidSettings
from brimline.setup.manifest import find_status_line
from brimline.setup.shared_file import backup_path

from .machine import Machine, program

OWN = """{
  "statusLine": {
    "padding": 2, "type": "command",
    "command": "~/line \\u0041"
  }
}"""


def mine(machine: Machine) -> str | None:
    """The command that is known to be the user's own."""
    found = find_status_line(machine.wish.state, str(machine.project))
    return found.own.command if found and found.own else None


def test_only_its_command_is_replaced(machine: Machine) -> None:
    """Padding and the like stay the user's; their command is known, as a shell would get it."""
    machine.write(OWN)
    machine.set_up()
    told = machine.settings()["statusLine"]
    assert (list(told), told["padding"]) == (["padding", "type", "command"], 2)
    assert "statusline claude" in told["command"]
    assert mine(machine) == "~/line A"


def test_none_of_their_own(machine: Machine) -> None:
    """Where there was none, ours stands alone; before any setup nothing is known."""
    assert find_status_line(machine.wish.state, None) is None
    machine.set_up()
    found = find_status_line(machine.wish.state, None)
    assert found is not None
    assert (found.own, found.mode) == (None, "append")


@pytest.mark.parametrize("mode", ["prepend", "append", "replace"])
def test_where_ours_goes(machine: Machine, mode: str) -> None:
    """The way in which both are shown is remembered, and can be changed by a further run."""
    machine.write(OWN)
    machine.set_up()
    change = machine.set_up(mode=mode)
    found = find_status_line(machine.wish.state, None)
    assert found is not None
    assert (found.mode, mine(machine)) == (mode, "~/line A")
    assert change.before == change.after
    assert change.notes[0].startswith("Your own status line")


def test_written_as_it_was(machine: Machine) -> None:
    """Also when the rest of the file changed, their line is back as they wrote it."""
    path = machine.write(OWN)
    machine.set_up()
    path.write_text(path.read_text().replace("2", "3"))
    machine.take_out()
    assert path.read_text() == OWN.replace("2", "3")
    assert mine(machine) is None


def test_what_is_no_command(machine: Machine) -> None:
    """A status line without a command is put back whole."""
    path = machine.write('{"statusLine": {"type": "static", "text": "hi"}, "a": 1}')
    machine.set_up()
    assert mine(machine) is None
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    machine.take_out()
    assert path.read_text() == '{"statusLine": {"type": "static", "text": "hi"}, "a": 2}'


def test_new_one_after_setup(machine: Machine) -> None:
    """A line that the user set in place of ours is theirs from the next run on."""
    path = machine.write(OWN)
    machine.set_up()
    settings = machine.settings()
    settings["statusLine"]["command"] = "newer"
    path.write_text(json.dumps(settings))
    machine.take_out()
    assert machine.settings()["statusLine"]["command"] == "newer"
    machine.set_up()
    assert mine(machine) == "newer"


def test_one_that_was_removed_does_not_come_back(machine: Machine) -> None:
    """A line that the user took out altogether is not theirs any more."""
    path = machine.write(OWN)
    machine.set_up()
    settings = machine.settings()
    del settings["statusLine"]
    path.write_text(json.dumps(settings))
    machine.set_up()
    assert mine(machine) is None
    machine.take_out()
    assert "statusLine" not in machine.settings()


def test_memory_that_was_lost(machine: Machine) -> None:
    """Without the state folder their line is found in the copy."""
    path = machine.write(OWN)
    machine.set_up()
    (machine.wish.state / "setup.json").unlink()
    machine.set_up(program=program("/new/brimline-hook"))
    assert mine(machine) == "~/line A"
    (machine.wish.state / "setup.json").unlink()
    machine.take_out()
    assert path.read_text() == OWN


def test_memory_and_copy_that_were_lost(machine: Machine) -> None:
    """Where nobody knows their line any more, ours goes, and a broken copy is no obstacle."""
    path = machine.write(OWN)
    machine.set_up()
    (machine.wish.state / "setup.json").unlink()
    backup_path(path).write_text("{")
    machine.take_out()
    assert machine.settings() == {}


def test_memory_that_is_broken(machine: Machine) -> None:
    """What cannot be read is told, and neither written over nor passed over."""
    machine.write(OWN)
    machine.wish.state.mkdir()
    (machine.wish.state / "setup.json").write_text("{")
    assert "setup.json: file: cannot be decoded" in str(machine.set_up().problem)
    with pytest.raises(InvalidSettings):
        find_status_line(machine.wish.state, None)
    assert (machine.wish.state / "setup.json").read_text() == "{"


def test_memory_is_private(machine: Machine) -> None:
    """What is remembered is for the user alone."""
    machine.set_up()
    assert machine.wish.state.stat().st_mode & 0o077 == 0


def test_project_goes_before_the_user(tmp_path: Path) -> None:
    """In a project that was set up its own line counts; elsewhere the user's."""
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    user.write(OWN)
    project.write('{"statusLine": {"type": "command", "command": "project"}}')
    user.set_up()
    project.set_up()
    assert mine(project) == "project"
    other = find_status_line(user.wish.state, "/elsewhere")
    assert other is not None
    assert other.own is not None
    assert other.own.command == "~/line A"


@pytest.mark.parametrize("first", [False, True])
def test_project_inherits_the_users(tmp_path: Path, first: bool) -> None:
    """A project's line goes over the user's: the user's is still run, and nothing given back."""
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    user.write(OWN)
    if first:
        user.set_up()
    project.set_up()
    assert mine(project) == "~/line A"
    project.take_out()
    assert not project.file().exists()


def test_users_line_that_changed(tmp_path: Path) -> None:
    """Another run in a project takes the user's line as it is now; one of its own stays its own."""
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    path = user.write(OWN)
    project.set_up()
    path.write_text(OWN.replace("~/line", "~/new"))
    project.set_up()
    assert mine(project) == "~/new A"
    path.unlink()
    project.set_up()
    assert mine(project) is None
    project.take_out()
    project.write('{"statusLine": {"type": "command", "command": "project"}}')
    project.set_up()
    user.write(OWN)
    project.set_up()
    assert mine(project) == "project"


def test_user_whose_file_is_broken(tmp_path: Path) -> None:
    """A project is set up all the same when the user's own file cannot be read."""
    Machine(tmp_path).write("{")
    project = Machine(tmp_path, scope="project")
    assert project.set_up().problem is None
    assert mine(project) is None
