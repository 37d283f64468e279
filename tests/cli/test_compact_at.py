"""`brimline compact-at`: the clients' own settings for their compaction."""

import json
from pathlib import Path
from typing import Any

import pytest

from .terminal import User


@pytest.fixture
def settings(user: User) -> Path:
    """The settings of a user of Claude Code with one session on a window of 200K."""
    user.session("s1", user.call("m1", 40_000, 300), user.call("m2", 50_000, 60))
    return user.projects.parent / "settings.json"


def shown(user: User, *arguments: str) -> Any:
    [row] = user.run("compact-at", *arguments, "--json").json
    return row


def test_point_is_written_for_the_model_in_use(user: User, settings: Path) -> None:
    done = user.run("compact-at", "60%")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "Claude Code  sonnet-4-5  compacts at 120K, 60% of 200K",
        f"  {settings}: modelSettings.claude-sonnet-4-5.autoCompactWindow = 153000",
        "  for claude-sonnet-4-5 alone",
        "  sessions that run now go on as before",
    ]
    written = {"modelSettings": {"claude-sonnet-4-5": {"autoCompactWindow": 153_000}}}
    assert json.loads(settings.read_text()) == written
    assert "limit  120,000 (configured)" in user.run("inspect", "s1").out


def test_what_was_set_is_shown_with_what_happens(user: User, settings: Path) -> None:
    assert user.run("compact-at").out.startswith("Nothing is set.")
    user.run("compact-at", "120k", "claude")
    for arguments in ((), ("--show",), ("claude", "--show")):
        row = shown(user, *arguments)
        assert (row["limit"], row["check"]["verdict"]) == (120_000, "not seen")
    assert "compact-at" in user.run("doctor").out


def test_removal_restores_the_file(user: User, settings: Path) -> None:
    before = '{\n  "model": "sonnet" }\n'
    settings.write_text(before)
    for remove in (("compact-at", "--remove"), ("setup", "--remove")):
        user.run("compact-at", "60%")
        assert settings.read_text() != before
        assert user.run(*remove).code == 0
        assert settings.read_text() == before
    assert user.run("compact-at", "--remove").out == "Nothing to restore.\n"


def test_dry_run_writes_nothing(user: User, settings: Path) -> None:
    row = shown(user, "60%", "--dry-run")
    assert (row["limit"], row["written"]) == (120_000, False)
    assert not settings.exists()


def test_project_has_a_setting_of_its_own(user: User, settings: Path) -> None:
    row = shown(user, "60%", "--project")
    assert row["path"] == str(user.cwd / ".claude" / "settings.local.json")
    assert not settings.exists()


def test_point_below_a_fresh_session_is_refused_with_its_size(user: User, settings: Path) -> None:
    user.session("s2", user.call("m1", 90_000, 50, sessionId="s2"))
    user.session("s1", user.call("m1", 80_000, 40))
    done = user.run("compact-at", "70k")
    assert done.code == 1
    assert done.lines[1] == (
        "  it would compact at 70K, but a fresh session begins with 80K: choose a higher point"
    )
    assert not settings.exists()


def test_setting_that_goes_first_is_named(user: User, settings: Path) -> None:
    user.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "180000"
    row = shown(user, "60%")
    assert any("another setting goes first: 147K" in note for note in row["notes"])


def test_agent_without_a_session_needs_a_model(user: User) -> None:
    row = shown(user, "60%", "codex")
    assert "--model" in row["problem"]
    row = shown(user, "60%", "codex", "--model", "gpt-5.5")
    assert (row["key"], row["value"]) == ("model_auto_compact_token_limit", 155_040)


def test_window_that_the_user_set_is_not_used(user: User) -> None:
    """For a model whose window is unknown otherwise."""
    row = shown(user, "60%", "qwen", "--model", "local-model")
    assert "its window or its rule is unknown" in row["problem"]
    user.env["BRIMLINE_WINDOWS"] = "local-model=200000"
    row = shown(user, "60%", "qwen", "--model", "local-model")
    assert (row["window"], row["limit"]) == (200_000, 120_000)


def test_point_that_no_agent_got_is_a_failure(user: User) -> None:
    assert user.run("compact-at", "60%").code == 1
    assert user.run("compact-at").code == 0


@pytest.mark.parametrize("point", ["0%", "101%", "half", "12", "-5k", "1e9k", "60 %"])
def test_wrong_point_is_refused(point: str, user: User) -> None:
    done = user.run("compact-at", "--", point)
    assert done.code == 2
    assert "expected a share of the window such as 60%, or tokens such as 180k" in done.err
