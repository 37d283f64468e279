"""Which version of a client is installed, and whether it is newer than the tested one."""

import re
from pathlib import Path

import pytest

from brimline.agents import all_agents
from brimline.agents.transcripts.source import Places
from brimline.cli.client_versions import WARNED_FILE, find_version, is_newer, take_warnings
from drifted_homes import write_home


def install(folder: Path, package: str | None) -> Path:
    """Install a command `codex` below a folder; return the folder of a link to it."""
    command = folder / "dist" / "cli.js"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh")
    command.chmod(0o755)
    if package is not None:
        (folder / "package.json").write_text(package)
    links = folder.parents[2] / "bin"
    links.mkdir()
    (links / "codex").symlink_to(command)
    return links


def test_version_is_that_of_the_package_of_the_command(tmp_path: Path) -> None:
    write_home("codex", tmp_path / "home", None)
    links = install(tmp_path / "lib/node_modules/codex", '{"name": "x", "version": "9.1.0"}')
    assert find_version("codex", Places(tmp_path / "home", {"PATH": str(links)})) == "9.1.0"


@pytest.mark.parametrize("package", [None, "{", '{"version": 3}'])
def test_version_without_a_package_is_that_of_the_newest_transcript(
    tmp_path: Path, package: str | None
) -> None:
    write_home("codex", tmp_path / "home", None)
    links = install(tmp_path / "lib/node_modules/codex", package)
    places = Places(tmp_path / "home", {"PATH": str(links)})
    assert find_version("codex", places) == "0.166.0"


def test_package_of_something_else_is_not_read(tmp_path: Path) -> None:
    links = install(tmp_path / "lib/other/codex", '{"version": "9.1.0"}')
    assert find_version("codex", Places(tmp_path / "home", {"PATH": str(links)})) is None


def test_unreadable_transcript_has_no_version(tmp_path: Path) -> None:
    write_home("opencode", tmp_path, None).write_bytes(b"SQLite format 3\0")
    assert find_version("opencode", Places(tmp_path, {})) is None


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        ("2.1.325", False),
        ("2.1.324", False),
        ("2.1.326", True),
        ("2.2.0-beta.1", True),
        ("2.1.1000", True),
        ("3", True),
        ("2.1", False),
        ("unknown", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, newer: bool) -> None:
    assert is_newer(version, "2.1.325") is newer


def test_docs_name_the_tested_versions() -> None:
    page = (Path(__file__).parents[2] / "docs/guides/client-versions.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([\w ]+) \| ([\d.]+) \|$", page, re.MULTILINE))
    assert rows == {
        agent.capabilities.display_name: agent.capabilities.tested_version for agent in all_agents()
    }


def test_each_newer_version_is_warned_about_once(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert take_warnings(state, {"claude": "2.1.325", "pi": None}) == {}
    assert not state.exists()
    assert [*take_warnings(state, {"claude": "2.2.0", "codex": "0.166.0"})] == ["claude"]
    assert take_warnings(state, {"claude": "2.2.0"}) == {}
    assert [*take_warnings(state, {"claude": "2.2.0", "codex": "1.0.0"})] == ["codex"]
    assert [*take_warnings(state, {"claude": "2.2.1", "codex": "1.0.0"})] == ["claude"]
    (state / WARNED_FILE).write_text("{")
    assert [*take_warnings(state, {"claude": "2.2.1"})] == ["claude"]
