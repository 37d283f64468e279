"""The hash over what changes the overhead of a session."""

import json
import os
from pathlib import Path

import pytest

from brimline.agents.fresh_session.configuration import (
    MAX_FILE_BYTES,
    fingerprint,
    hash_files,
    steering_variables,
)
from brimline.agents.transcripts.source import Places

from .scripted import Machine

COUNTS = (
    "home/.claude/settings.json",
    "home/.claude/CLAUDE.md",
    "home/.claude/rules/a.md",
    "home/.claude/agents/a/b.md",
    "home/.claude/skills/s/SKILL.md",
    "home/.claude/commands/c.md",
    "home/.claude/output-styles/o.md",
    "home/.claude/plugins/installed_plugins.json",
    "home/.claude/plugins/cache/m/p/1/agents/a.md",
    "project/CLAUDE.md",
    "project/CLAUDE.local.md",
    "project/AGENTS.md",
    "project/.mcp.json",
    "project/.claude/settings.json",
    "project/.claude/settings.local.json",
    "project/.claude/agents/a.md",
    "project/.claude/skills/s/SKILL.md",
    "CLAUDE.md",
)
IS_NOTHING = (
    "home/.claude/history.jsonl",
    "home/.claude/plugins/store/x.json",
    "home/.claude/projects/-p/s.jsonl",
    "home/.claude/skills/s/picture.png",
    "project/README.md",
    "project/below/CLAUDE.md",
)


def of(machine: Machine, **env: str) -> str:
    """The hash of a machine's project."""
    return fingerprint(Places(machine.home, machine.env | env), machine.project)


def write(machine: Machine, name: str, text: str) -> None:
    """Write a file of the machine."""
    path = machine.home.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_is_stable(machine: Machine) -> None:
    """The same configuration has the same hash, also when a file is only touched."""
    write(machine, "project/CLAUDE.md", "x")
    before = of(machine)
    write(machine, "project/CLAUDE.md", "x")
    assert of(machine) == before


@pytest.mark.parametrize("name", COUNTS)
def test_counts(machine: Machine, name: str) -> None:
    """A new file, other text in it and its end each change the hash."""
    none = of(machine)
    write(machine, name, "one")
    one = of(machine)
    write(machine, name, "two")
    two = of(machine)
    (machine.home.parent / name).unlink()
    assert len({none, one, two}) == 3
    assert of(machine) == none


@pytest.mark.parametrize("name", IS_NOTHING)
def test_is_nothing(machine: Machine, name: str) -> None:
    """What puts nothing into the prompt, or is written at each start, changes nothing."""
    before = of(machine)
    write(machine, name, "one")
    assert of(machine) == before


def test_place_of_a_file_counts(machine: Machine) -> None:
    """The same text in another file is another configuration."""
    write(machine, "project/CLAUDE.md", "one")
    first = of(machine)
    (machine.project / "CLAUDE.md").rename(machine.project / "CLAUDE.local.md")
    assert of(machine) != first


def state(machine: Machine, **fields: object) -> None:
    """Write the client's own state."""
    (machine.home / ".claude.json").write_text(json.dumps(fields))


def test_mcp_servers_count_and_statistics_do_not(machine: Machine) -> None:
    """Of the client's state the MCP servers count, the user's and this project's."""
    before = of(machine)
    state(machine, numStartups=5, projects={str(machine.project): {"lastCost": 1}})
    assert of(machine) == before
    state(machine, mcpServers={"db": {"command": "db"}})
    user = of(machine)
    state(machine, projects={str(machine.project): {"mcpServers": {"db": {"command": "db"}}}})
    project = of(machine)
    state(machine, projects={"/elsewhere": {"mcpServers": {"db": {"command": "db"}}}})
    assert len({before, user, project}) == 3
    assert of(machine) == before


def test_broken_state_is_none(machine: Machine) -> None:
    """A state that cannot be read is as good as none."""
    before = of(machine)
    (machine.home / ".claude.json").write_text("{broken")
    assert of(machine) == before


def test_variables_count(machine: Machine) -> None:
    """A variable that steers the client counts, any other does not."""
    before = of(machine)
    assert of(machine, ENABLE_TOOL_SEARCH="0") != before
    assert of(machine, CLAUDE_CODE_AUTO_COMPACT_WINDOW="1") != before
    assert of(machine, LANG="C") == before


def test_secrets_are_not_read() -> None:
    """Of a key only that it is there counts, so that a new one changes nothing."""
    env = {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_MODEL": "opus", "PATH": "/", "MAX_X": ""}
    assert steering_variables(env) == ["ANTHROPIC_API_KEY=set", "ANTHROPIC_MODEL=opus"]


def test_moved_configuration(machine: Machine, tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR moves the user's files, and the state with them."""
    moved = tmp_path / "moved"
    moved.mkdir()
    before = of(machine, CLAUDE_CONFIG_DIR=str(moved))
    write(machine, "moved/agents/a.md", "one")
    assert of(machine, CLAUDE_CONFIG_DIR=str(moved)) != before


def test_unreadable_is_passed_over(machine: Machine, without_privileges: None) -> None:
    """A file or a folder that may not be read is as good as none."""
    before = of(machine)
    write(machine, "project/CLAUDE.md", "x")
    write(machine, "home/.claude/agents/a.md", "x")
    (machine.project / "CLAUDE.md").chmod(0)
    (machine.home / ".claude/agents").chmod(0)
    try:
        assert of(machine) == before
    finally:
        (machine.home / ".claude/agents").chmod(0o755)


def test_fifo_is_passed_over(machine: Machine) -> None:
    """A FIFO in place of a memory file is not waited for."""
    before = of(machine)
    os.mkfifo(machine.project / "CLAUDE.md")
    os.mkfifo(machine.home / ".claude.json")
    assert of(machine) == before


def test_contents(tmp_path: Path) -> None:
    """Named files count by what is in them; one that is gone is empty, a huge one is its size."""
    file = tmp_path / "a.md"
    gone = hash_files([str(file)])
    file.write_text("x")
    assert hash_files([str(file)]) != gone
    file.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    large = hash_files([str(file)])
    file.write_bytes(b"y" * (MAX_FILE_BYTES + 1))
    assert hash_files([str(file)]) == large
