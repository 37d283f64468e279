"""Sessions by the beginning of their id, by their title, or by default."""

import os
import pty
import subprocess
import sys

import pytest

from server.running import Running

from .terminal import PATIENCE_S, Json, User


def add_session(user: User, id: str, title: str, age: float) -> None:
    named: Json = {"type": "custom-title", "customTitle": title, "sessionId": id}
    user.session(id, user.call(f"m-{id}", 9_000, age, sessionId=id), named, age=age)


@pytest.fixture
def several(user: User) -> User:
    """A user with four sessions; the ids of two begin alike, and so do the titles of two."""
    add_session(user, "aaaaaaaa-1111", "Fix the login", 60)
    add_session(user, "aaaaaaaa-2222", "Fix the parser", 120)
    add_session(user, "cccccccc-3333", "Write the docs", 180)
    add_session(user, "dddddddd-4444", "Fix the login page", 240)
    return user


def inspected(user: User, *words: str, **env: str) -> str:
    """The session that `inspect` shows."""
    env_typed: Json = env
    completed = user.run("inspect", "--json", *words, **env_typed)
    assert completed.code == 0, completed.err
    assert completed.json["title"]
    return completed.json["session_id"]


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("cccccccc-3333", "cccccccc-3333"),
        ("ccc", "cccccccc-3333"),
        ("aaaaaaaa-2", "aaaaaaaa-2222"),
        ("docs", "cccccccc-3333"),
        ("PARSER fix", "aaaaaaaa-2222"),
        ("login page", "dddddddd-4444"),
    ],
)
def test_session_is_named_by_its_id_or_by_words_of_its_title(
    several: User, name: str, id: str
) -> None:
    assert inspected(several, name) == id


def test_short_ids_of_status_name_each_session(several: User) -> None:
    for line in several.run("status").lines[1:-1]:
        short_id = line.split()[0]
        assert inspected(several, short_id).startswith(short_id)


def test_session_of_the_agent_is_the_default_inside_it(several: User) -> None:
    inside = {"CLAUDE_CODE_SESSION_ID": "cccccccc-3333"}
    assert inspected(several, **inside) == "cccccccc-3333"


def test_script_must_name_a_session(several: User) -> None:
    completed = several.run("inspect")
    assert (completed.code, completed.out) == (2, "")
    assert "no session given" in completed.err


def test_latest_session_is_the_default_on_a_terminal(several: User) -> None:
    out = several.on_terminal("inspect").out
    assert out.startswith("latest session: aaaaaaaa-1 Fix the login (claude)\n")
    unknown: Json = {"GEMINI_CLI": "1"}  # inside an agent whose session is unknown
    assert "no session given" in several.on_terminal("inspect", **unknown).out


AMBIGUOUS = """\
brimline: more than one session matches 'login':
   aaaaaaaa-1  Fix the login       claude  ~/project  1m
   dddddddd    Fix the login page  claude  ~/project  4m
hint: Give more of the id or title.
"""


@pytest.mark.parametrize(
    "command",
    [["inspect"], ["explain"], ["handoff", "--draft"], ["setup", "--dry-run", "--parent"]],
)
def test_ambiguous_name_lists_id_title_project_and_age(several: User, command: list[str]) -> None:
    completed = several.run(*command, "login")
    assert (completed.code, completed.err) == (2, AMBIGUOUS)
    narrow = several.run(*command, "login", COLUMNS="40")
    assert max(map(len, narrow.err.splitlines()[1:])) <= 40


def test_ambiguous_name_lists_nine_and_counts_the_others(user: User) -> None:
    for number in range(11):
        add_session(user, f"{number:x}bbbbbbb", "Fix it", 60 * number)
    lines = user.run("inspect", "fix").err.splitlines()
    assert (len(lines), lines[-2]) == (12, "   and 2 more")


def test_commands_that_ask_the_daemon_take_sessions_that_only_files_have(
    several: User, daemon: Running
) -> None:
    """A short id of `status` is never taken for the id of a session to come."""
    several.env |= {"BRIMLINE_STATE_DIR": str(daemon.state)}
    for command in (["send", "aaaaaaaa-2", "Hi."], ["handoff", "--ask", "aaaaaaaa-2"]):
        assert "queued for aaaaaaaa-2222: " in several.run(*command).out
    assert "Hi." in several.run("inbox", "aaaaaaaa-2").out
    ambiguous = several.run("send", "login", "Hi.")
    assert (ambiguous.code, ambiguous.err) == (2, AMBIGUOUS)


def test_parent_is_written_with_its_whole_id(several: User) -> None:
    assert 'parent = "cccccccc-3333"' in several.run("setup", "--dry-run", "--parent", "ccc").out
    assert 'parent = "to-come"' in several.run("setup", "--dry-run", "--parent", "to-come").out


@pytest.mark.parametrize(("answer", "code"), [("2", 0), ("3", 2), ("", 2)])
def test_user_on_a_terminal_picks_one_of_several(several: User, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "brimline", "inspect", "login", "--json"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        cwd=several.cwd,
        env=several.env,
    ) as process:
        os.write(ours, answer.encode() + b"\n")
        out, _ = process.communicate(timeout=PATIENCE_S)
        asked = os.read(ours, 65_536).decode()
    os.close(ours)
    os.close(theirs)
    assert "2  dddddddd    Fix the login page  claude  ~/project  4m" in asked
    assert process.returncode == code
    assert (b'"session_id": "dddddddd-4444"' in out) == (code == 0)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cccccccd", "cccccccc-3333 Write the docs (claude)"),
        ("prser", "aaaaaaaa-2222 Fix the parser (claude)"),
        ("write teh docs", "cccccccc-3333 Write the docs (claude)"),
    ],
)
def test_error_for_an_unknown_session_suggests_a_near_one(
    several: User, name: str, near: str
) -> None:
    completed = several.run("inspect", name)
    assert completed.code == 2
    assert f"hint: Did you mean {near}?" in completed.err


def test_draft_takes_a_title_too(several: User) -> None:
    prompt = several.record("user", 30, message={"role": "user", "content": "Rename it."})
    several.session("eeee", several.call("m9", 9_000, 30, sessionId="eeee"), prompt, age=30)
    assert "Rename it." in several.run("handoff", "--draft", "rename").out
