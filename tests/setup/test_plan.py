"""Setting an agent up, and taking it out again: the user's file is theirs, to the last byte."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from brimline.agents import get_agent
from brimline.atomic_file import DRAFT_MARK
from brimline.errors import InvalidSettings
from brimline.setup.manifest import MANIFEST_NAME, load_manifest
from brimline.setup.plan import apply
from brimline.setup.shared_file import BACKUP_SUFFIX, LOCK_SUFFIX, backup_path
from hypothesis_examples import examples
from jsonc_texts import files

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
def test_file_is_given_back_byte_for_byte(machine: Machine, text: str) -> None:
    """What was there before is there again, and nothing of ours is left beside it."""
    path = machine.write(text)
    path.chmod(0o640)
    machine.set_up()
    assert set(machine.hooks()) >= set(get_agent("claude").install_spec.events)
    assert backup_path(path).read_bytes() == text.encode("utf-8")
    machine.take_out()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (text.encode("utf-8"), 0o640)
    assert machine.around() == ["settings.json"]
    assert json.loads((machine.wish.state / "setup.json").read_text()) == {"files": {}}


@examples(25)
@given(text=files(get_agent("gemini").install_spec.dialect))
def test_whatever_people_write_is_given_back(text: str) -> None:
    """Any file that the client reads, and whose hooks are hooks, is given back byte for byte."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        path = machine.write(text, "gemini")
        change = machine.plan("gemini")
        if change.problem:
            assert "hooks" in change.problem
            return
        apply(change)
        assert machine.plan("gemini").pending is False
        machine.take_out("gemini")
        assert path.read_bytes() == text.encode("utf-8")


@examples(25)
@given(text=files(get_agent("gemini").install_spec.dialect))
def test_without_what_is_remembered(text: str) -> None:
    """With the state folder lost, ours is taken out and all else is there, byte for byte."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        path = machine.write(text, "gemini")
        change = machine.plan("gemini")
        if change.problem or '"hooks"' in text:
            return
        apply(change)
        (machine.wish.state / "setup.json").unlink()
        machine.take_out("gemini")
        assert path.read_bytes() == text.encode("utf-8")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_where_nothing_was_nothing_is_left(machine: Machine, agent: str) -> None:
    """A file that setup made is removed again, and its folder; there is no copy of nothing."""
    machine.set_up(agent)
    assert list(machine.hooks(agent)) == list(get_agent(agent).install_spec.events)
    assert machine.around(agent) == [machine.file(agent).name]
    machine.take_out(agent)
    assert list(machine.places.home.iterdir()) == []


def test_folders_that_were_there_stay(machine: Machine) -> None:
    """A folder goes only where setup made it, and where nobody has put anything else into it."""
    machine.file("codex").parent.mkdir()
    machine.set_up("codex")
    machine.set_up("gemini")
    (machine.file("gemini").parent / "notes").touch()
    for agent in ("codex", "gemini"):
        machine.set_up(agent, autostart=True)
        machine.take_out(agent)
    assert machine.around("codex") == []
    assert machine.around("gemini") == ["notes"]


def test_no_folder_for_what_is_not_written(machine: Machine) -> None:
    """Where nothing could be written, the folder for it is not left behind."""
    (machine.wish.state / f"{MANIFEST_NAME}{LOCK_SUFFIX}").mkdir(
        parents=True
    )  # no lock of ours can be there
    with pytest.raises(InvalidSettings):
        machine.set_up("codex")
    assert not machine.file("codex").parent.exists()


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_again_changes_nothing(machine: Machine, agent: str) -> None:
    """A second run finds nothing to do, and does not touch the file."""
    machine.set_up(agent)
    before = machine.file(agent).stat()
    change = machine.set_up(agent)
    assert (change.pending, change.what, change.before) == (False, "already set up", change.after)
    after = machine.file(agent).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    machine.take_out(agent)
    assert machine.plan(agent, remove=True).pending is False
    assert machine.plan(agent, remove=True).what == "nothing to remove"


def test_hooks_of_others_stay(machine: Machine) -> None:
    """What other tools installed is neither moved nor changed, also when it looks like ours."""
    others = [
        {"type": "command", "command": "python3 ~/.claude/hooks/client.py"},
        {"type": "command", "command": "echo brimline-hook"},
        {"type": "command", "command": "'half quoted"},
        {"type": "http", "url": "http://127.0.0.1:8420/hooks/claude"},
        {"type": "prompt", "prompt": "brimline-hook"},
        "no hook at all",
    ]
    groups = [{"matcher": "Bash", "hooks": others}, {"hooks": "none"}, 7]
    machine.write(json.dumps({"hooks": {"Stop": groups, "Notification": groups}}))
    before = machine.settings()["hooks"]
    machine.set_up()
    told = machine.settings()["hooks"]
    assert told["Notification"] == before["Notification"]
    assert told["Stop"][:-1] == before["Stop"]


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
def test_older_entry_is_replaced_where_it_stands(machine: Machine, old: Any) -> None:
    """An entry of an older installation is brought up to date; a double goes, and so does an event
    that is not asked for any more."""
    other = {"type": "command", "command": "say"}
    stop = [{"matcher": "x", "hooks": [old, other]}, {"hooks": [old]}]
    machine.write(json.dumps({"hooks": {"Stop": stop, "Notification": [{"hooks": [old]}]}}))
    machine.set_up(transport="command")
    told = machine.settings()["hooks"]
    [made] = told["SessionStart"][0]["hooks"]
    assert told["Stop"] == [{"matcher": "x", "hooks": [made, other]}]
    assert "Notification" not in told


def test_new_version_then_out(machine: Machine) -> None:
    """After an update of the paths the file is still given back byte for byte."""
    text = '{\n  "statusLine": {"type": "command", "command": "mine"}\n}'
    path = machine.write(text)
    machine.set_up()
    machine.set_up(program=program("/new/brimline-hook"))
    assert f'"{HOOK}"' not in path.read_text()
    machine.take_out()
    assert path.read_text() == text


def test_change_by_others_stays(machine: Machine) -> None:
    """What somebody else changed after setup stays when ours is taken out."""
    path = machine.write('{\n  "model": "opus"\n}\n')
    machine.set_up()
    path.write_text(path.read_text().replace('"opus"', '"haiku"'))
    machine.take_out()
    assert path.read_text() == '{\n  "model": "haiku"\n}\n'
    assert machine.around() == ["settings.json"]


def test_change_by_others_between_two_runs_stays(machine: Machine) -> None:
    """The copy is not given back over what was changed before a second run."""
    path = machine.write('{\n  "model": "opus"\n}\n')
    machine.set_up()
    path.write_text(path.read_text().replace('"opus"', '"haiku"'))
    machine.set_up(program=program("/new/brimline-hook"))
    assert b"opus" in backup_path(path).read_bytes()
    machine.take_out()
    assert path.read_text() == '{\n  "model": "haiku"\n}\n'


def test_client_that_writes_the_file_anew(machine: Machine) -> None:
    """A client that formats all of it its own way leaves ours known, and the rest readable."""
    path = machine.write('{"model": "opus"}')
    machine.set_up()
    path.write_text(json.dumps(machine.settings(), indent=2))
    assert machine.plan().pending is True
    assert machine.set_up().what == "already set up"
    machine.take_out()
    assert json.loads(path.read_text()) == {"model": "opus"}


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {}, "model": "opus"}',
        '{"hooks": {"Stop": []}, "model": "opus"}',
        '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [],\n    "Other": []\n  }\n}\n',
    ],
)
def test_empty_ones_of_the_users_stay(machine: Machine, text: str) -> None:
    """What held nothing before setup is there after it, also where others changed the file."""
    path = machine.write(text)
    machine.set_up()
    path.write_text(path.read_text().replace("opus", "haiku"))
    machine.take_out()
    assert path.read_text() == text.replace("opus", "haiku")


@pytest.mark.parametrize(
    "way",
    [{"transport": "http"}, {"autostart": True}, {"autostart": False}, {"mode": "prepend"}],
    ids=str,
)
def test_what_is_not_said_stays_as_it_is(machine: Machine, way: dict[str, Any]) -> None:
    """A further run without options changes nothing, also after an update of the paths."""
    machine.write('{"statusLine": {"type": "command", "command": "mine"}}')
    machine.set_up(**way)
    for first in (False, True):
        assert machine.plan(default_autostart=first).pending is False
    new = program("/new/brimline-hook")
    machine.set_up(program=new)
    assert machine.plan(program=new, **way).pending is False


def test_copy_is_of_a_file_without_ours(machine: Machine) -> None:
    """A second run does not copy our own entries; a run after they went copies the file anew."""
    path = machine.write('{"model": "opus"}')
    machine.set_up()
    machine.set_up(program=program("/new/brimline-hook"))
    assert backup_path(path).read_text() == '{"model": "opus"}'
    path.write_text('{"model": "haiku"}')
    machine.set_up()
    assert backup_path(path).read_text() == '{"model": "haiku"}'


def test_copy_that_is_not_ours_any_more(machine: Machine) -> None:
    """A copy that somebody changed is not given back: ours is taken out of the file instead."""
    path = machine.write('{\n  "model": "opus"\n}\n')
    machine.set_up()
    backup_path(path).write_text("{}")
    machine.take_out()
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


def test_comments_stay(machine: Machine) -> None:
    """Where a client reads comments, each stays at its place."""
    path = machine.write(COMMENTED, "gemini")
    machine.set_up("gemini")
    lines = path.read_text().splitlines()
    assert [line for line in COMMENTED.splitlines() if line not in lines] == [
        '    "AfterTool": [{ "hooks": [{ "type": "command", "command": "lint" }] }] // last'
    ]
    assert '"command": "lint" }] }, {"hooks"' in path.read_text()
    machine.take_out("gemini")
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
def test_file_that_cannot_be_edited(
    machine: Machine, text: bytes, problem: str, remove: bool
) -> None:
    """It is told what was expected and where, and the file is left as it is."""
    path = machine.write(text)
    change = apply(machine.plan(remove=remove))
    assert problem in str(change.problem)
    assert (path.read_bytes(), machine.around()) == (text, ["settings.json"])
    assert not machine.wish.state.exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"hooks": []}', "hooks: expected an object: got []"),
        ('{"hooks": null}', "hooks: expected an object: got null"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop: expected an array: got {}"),
    ],
)
def test_hooks_that_are_none(machine: Machine, text: str, problem: str) -> None:
    """Where hooks cannot be, none is put; nor is anything of ours found there."""
    path = machine.write(text)
    assert str(machine.set_up().problem) == f"{path}: {problem}"
    assert machine.take_out().what == "nothing to remove"
    assert (path.read_text(), machine.around()) == (text, ["settings.json"])


def test_what_else_stands_among_the_hooks(machine: Machine) -> None:
    """What is no event, as older versions of Gemini CLI have it there, is passed over."""
    text = '{\n  "hooks": {"enabled": true, "disabled": ["x"]}\n}\n'
    path = machine.write(text, "gemini")
    assert machine.set_up("gemini").problem is None
    assert machine.settings("gemini")["hooks"]["enabled"] is True
    machine.take_out("gemini")
    assert path.read_text() == text


def test_plan_writes_nothing(machine: Machine) -> None:
    """Looking leaves no file, no folder and no lock."""
    machine.write('{"model": "opus"}')
    before = sorted(machine.home.parent.rglob("*"))
    for agent in ("claude", "codex", "gemini", "pi", "opencode"):
        machine.plan(agent)
        machine.plan(agent, remove=True)
    assert sorted(machine.home.parent.rglob("*")) == before


def test_file_that_changes_after_the_plan(machine: Machine) -> None:
    """A change is made to what the file holds when it is carried out."""
    path = machine.write('{"model": "opus"}')
    planned = machine.plan()
    path.write_text('{"model": "haiku"}')
    done = apply(planned)
    assert done.before == b'{"model": "haiku"}'
    assert machine.settings()["model"] == "haiku"
    assert backup_path(path).read_text() == '{"model": "haiku"}'


def test_file_that_breaks_after_the_plan(machine: Machine) -> None:
    """One that cannot be edited any more is left alone, and nothing is remembered of it."""
    path = machine.write("{}")
    planned = machine.plan()
    path.write_text("{")
    with pytest.raises(InvalidSettings, match="line 1, column 2"):
        apply(planned)
    assert (path.read_text(), machine.around()) == ("{", ["settings.json"])


# What is left beside the file.


@pytest.mark.usefixtures("ordinary")
def test_refused_file_leaves_nothing(machine: Machine) -> None:
    """A file that may not be written is neither copied nor remembered."""
    path = machine.write("{}")
    path.chmod(0o444)
    with pytest.raises(InvalidSettings, match="Permission denied"):
        machine.set_up()
    assert machine.around() == ["settings.json"]
    assert load_manifest(machine.wish.state) == {}


@pytest.mark.usefixtures("ordinary")
def test_refused_file_that_was_set_up_before(machine: Machine) -> None:
    """What was remembered of it, and its copy, are as they were."""
    path = machine.write("{}")
    machine.set_up()
    known = load_manifest(machine.wish.state)
    path.chmod(0o444)
    with pytest.raises(InvalidSettings, match="Permission denied"):
        machine.set_up(program=program("/new/brimline-hook"))
    assert (load_manifest(machine.wish.state), backup_path(path).read_text()) == (known, "{}")


@pytest.mark.parametrize("left", [LOCK_SUFFIX, BACKUP_SUFFIX, f"{DRAFT_MARK}1f"])
@pytest.mark.parametrize("agent", ["claude", "pi"])
def test_what_a_killed_setup_left(machine: Machine, agent: str, left: str) -> None:
    """It is cleared away with --remove; what others put beside the file stays."""
    path = machine.write("{}", agent)
    name = f".{path.name}{left}" if left.startswith(DRAFT_MARK) else f"{path.name}{left}"
    for place in (name, f"{path.name}.bak", f".other{DRAFT_MARK}1f"):
        (path.parent / place).touch()
    machine.take_out(agent)
    assert machine.around(agent) == sorted([f".other{DRAFT_MARK}1f", path.name, f"{path.name}.bak"])
    assert not machine.plan(agent, remove=True).pending


@pytest.mark.usefixtures("ordinary")
def test_record_that_stays(machine: Machine) -> None:
    """Where it cannot be forgotten, the file is given back all the same, and that is told."""
    path = machine.write("{}")
    machine.set_up()
    machine.wish.state.chmod(0o555)
    done = machine.take_out()
    machine.wish.state.chmod(0o700)
    assert "setup.json: file: cannot be written" in str(done.problem)
    assert (path.read_text(), done.after) == ("{}", b"{}")
    assert machine.take_out().problem is None
    assert (load_manifest(machine.wish.state), machine.around()) == ({}, ["settings.json"])
