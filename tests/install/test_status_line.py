"""The user's own status line is kept, run beside ours, and restored."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import get_agent
from brimline.agents.claude.hooks import REFRESH_INTERVAL_S
from brimline.errors import InvalidSettings
from brimline.install.install import SettingsFile
from brimline.install.installed import find_installed
from brimline.install.manifest import find_status_line
from brimline.install.plan import Change, apply, plan
from brimline.install.shared_file import backup_path

from .machine import Machine, program

OWN = """{
  "statusLine": {
    "padding": 2, "type": "command",
    "command": "~/line \\u0041"
  }
}"""


def user_command(machine: Machine) -> str | None:
    """The command that is known as the user's own."""
    status_line = find_status_line(machine.options.state, str(machine.project))
    return status_line.own.command if status_line and status_line.own else None


def test_setup_replaces_only_the_command_of_the_status_line(machine: Machine) -> None:
    machine.write(OWN)
    machine.set_up()
    status_line = machine.settings()["statusLine"]
    assert list(status_line) == ["padding", "type", "command", "refreshInterval"]
    assert status_line["padding"] == 2
    assert "claude statusline" in status_line["command"]
    assert user_command(machine) == "~/line A"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("printf é 🚀", "printf é 🚀"),
        ("printf \\u00e9 \\ud83d\\ude80", "printf é 🚀"),
        ("printf \ue0b0 \ud7ff", "printf \ue0b0 \ud7ff"),
        ("printf é \\ud800", None),
        ("printf \\udfff", None),
    ],
    ids=["as written", "escaped", "next to surrogates", "lone surrogate", "last surrogate"],
)
def test_only_a_lone_surrogate_makes_a_user_command_unusable(
    machine: Machine, text: str, command: str | None
) -> None:
    machine.write(OWN.replace("~/line \\u0041", text))
    machine.set_up()
    assert user_command(machine) == command


def test_no_user_command_is_known_without_a_status_line(machine: Machine) -> None:
    assert find_status_line(machine.options.state, None) is None
    machine.set_up()
    status_line = find_status_line(machine.options.state, None)
    assert status_line is not None
    assert (status_line.own, status_line.mode) == (None, "append")


@pytest.mark.parametrize("mode", ["prepend", "append", "replace"])
def test_position_is_remembered_and_can_be_changed(machine: Machine, mode: str) -> None:
    machine.write(OWN)
    machine.set_up()
    change = machine.set_up(mode=mode)
    status_line = find_status_line(machine.options.state, None)
    assert status_line is not None
    assert (status_line.mode, user_command(machine)) == (mode, "~/line A")
    assert change.before == change.after
    assert change.notes[0].startswith("Your own status line")


def test_status_line_is_restored_as_written_even_if_the_file_changed(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    path.write_text(path.read_text().replace("2", "3"))
    machine.remove()
    assert path.read_text() == OWN.replace("2", "3")
    assert user_command(machine) is None


def test_status_line_without_a_command_is_restored_whole(machine: Machine) -> None:
    path = machine.write('{"statusLine": {"type": "static", "text": "hi"}, "a": 1}')
    machine.set_up()
    assert user_command(machine) is None
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    machine.remove()
    assert path.read_text() == '{"statusLine": {"type": "static", "text": "hi"}, "a": 2}'


def test_status_line_set_after_setup_becomes_the_users(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    settings = machine.settings()
    settings["statusLine"]["command"] = "newer"
    path.write_text(json.dumps(settings))
    machine.remove()
    left = {"padding": 2, "type": "command", "command": "newer"}
    assert machine.settings()["statusLine"] == left
    machine.set_up()
    assert user_command(machine) == "newer"


def test_line_is_drawn_again_after_a_time_until_the_removal(machine: Machine) -> None:
    path = machine.write('{"a": 1}')
    machine.set_up()
    assert machine.settings()["statusLine"]["refreshInterval"] == REFRESH_INTERVAL_S
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    machine.set_up()  # again
    machine.remove()
    assert path.read_text() == '{"a": 2}'


@pytest.mark.parametrize("interval", [3, REFRESH_INTERVAL_S])
def test_interval_of_the_user_stays(machine: Machine, interval: int) -> None:
    own = OWN.replace('"padding": 2', f'"refreshInterval": {interval}')
    path = machine.write(own)
    machine.set_up()
    assert machine.settings()["statusLine"]["refreshInterval"] == interval
    path.write_text(path.read_text().replace("}\n}", '},\n  "a": 1\n}'))
    machine.set_up()
    machine.remove()
    assert machine.settings()["statusLine"] == json.loads(own)["statusLine"]


def test_interval_that_the_user_changes_after_setup_stays(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    path.write_text(path.read_text().replace(str(REFRESH_INTERVAL_S), "2"))
    machine.set_up()
    machine.remove()
    assert machine.settings()["statusLine"]["refreshInterval"] == 2


def test_line_of_an_earlier_version_gets_the_interval(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    settings = machine.settings()
    del settings["statusLine"]["refreshInterval"]
    path.write_text(json.dumps(settings))
    machine.set_up()
    assert machine.settings()["statusLine"]["refreshInterval"] == REFRESH_INTERVAL_S
    machine.remove()
    assert machine.settings()["statusLine"] == json.loads(OWN)["statusLine"]


def test_removed_status_line_does_not_come_back(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    settings = machine.settings()
    del settings["statusLine"]
    path.write_text(json.dumps(settings))
    machine.set_up()
    assert user_command(machine) is None
    machine.remove()
    assert "statusLine" not in machine.settings()


def test_status_line_is_found_in_the_backup_without_the_state_folder(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    (machine.options.state / "setup.json").unlink()
    machine.set_up(program=program("/new"))
    assert user_command(machine) == "~/line A"
    (machine.options.state / "setup.json").unlink()
    machine.remove()
    assert path.read_text() == OWN


def test_removal_works_without_record_and_with_a_broken_backup(machine: Machine) -> None:
    path = machine.write(OWN)
    machine.set_up()
    (machine.options.state / "setup.json").unlink()
    backup_path(path).write_text("{")
    machine.remove()
    assert machine.settings() == {}


def test_broken_record_is_reported_and_not_overwritten(machine: Machine) -> None:
    machine.write(OWN)
    machine.options.state.mkdir()
    (machine.options.state / "setup.json").write_text("{")
    assert "setup.json: file: cannot be decoded" in str(machine.set_up().reason)
    with pytest.raises(InvalidSettings):
        find_status_line(machine.options.state, None)
    assert (machine.options.state / "setup.json").read_text() == "{"


def test_record_is_readable_by_its_owner_only(machine: Machine) -> None:
    machine.set_up()
    assert machine.options.state.stat().st_mode & 0o077 == 0


SHARED = '{"statusLine": {"type": "command", "command": "shared"}}'


def shared_file(project: Machine) -> Path:
    """The settings that a project shares with others."""
    return project.file().with_name("settings.json")


def write_shared(project: Machine) -> None:
    """Write a project's own status line, which all of its users share."""
    shared_file(project).parent.mkdir()
    shared_file(project).write_text(SHARED)


def test_projects_shared_status_line_is_run_and_stays(tmp_path: Path) -> None:
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    user.write(OWN)
    write_shared(project)
    project.set_up()
    assert user_command(project) == "shared"
    project.remove()
    assert shared_file(project).read_text() == SHARED
    assert project.folder_names() == ["settings.json"]


@pytest.mark.parametrize("remove", [False, True])
def test_entries_of_an_earlier_version_leave_the_shared_file(tmp_path: Path, remove: bool) -> None:
    """They move to the file of this user alone, and the project's own line is restored."""
    project = Machine(tmp_path, scope="project")
    shared = shared_file(project)
    write_shared(project)
    set_up_shared(project)
    changes = plan(
        ["claude"], project.places, msgspec.structs.replace(project.options, remove=remove)
    )
    assert [change.path for change in changes] == [project.file(), shared]
    for change in changes:
        assert apply(change).reason is None
    assert shared.read_text() == SHARED
    assert project.file().exists() is not remove
    assert project.folder_names() == ["settings.json", *([] if remove else ["settings.local.json"])]
    assert user_command(project) == (None if remove else "shared")
    assert len(plan(["claude"], project.places, project.options)) == 1


def test_entries_that_move_keep_their_options(tmp_path: Path) -> None:
    user = Machine(tmp_path)
    project = Machine(tmp_path, scope="project", default_autostart=True)
    set_up_shared(project, autostart=False, mode="prepend")
    user.write(OWN)
    for change in plan(["claude"], project.places, project.options):
        apply(change)
    status_line = find_status_line(project.options.state, str(project.project))
    assert (status_line and status_line.mode, user_command(project)) == ("prepend", "~/line A")
    assert {hook["args"][1] for [hook] in project.hooks().values()} == {"hook"}
    project.remove()
    assert list(project.project.iterdir()) == [], "the folder that setup created is removed"


def set_up_shared(project: Machine, **options: Any) -> None:
    """Set up a project as earlier versions did."""
    shared = shared_file(project)
    wanted = msgspec.structs.replace(project.options, **options)
    file = SettingsFile(get_agent("claude").install_spec, shared, project.places, wanted)
    apply(Change("claude", "hooks", shared, file=file, pending=True))
    assert "brimline-hook" in shared.read_text()


def test_entries_in_the_shared_file_are_found_as_installed(tmp_path: Path) -> None:
    project = Machine(tmp_path, scope="project")
    set_up_shared(project)
    found = find_installed("claude", project.places, project.options, "project")
    assert (found.path, found.scope) == (shared_file(project), "project")
    assert found.events


def test_users_settings_are_no_project_in_the_home_folder(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.set_up()
    before = machine.file().read_text()
    options = msgspec.structs.replace(machine.options, scope="project", cwd=machine.home)
    [change] = plan(["claude"], machine.places, options)
    assert change.path == machine.home / ".claude/settings.local.json"
    assert find_installed("claude", machine.places, options, "project").events == ()
    apply(change)
    assert machine.file().read_text() == before


def test_project_status_line_wins_over_the_users(tmp_path: Path) -> None:
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    user.write(OWN)
    project.write('{"statusLine": {"type": "command", "command": "project"}}')
    user.set_up()
    project.set_up()
    assert user_command(project) == "project"
    elsewhere = find_status_line(user.options.state, "/elsewhere")
    assert elsewhere is not None
    assert elsewhere.own is not None
    assert elsewhere.own.command == "~/line A"


@pytest.mark.parametrize("first", [False, True])
def test_project_setup_still_runs_the_users_status_line(tmp_path: Path, first: bool) -> None:
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    user.write(OWN)
    if first:
        user.set_up()
    project.set_up()
    assert user_command(project) == "~/line A"
    project.remove()
    assert not project.file().exists()


def test_second_project_setup_uses_the_users_current_status_line(tmp_path: Path) -> None:
    user, project = Machine(tmp_path), Machine(tmp_path, scope="project")
    path = user.write(OWN)
    project.set_up()
    path.write_text(OWN.replace("~/line", "~/new"))
    project.set_up()
    assert user_command(project) == "~/new A"
    path.unlink()
    project.set_up()
    assert user_command(project) is None
    project.remove()
    project.write('{"statusLine": {"type": "command", "command": "project"}}')
    project.set_up()
    user.write(OWN)
    project.set_up()
    assert user_command(project) == "project"


def test_project_is_set_up_with_a_broken_user_file(tmp_path: Path) -> None:
    Machine(tmp_path).write("{")
    project = Machine(tmp_path, scope="project")
    assert project.set_up().reason is None
    assert user_command(project) is None
