"""`brimline baseline`."""

import json
from typing import Any

import pytest

from .terminal import Completed, User, cells, environment, without_colour

# A client that has one answer to everything.
CLIENT = """\
#!/bin/sh
[ "$1" = --version ] && echo '{version} (Claude Code)' && exit
n=0
while read -r line; do
  n=$((n+1))
  echo '{{"type":"control_response","response":{{"subtype":"success",'\
'"request_id":"brimline-'$n'","response":{usage}}}}}'
done
"""

USAGE: dict[str, Any] = {
    "categories": [
        {"name": "System prompt", "tokens": 1_534, "kind": "used"},
        {"name": "System tools", "tokens": 5_285, "kind": "used"},
        {"name": "System tools (deferred)", "tokens": 3_646, "kind": "deferred"},
        {"name": "Skills", "tokens": 2_064, "kind": "used"},
        {"name": "Messages", "tokens": 9, "kind": "used"},
        {"name": "Autocompact buffer", "tokens": 33_000, "kind": "buffer"},
        {"name": "Free space", "tokens": 158_108, "kind": "free"},
    ],
    "rawMaxTokens": 200_000,
    "autoCompactThreshold": 167_000,
    "model": "claude-sonnet-4-5",
}

TABLE = """\
Claude Code  2.1.325  claude-sonnet-4-5
category                 tokens   of window
System prompt             1,534        0.8%
System tools              5,285        2.6%
Skills                    2,064        1.0%
Messages                      9        0.0%
a fresh session           8,892        4.4%
System tools (deferred)   3,646  not loaded
window 200,000 (reported): reported by the client
limit  167,000 (reported): reported by the client
source get_context_usage, asked just now
"""


@pytest.fixture
def asker(user: User) -> User:
    """A user who has Claude Code."""
    install(user, USAGE)
    return user


def install(user: User, usage: dict[str, Any], version: str = "2.1.325") -> None:
    """Put a client into the user's PATH that answers with this."""
    folder = user.home / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text(CLIENT.format(usage=json.dumps(usage), version=version))
    program.chmod(0o755)
    user.env["PATH"] = f"{folder}:/usr/bin:/bin"


def test_table_shows_categories_fresh_share_and_source(asker: User) -> None:
    assert asker.run("baseline") == (0, TABLE, "")


def test_second_baseline_says_it_is_cached_and_how_to_refresh(asker: User) -> None:
    asker.run("baseline")
    again = asker.run("baseline").lines[-1]
    assert again.startswith("source get_context_usage, cached ")
    assert again.endswith(" ago; --fresh asks again")
    assert asker.run("baseline", "--fresh").lines[-1].endswith("asked just now")


def test_json_has_the_figures_of_the_table(asker: User) -> None:
    output = asker.run("baseline", "--json").json
    assert (output["tokens"], output["percent"], output["window"]["tokens"]) == (
        8_892,
        4.4,
        200_000,
    )
    assert output["limit"]["tokens"] == 167_000
    assert output["categories"][2] == {
        "name": "System tools (deferred)",
        "tokens": 3_646,
        "deferred": True,
    }
    assert (output["cached"], output["estimated"], output["without"]) == (False, False, [])
    assert asker.run("baseline", "--json").json["cached"]


def test_guessed_figures_are_marked_as_guesses(asker: User) -> None:
    install(asker, USAGE | {"categories": USAGE["categories"][:4]})
    assert asker.run("baseline").lines[-1] == (
        "estimated by the client: its API did not count the tokens"
    )


def test_no_percentage_without_a_window(asker: User) -> None:
    install(asker, {"categories": USAGE["categories"][:5]}, version="1.0.0")
    completed = asker.run("baseline")
    assert completed.lines[2].split() == ["System", "prompt", "1,534", "unknown"]
    assert completed.lines[-3:-1] == ["window unknown", "limit  unknown"]


def test_escapes_from_the_client_do_not_reach_the_terminal(asker: User) -> None:
    rows = [*USAGE["categories"], {"name": "\x1b[2Jbad", "tokens": 5, "kind": "used"}]
    install(asker, USAGE | {"categories": rows, "model": "m\x07"})
    assert not {"\x1b", "\x07"} & set(asker.run("baseline").out)


@pytest.mark.parametrize("columns", [40, 80])
def test_terminal_shows_progress_erases_it_and_the_table_fits(asker: User, columns: int) -> None:
    completed = asker.on_terminal("baseline", columns=columns)
    waiting, _, table = completed.out.partition("\r\x1b[K")
    assert waiting == "asking Claude Code ..."
    plain = without_colour(table).splitlines()
    assert max(map(cells, plain[1:8])) <= columns
    assert any(line.startswith("a fresh session") for line in plain)


def test_progress_is_erased_when_the_client_does_not_answer(user: User) -> None:
    user.env["PATH"] = "/nowhere"
    completed = user.on_terminal("baseline")
    assert completed.code == 2
    assert completed.out.startswith(
        "asking Claude Code ...\r\x1b[Kbrimline: cannot get the baseline of claude"
    )


def failed(completed: Completed) -> str:
    """The error output of a command that failed."""
    assert (completed.code, completed.out) == (2, "")
    return completed.err


def test_missing_client_is_an_error_with_a_hint(user: User) -> None:
    user.env = dict(environment(user, PATH="/nowhere"))
    assert failed(user.run("baseline")) == (
        "brimline: cannot get the baseline of claude: Claude Code is not installed\n"
        "hint: Install Claude Code, or add `claude` to your PATH.\n"
    )


def test_unsupported_and_unknown_agents_are_refused(user: User) -> None:
    assert "Codex has no way to ask for it" in failed(user.run("baseline", "--agent", "codex"))
    assert "unknown agent 'nonsense'" in failed(user.run("baseline", "--agent", "nonsense"))
