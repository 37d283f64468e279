"""Setup and removal: the user's file is restored to the last byte."""

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from brimline.agents import get_agent
from brimline.errors import InvalidSettings
from brimline.files.atomic_file import DRAFT_MARK
from brimline.install.installed import find_installed
from brimline.install.manifest import MANIFEST_NAME, load_manifest
from brimline.install.plan import apply
from brimline.install.shared_file import BACKUP_SUFFIX, LOCK_SUFFIX, backup_path
from files.jsonc_texts import files
from hypothesis_examples import examples

from .machine import HOOK, Machine, program

# Settings of Claude Code as people have them.
CLAUDE = [
    "{}",
    "{}\n",
    "{\n}\n",
    "{ }",
    "",
    "\n",
    " \r\n",
    '{"model":"opus","hooks":{}}',
    '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n',
    '{\r\n    "model": "opus"\r\n}\r\n',
    '\ufeff{\n  "model": "opus"\n}',
    '{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say"}]}]}}\n',
    '{\n  "statusLine": {"type": "command", "command": "~/l.sh", "padding": 0},\n  "a": "é"\n}\n',
    '{\n  "statusLine": null\n}\n',
    '{\n  "statusLine": {"type": "command"},\n  "hooks": {"PreToolUse": []}\n}\n',
    '{"statusLine": {"type": "command", "command": "printf \\u00e9 \\ud800"}}',
]

COMMENTED = """{
  // the theme
  "ui": { "theme": "dark" }, /* more to come */
  "hooks": {
    // ours, not theirs
    "AfterTool": [{ "hooks": [{ "type": "command", "command": "lint" }] }] // last
  }
}
"""


@pytest.mark.parametrize("text", CLAUDE)
def test_removal_restores_the_file_byte_for_byte(machine: Machine, text: str) -> None:
    path = machine.write(text)
    path.chmod(0o640)
    machine.set_up()
    assert set(machine.hooks()) >= set(get_agent("claude").install_spec.events)
    assert backup_path(path).read_bytes() == text.encode("utf-8")
    machine.remove()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (text.encode("utf-8"), 0o640)
    assert machine.folder_names() == ["settings.json"]
    assert list(machine.options.state.iterdir()) == []


@examples(25)
@given(text=files(get_agent("gemini").install_spec.dialect))
def test_removal_restores_any_valid_file_byte_for_byte(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        path = machine.write(text, "gemini")
        change = machine.plan("gemini")
        if change.reason:
            assert "hooks" in change.reason
            return
        apply(change)
        assert machine.plan("gemini").pending is False
        machine.remove("gemini")
        assert path.read_bytes() == text.encode("utf-8")


@examples(25)
@given(text=files(get_agent("gemini").install_spec.dialect))
def test_removal_without_the_state_folder_keeps_everything_else(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        path = machine.write(text, "gemini")
        change = machine.plan("gemini")
        if change.reason or '"hooks"' in text:
            return
        apply(change)
        (machine.options.state / "setup.json").unlink()
        machine.remove("gemini")
        assert path.read_bytes() == text.encode("utf-8")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_removal_deletes_the_file_and_folder_that_setup_created(
    machine: Machine, agent: str
) -> None:
    machine.set_up(agent)
    assert list(machine.hooks(agent)) == list(get_agent(agent).install_spec.events)
    assert machine.folder_names(agent) == [machine.file(agent).name]
    machine.remove(agent)
    assert list(machine.places.home.iterdir()) == []


def test_manifest_stays_until_the_last_file_is_removed(machine: Machine) -> None:
    for agent in ("claude", "pi"):
        machine.set_up(agent)
    machine.remove("claude")
    assert list(load_manifest(machine.options.state)) == [str(machine.file("pi"))]
    machine.remove("pi")
    assert list(machine.options.state.iterdir()) == []


def test_removal_keeps_folders_that_existed_or_hold_other_files(machine: Machine) -> None:
    machine.file("codex").parent.mkdir()
    machine.set_up("codex")
    machine.set_up("gemini")
    (machine.file("gemini").parent / "notes").touch()
    for agent in ("codex", "gemini"):
        machine.set_up(agent, autostart=True)
        machine.remove(agent)
    assert machine.folder_names("codex") == []
    assert machine.folder_names("gemini") == ["notes"]


def test_failed_write_leaves_no_new_folder(machine: Machine) -> None:
    (machine.options.state / f"{MANIFEST_NAME}{LOCK_SUFFIX}").mkdir(
        parents=True
    )  # no lock of ours can be there
    with pytest.raises(InvalidSettings):
        machine.set_up("codex")
    assert not machine.file("codex").parent.exists()


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_second_setup_does_not_touch_the_file(machine: Machine, agent: str) -> None:
    machine.set_up(agent)
    before = machine.file(agent).stat()
    change = machine.set_up(agent)
    assert (change.pending, change.what, change.before) == (False, "already set up", change.after)
    after = machine.file(agent).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    machine.remove(agent)
    assert machine.plan(agent, remove=True).pending is False
    assert machine.plan(agent, remove=True).what == "nothing to remove"


def test_hooks_of_other_tools_are_neither_moved_nor_changed(machine: Machine) -> None:
    foreign_hooks = [
        {"type": "command", "command": "python3 ~/.claude/hooks/client.py"},
        {"type": "command", "command": "echo brimline-hook"},
        {"type": "command", "command": "'half quoted"},
        {"type": "http", "url": "http://127.0.0.1:8420/hooks/claude"},
        {"type": "prompt", "prompt": "brimline-hook"},
        "no hook at all",
    ]
    groups = [{"matcher": "Bash", "hooks": foreign_hooks}, {"hooks": "none"}, 7]
    machine.write(json.dumps({"hooks": {"Stop": groups, "Notification": groups}}))
    before = machine.settings()["hooks"]
    machine.set_up()
    hooks = machine.settings()["hooks"]
    assert hooks["Notification"] == before["Notification"]
    assert hooks["Stop"][:-1] == before["Stop"]


@pytest.mark.parametrize(
    "old",
    [
        {"type": "command", "command": "/old/venv/bin/brimline-hook a b"},
        {"type": "command", "command": "/old/brimline-hook", "args": ["x"], "timeout": 60},
        {"type": "command", "command": "'/o d/python' -I -S /o/brimline/hooks/client.py hook"},
        {"type": "command", "command": "/p", "args": ["-I", "/o/brimline/hooks/client.py"]},
        {"type": "command", "command": "/p", "args": ["-I", "/o/brimline/hooks/client/client.py"]},
        {"type": "http", "url": "http://127.0.0.1:9/hooks/claude?by=brimline"},
    ],
)
def test_older_entry_is_replaced_in_place(machine: Machine, old: Any) -> None:
    """Duplicates and events that are no longer used are removed."""
    foreign_hook = {"type": "command", "command": "say"}
    stop = [{"matcher": "x", "hooks": [old, foreign_hook]}, {"hooks": [old]}]
    machine.write(json.dumps({"hooks": {"Stop": stop, "Notification": [{"hooks": [old]}]}}))
    machine.set_up(transport="command")
    hooks = machine.settings()["hooks"]
    [replaced] = hooks["SessionStart"][0]["hooks"]
    assert hooks["Stop"] == [{"matcher": "x", "hooks": [replaced, foreign_hook]}]
    assert "Notification" not in hooks


def test_removal_after_an_update_restores_the_file_byte_for_byte(machine: Machine) -> None:
    text = '{\n  "statusLine": {"type": "command", "command": "mine"}\n}'
    path = machine.write(text)
    machine.set_up()
    machine.set_up(program=program("/new"))
    assert f'"{HOOK}"' not in path.read_text()
    machine.remove()
    assert path.read_text() == text


def test_removal_keeps_later_changes_of_others(machine: Machine) -> None:
    path = machine.write('{\n  "model": "opus"\n}\n')
    machine.set_up()
    path.write_text(path.read_text().replace('"opus"', '"haiku"'))
    machine.remove()
    assert path.read_text() == '{\n  "model": "haiku"\n}\n'
    assert machine.folder_names() == ["settings.json"]


def test_removal_keeps_changes_between_two_setups(machine: Machine) -> None:
    path = machine.write('{\n  "model": "opus"\n}\n')
    machine.set_up()
    path.write_text(path.read_text().replace('"opus"', '"haiku"'))
    machine.set_up(program=program("/new"))
    assert b"opus" in backup_path(path).read_bytes()
    machine.remove()
    assert path.read_text() == '{\n  "model": "haiku"\n}\n'


def test_hooks_are_recognised_after_the_client_reformats_the_file(machine: Machine) -> None:
    path = machine.write('{"model": "opus"}')
    machine.set_up()
    path.write_text(json.dumps(machine.settings(), indent=2))
    assert machine.plan().pending is True
    assert machine.set_up().what == "already set up"
    machine.remove()
    assert json.loads(path.read_text()) == {"model": "opus"}


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {}, "model": "opus"}',
        '{"hooks": {"Stop": []}, "model": "opus"}',
        '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [],\n    "Other": []\n  }\n}\n',
    ],
)
def test_empty_values_of_the_user_stay(machine: Machine, text: str) -> None:
    path = machine.write(text)
    machine.set_up()
    path.write_text(path.read_text().replace("opus", "haiku"))
    machine.remove()
    assert path.read_text() == text.replace("opus", "haiku")


@pytest.mark.parametrize(
    "options",
    [{"transport": "http"}, {"autostart": True}, {"autostart": False}, {"mode": "prepend"}],
    ids=str,
)
def test_options_that_are_not_given_again_are_kept(
    machine: Machine, options: dict[str, Any]
) -> None:
    machine.write('{"statusLine": {"type": "command", "command": "mine"}}')
    machine.set_up(**options)
    for first in (False, True):
        assert machine.plan(default_autostart=first).pending is False
    new = program("/new")
    machine.set_up(program=new)
    assert machine.plan(program=new, **options).pending is False


def test_backup_never_contains_our_entries(machine: Machine) -> None:
    path = machine.write('{"model": "opus"}')
    machine.set_up()
    machine.set_up(program=program("/new"))
    assert backup_path(path).read_text() == '{"model": "opus"}'
    path.write_text('{"model": "haiku"}')
    machine.set_up()
    assert backup_path(path).read_text() == '{"model": "haiku"}'


def test_changed_backup_is_not_restored(machine: Machine) -> None:
    path = machine.write('{\n  "model": "opus"\n}\n')
    machine.set_up()
    backup_path(path).write_text("{}")
    machine.remove()
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


def test_comments_stay_in_place(machine: Machine) -> None:
    path = machine.write(COMMENTED, "gemini")
    machine.set_up("gemini")
    lines = path.read_text().splitlines()
    assert [line for line in COMMENTED.splitlines() if line not in lines] == [
        '    "AfterTool": [{ "hooks": [{ "type": "command", "command": "lint" }] }] // last'
    ]
    assert '"command": "lint" }] }, {"hooks"' in path.read_text()
    machine.remove("gemini")
    assert path.read_text() == COMMENTED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a": 1,,}', "line 1, column 9: expected a key in"),
        (b"\xff\xfe{\x00}\x00", "byte 1: expected text in UTF-8"),
        (b'{"a": "\xe9"}', "byte 8: expected text in UTF-8"),
        (b"[]", "line 1, column 1: expected an object"),
    ],
)
@pytest.mark.parametrize("remove", [False, True])
def test_file_that_cannot_be_edited_is_left_alone_with_the_reason(
    machine: Machine, text: bytes, problem: str, remove: bool
) -> None:
    path = machine.write(text)
    change = apply(machine.plan(remove=remove))
    assert problem in str(change.reason)
    assert (path.read_bytes(), machine.folder_names()) == (text, ["settings.json"])
    assert not machine.options.state.exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"hooks": []}', "hooks: expected an object: got []"),
        ('{"hooks": null}', "hooks: expected an object: got null"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop: expected an array: got {}"),
    ],
)
def test_hooks_of_a_wrong_type_are_left_alone(machine: Machine, text: str, problem: str) -> None:
    path = machine.write(text)
    assert str(machine.set_up().reason) == f"{path}: {problem}"
    assert machine.remove().what == "nothing to remove"
    assert (path.read_text(), machine.folder_names()) == (text, ["settings.json"])


def test_keys_that_are_no_events_are_skipped(machine: Machine) -> None:
    """Older versions of Gemini CLI have other keys among the hooks."""
    text = '{\n  "hooks": {"enabled": true, "disabled": ["x"]}\n}\n'
    path = machine.write(text, "gemini")
    assert machine.set_up("gemini").reason is None
    assert machine.settings("gemini")["hooks"]["enabled"] is True
    machine.remove("gemini")
    assert path.read_text() == text


def test_plan_writes_nothing(machine: Machine) -> None:
    machine.write('{"model": "opus"}')
    before = sorted(machine.home.parent.rglob("*"))
    for agent in ("claude", "codex", "gemini", "pi", "opencode"):
        machine.plan(agent)
        machine.plan(agent, remove=True)
    assert sorted(machine.home.parent.rglob("*")) == before


def test_change_is_applied_to_the_current_content(machine: Machine) -> None:
    path = machine.write('{"model": "opus"}')
    planned = machine.plan()
    path.write_text('{"model": "haiku"}')
    change = apply(planned)
    assert change.before == b'{"model": "haiku"}'
    assert machine.settings()["model"] == "haiku"
    assert backup_path(path).read_text() == '{"model": "haiku"}'


def test_file_that_breaks_after_the_plan_is_left_alone(machine: Machine) -> None:
    path = machine.write("{}")
    planned = machine.plan()
    path.write_text("{")
    with pytest.raises(InvalidSettings, match="line 1, column 2"):
        apply(planned)
    assert (path.read_text(), machine.folder_names()) == ("{", ["settings.json"])


# What is left beside the file.


@pytest.mark.usefixtures("without_privileges")
def test_refused_file_leaves_no_backup_and_no_record(machine: Machine) -> None:
    path = machine.write("{}")
    path.chmod(0o444)
    with pytest.raises(InvalidSettings, match="Permission denied"):
        machine.set_up()
    assert machine.folder_names() == ["settings.json"]
    assert load_manifest(machine.options.state) == {}


@pytest.mark.usefixtures("without_privileges")
def test_refused_file_keeps_its_earlier_backup_and_record(machine: Machine) -> None:
    path = machine.write("{}")
    machine.set_up()
    manifest = load_manifest(machine.options.state)
    path.chmod(0o444)
    with pytest.raises(InvalidSettings, match="Permission denied"):
        machine.set_up(program=program("/new"))
    assert (load_manifest(machine.options.state), backup_path(path).read_text()) == (manifest, "{}")


@pytest.mark.parametrize("left", [LOCK_SUFFIX, BACKUP_SUFFIX, f"{DRAFT_MARK}1f"])
@pytest.mark.parametrize("agent", ["claude", "pi"])
def test_removal_deletes_temporary_files_of_a_killed_setup(
    machine: Machine, agent: str, left: str
) -> None:
    path = machine.write("{}", agent)
    name = f".{path.name}{left}" if left.startswith(DRAFT_MARK) else f"{path.name}{left}"
    for place in (name, f"{path.name}.bak", f".other{DRAFT_MARK}1f"):
        (path.parent / place).touch()
    machine.remove(agent)
    assert machine.folder_names(agent) == sorted(
        [f".other{DRAFT_MARK}1f", path.name, f"{path.name}.bak"]
    )
    assert not machine.plan(agent, remove=True).pending


@pytest.mark.usefixtures("without_privileges")
def test_record_that_cannot_be_deleted_is_reported_and_the_file_restored(machine: Machine) -> None:
    path = machine.write("{}")
    machine.set_up()
    machine.options.state.chmod(0o555)
    change = machine.remove()
    machine.options.state.chmod(0o700)
    assert "setup.json: file: cannot be written" in str(change.reason)
    assert (path.read_text(), change.after) == ("{}", b"{}")
    assert machine.remove().reason is None
    assert (load_manifest(machine.options.state), machine.folder_names()) == ({}, ["settings.json"])


@pytest.mark.parametrize(("version", "has_it"), [((2, 1, 250), False), ((2, 1, 251), True)])
def test_client_gets_no_hook_that_it_does_not_know(
    machine: Machine, version: tuple[int, ...], has_it: bool
) -> None:
    """Claude Code before 2.1.251 would warn of it at each start; after an update setup adds it."""
    versions = {"claude": version}
    machine.set_up(versions=versions)
    assert ("PreModelSwitch" in machine.hooks()) is has_it
    options = msgspec.structs.replace(machine.options, versions=versions)
    assert find_installed("claude", machine.places, options, "user").missing == ()
    assert (find_installed("claude", machine.places, machine.options, "user").missing == ()) is (
        has_it
    )
