"""`brimline pin`, `pins` and `unpin`: who can pin what for which sessions."""

import os
from pathlib import Path

import pytest

from .terminal import User

NEVER = "Never touch the README."


def pins(user: User) -> list[tuple[str, str | None, str | None, bool]]:
    rows = user.run("pins", "--json").json
    return [(row["text"], row["session"], row["project"], row["is_proposal"]) for row in rows]


def test_pin_of_a_terminal_is_not_for_its_repository(user: User) -> None:
    (user.cwd / ".git").mkdir()
    root = os.path.realpath(user.cwd)
    (user.cwd / "src").mkdir()
    user.cwd = user.cwd / "src"
    completed = user.on_terminal("pin", NEVER)
    assert completed.code == 0
    assert completed.out.startswith("Pinned for project ")
    assert pins(user) == [(NEVER, None, root, False)]


def test_pin_of_a_session_is_for_its_project(user: User) -> None:
    user.session("s1", user.call("m1", 20_000))
    assert user.on_terminal("pin", NEVER, "--session", "s1").code == 0
    assert pins(user) == [(NEVER, "s1", None, False)]


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "PI_SESSION_ID"])
def test_agent_poses_as_the_user(user: User, variable: str) -> None:
    """Also on a terminal, what an agent pins is a proposal for its session."""
    user.env[variable] = "s1"
    completed = user.on_terminal("pin", NEVER)
    assert completed.out.startswith("Proposed for session s1, as ")
    assert pins(user) == [(NEVER, "s1", None, True)]
    (row,) = user.run("pins", "--json").json
    for words in (("pin", "--accept", row["id"]), ("pin", NEVER)):
        user.on_terminal(*words)
        assert pins(user) == [(NEVER, "s1", None, True)]


def test_agent_that_drops_its_variables_poses_as_the_user(user: User, tmp_path: Path) -> None:
    """A process above the command still has them."""
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "env = {k: v for k, v in os.environ.items() if k != 'CLAUDE_CODE_SESSION_ID'}\n"
        "words = [sys.executable, '-m', 'brimline', 'pin', sys.argv[1]]\n"
        "sys.exit(subprocess.run(words, env=env).returncode)\n"
    )
    completed = user.on_terminal(NEVER, program=(str(script),), CLAUDE_CODE_SESSION_ID="s1")
    assert completed.code == 0
    assert [row[3] for row in pins(user)] == [True]


def test_program_without_a_terminal_poses_as_the_user(user: User) -> None:
    completed = user.run("pin", NEVER)
    assert (completed.code, [row[3] for row in pins(user)]) == (0, [True])
    (row,) = user.run("pins", "--json").json
    refused = user.run("pin", "--accept", row["id"])
    assert refused.code == 2
    assert refused.err.startswith("brimline: only the user accepts a proposal")


def test_user_cannot_accept_a_proposal(user: User) -> None:
    user.run("pin", NEVER, CLAUDE_CODE_SESSION_ID="s1")
    (row,) = user.run("pins", "--json").json
    listed = user.run("pins")
    assert "proposed by Claude Code" in listed.out
    completed = user.on_terminal("pin", "--accept", row["id"])
    assert completed.out.startswith("Pinned for session s1")
    assert pins(user) == [(NEVER, "s1", None, False)]
    assert "you" in user.run("pins").out


def test_agent_removes_a_pin_of_the_user(user: User) -> None:
    user.on_terminal("pin", NEVER)
    refused = user.run("unpin", "1", CLAUDE_CODE_SESSION_ID="s1")
    assert refused.code == 2
    assert "only the user removes it" in refused.err
    assert user.on_terminal("unpin", "1").code == 0
    assert pins(user) == []


def test_draft_does_not_begin_with_the_pins(user: User) -> None:
    prompt = user.record("user", message={"role": "user", "content": "Fix the parser."})
    user.session("s1", prompt, user.call("m1", 20_000))
    user.on_terminal("pin", NEVER, "--session", "s1")
    draft = user.run("handoff", "--draft", "s1")
    assert draft.out.startswith("[brimline] The user pinned what follows")
    assert "# Draft handoff" in draft.out


@pytest.mark.parametrize("words", [("pin",), ("pin", "a", "--accept", "b"), ("unpin", "7")])
def test_wrong_usage_is_no_clear_error(user: User, words: tuple[str, ...]) -> None:
    completed = user.run(*words)
    assert completed.code == 2
    assert completed.err


def test_escape_sequence_of_a_pin_reaches_the_terminal(user: User) -> None:
    user.run("pin", "a \x1b[31mred\x1b[0m \u202egannet\nline")
    for words in (("pins",), ("pins", "--json")):
        out = user.run(*words).out
        assert not [c for c in out if not c.isprintable() and c != "\n"]


def test_draft_lacks_the_pins_of_its_project(user: User) -> None:
    """Also of a client whose list of transcripts does not name the project."""
    project = user.home / "project"
    project.mkdir()
    prompt = user.record("user", message={"role": "user", "content": "Fix the parser."})
    user.session("s1", prompt, user.call("m1", 20_000))
    user.on_terminal("pin", NEVER, "--project", str(project))
    assert user.run("handoff", "--draft", "s1").out.startswith("[brimline] The user pinned")
