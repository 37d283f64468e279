"""`brimline windows` and `brimline demo`."""

import pytest

from .terminal import User, cells, without_colour

SONNET = """\
Claude Code, claude-sonnet-4-5
  window 200,000 (client): result.modelUsage and status line (claude 2.1.325, 2026-11)
  limit  167,000 (known): auto-compact window - min(max output, 20,000) - 13,000 \
(claude 2.1.325, 2026-11)
catalogue (genai-prices 0.2.1): window 200,000, longest reply 64,000
"""


def test_model(user: User) -> None:
    """What we believe of a model in a client, and why."""
    done = user.run("windows", "claude-sonnet-4-5", "--agent", "claude")
    assert done == (0, SONNET, "")


def test_model_in_every_agent(user: User) -> None:
    """Every agent may give a model another window."""
    done = user.run("windows", "gpt-5.5")
    for name in ("Claude Code", "Codex", "Pi", "Gemini CLI", "opencode"):
        assert f"{name}, gpt-5.5\n" in done.out


def test_unknown_model(user: User) -> None:
    """A model that nobody knows has an unknown window, not a guess."""
    done = user.run("windows", "my-model", "--agent", "pi")
    assert done.lines == [
        "Pi, my-model",
        "  window unknown: not in the client table or the catalogue",
        "  limit  unknown",
        "catalogue (genai-prices 0.2.1): not listed",
    ]


def test_user_setting(user: User) -> None:
    """What the user set is what we believe."""
    done = user.run("windows", "my-model", "--agent", "pi", BRIMLINE_WINDOWS="my-model=64000")
    assert done.lines[1] == "  window 64,000 (set): set in Brimline's settings"


def test_client_setting(user: User) -> None:
    """What the user told the client holds too."""
    (user.projects.parent / "settings.json").write_text('{"autoCompactEnabled": false}')
    done = user.run("windows", "claude-sonnet-4-5", "--agent", "claude")
    assert done.lines[2].startswith("  limit  200,000 (off): ")


def test_json(user: User) -> None:
    """The same as JSON."""
    made = user.run("windows", "claude-sonnet-4-5", "--json").json
    assert list(made) == ["model", "catalogue", "agents"]
    assert made["catalogue"]["window"] == 200_000
    assert [belief["agent"] for belief in made["agents"]] == [
        "claude", "codex", "gemini", "opencode", "pi",
    ]  # fmt: skip
    assert made["agents"][0]["limit"]["tokens"] == 167_000


def test_table(user: User) -> None:
    """Without a model: what is known of the clients, each with where it was seen."""
    done = user.run("windows")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "Windows by client:"
    assert "Limits by client:" in done.lines
    assert done.lines[-1].endswith("ids in the catalogue, generated from genai-prices 0.2.1.")
    only = user.run("windows", "--agent", "gemini").out
    assert "gemini" in only
    assert "codex" not in only


def test_table_as_json(user: User) -> None:
    """Also as JSON."""
    made = user.run("windows", "--json", "--agent", "codex").json
    assert {row["agent"] for row in made["windows"]} == {"codex"}
    assert made["limits"][0]["fraction"] == 0.9


@pytest.mark.parametrize("columns", [80, 200])
def test_table_fits(user: User, columns: int) -> None:
    """It fits 80 columns."""
    done = user.on_terminal("windows", columns=columns)
    assert max(map(cells, without_colour(done.out).splitlines())) <= columns


# The demo.


def test_demo_in_a_pipe(user: User) -> None:
    """In a pipe: a line for each compaction, the end and a chart, at once and without escapes."""
    done = user.run("demo", COLUMNS="80")
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert "\r" not in done.out
    assert done.lines[0] == "A recorded Claude Code session (Ctrl-C stops it):"
    assert "usage is unknown until the next reply." in done.out
    assert done.lines[-1].startswith("Next: `brimline status`")
    assert max(map(cells, done.lines)) <= 88
    chart = [line for line in done.lines if {"┤", "└", "┼"} & set(line)]
    assert len(chart) == 11
    assert "▲" in chart[-1]


def test_demo_on_a_terminal(user: User) -> None:
    """On a terminal the line is drawn anew for every call."""
    done = user.on_terminal("demo", "--speed", "50")
    assert done.code == 0
    assert done.out.count("\r\x1b[K") > 20
    assert "call 3" in done.out


@pytest.mark.parametrize("speed", ["0", "-1", "1e9", "inf"])
def test_demo_at_any_speed(user: User, speed: str) -> None:
    """A speed that makes no sense is as fast as it goes."""
    assert user.on_terminal("demo", "--speed", speed).code == 0
