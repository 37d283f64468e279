"""`brimline baseline`."""

import json
from typing import Any

import pytest

from .terminal import Done, User, cells, environment, without_colour

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
"""A client that has one answer to everything."""

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
    """Put a client into the user's PATH that says this."""
    folder = user.home / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text(CLIENT.format(usage=json.dumps(usage), version=version))
    program.chmod(0o755)
    user.env["PATH"] = f"{folder}:/usr/bin:/bin"


def test_table(asker: User) -> None:
    """The categories, what a fresh session holds of them, and where the figures come from."""
    assert asker.run("baseline") == (0, TABLE, "")


def test_remembered(asker: User) -> None:
    """The second time says that it was remembered, and how to ask anew."""
    asker.run("baseline")
    again = asker.run("baseline").lines[-1]
    assert again.startswith("source get_context_usage, cached ")
    assert again.endswith(" ago; --fresh asks again")
    assert asker.run("baseline", "--fresh").lines[-1].endswith("asked just now")


def test_json(asker: User) -> None:
    """The same as JSON."""
    made = asker.run("baseline", "--json").json
    assert (made["tokens"], made["percent"], made["window"]["tokens"]) == (8_892, 4.4, 200_000)
    assert made["limit"]["tokens"] == 167_000
    assert made["categories"][2] == {
        "name": "System tools (deferred)",
        "tokens": 3_646,
        "deferred": True,
    }
    assert (made["cached"], made["estimated"], made["without"]) == (False, False, [])
    assert asker.run("baseline", "--json").json["cached"]


def test_guess(asker: User) -> None:
    """A guess is shown as one."""
    install(asker, USAGE | {"categories": USAGE["categories"][:4]})
    assert asker.run("baseline").lines[-1] == (
        "estimated by the client: its API did not count the tokens"
    )


def test_unknown_window(asker: User) -> None:
    """Without a window nothing is a percentage, and nothing is 0."""
    install(asker, {"categories": USAGE["categories"][:5]}, version="1.0.0")
    done = asker.run("baseline")
    assert done.lines[2].split() == ["System", "prompt", "1,534", "unknown"]
    assert done.lines[-3:-1] == ["window unknown", "limit  unknown"]


def test_what_a_client_says_is_cleaned(asker: User) -> None:
    """Nothing that the client says is obeyed by the terminal."""
    rows = [*USAGE["categories"], {"name": "\x1b[2Jbad", "tokens": 5, "kind": "used"}]
    install(asker, USAGE | {"categories": rows, "model": "m\x07"})
    assert not {"\x1b", "\x07"} & set(asker.run("baseline").out)


@pytest.mark.parametrize("columns", [40, 80])
def test_on_a_terminal(asker: User, columns: int) -> None:
    """What is waited for is said on the terminal, and taken back; the table fits."""
    done = asker.on_terminal("baseline", columns=columns)
    waiting, _, shown = done.out.partition("\r\x1b[K")
    assert waiting == "asking Claude Code ..."
    plain = without_colour(shown).splitlines()
    assert max(map(cells, plain[1:8])) <= columns
    assert any(line.startswith("a fresh session") for line in plain)


def test_progress_is_taken_back_on_failure(user: User) -> None:
    """So it is when the client does not answer."""
    user.env["PATH"] = "/nowhere"
    done = user.on_terminal("baseline")
    assert done.code == 2
    assert done.out.startswith(
        "asking Claude Code ...\r\x1b[Kbrimline: cannot get the baseline of claude"
    )


def failed(done: Done) -> str:
    """What a command complained of."""
    assert (done.code, done.out) == (2, "")
    return done.err


def test_not_installed(user: User) -> None:
    """A client that is not there is said to be so, with what to do."""
    user.env = dict(environment(user, PATH="/nowhere"))
    assert failed(user.run("baseline")) == (
        "brimline: cannot get the baseline of claude: Claude Code is not installed\n"
        "hint: Install Claude Code, or add `claude` to your PATH.\n"
    )


def test_other_agents(user: User) -> None:
    """Other agents cannot be asked; a name that is none is known to be none."""
    assert "Codex has no way to ask for it" in failed(user.run("baseline", "--agent", "codex"))
    assert "unknown agent 'nonsense'" in failed(user.run("baseline", "--agent", "nonsense"))
