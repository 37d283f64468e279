"""`brimline windows` and `brimline demo`."""

import pytest

from .terminal import Json, User, cells, without_colour

SONNET = """\
Claude Code, claude-sonnet-4-5
  window 200,000 (client): result.modelUsage and status line (claude 2.1.325, 2026-11)
  limit  167,000 (known): auto-compact window - min(max output, 20,000) - 13,000 \
(claude 2.1.325, 2026-11)
catalogue (genai-prices 0.2.1): window 200,000, longest reply 64,000
"""


def test_window_of_a_model_is_shown_with_its_evidence(user: User) -> None:
    completed = user.run("windows", "claude-sonnet-4-5", "--agent", "claude")
    assert completed == (0, SONNET, "")


def test_window_of_a_model_is_shown_for_every_agent_that_runs_it(user: User) -> None:
    completed = user.run("windows", "gpt-5.5")
    for name in ("Codex", "Pi", "opencode"):
        assert f"{name}, gpt-5.5\n" in completed.out


def test_window_of_a_model_depends_on_its_provider(user: User) -> None:
    by_plan = user.run("windows", "openai-codex/gpt-5.5", "--agent", "pi")
    assert by_plan.lines[1] == "  provider openai-codex"
    assert by_plan.lines[2].startswith("  window 272,000 (client): its model registry (pi ")
    by_copilot = user.run("windows", "github-copilot/claude-opus-4.8", "--agent", "opencode")
    assert by_copilot.lines[2].startswith("  window 200,000 (client): ")


def test_providers_with_the_same_window_are_listed_together(user: User) -> None:
    """The maker's own are shown in full, the others in a line for each window."""
    lines = user.run("windows", "claude-opus-4-8", "--agent", "opencode").lines
    assert lines[1].startswith("  provider anthropic, ")
    assert lines[1].endswith(" more")
    assert lines[2].startswith("  window 1,000,000 (client): its model registry (opencode ")
    copilot = next(line for line in lines if "github-copilot" in line)
    assert copilot.startswith("  window 200,000, limit 148,000: provider ")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("opus-4-5", "claude-opus-4-5"),
        ("sonnet-4-5[1m]", "claude-sonnet-4-5[1m]"),
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("gpt-5.5", "gpt-5.5"),
        ("my-model", "my-model"),
    ],
)
def test_model_is_found_by_the_name_that_status_prints(user: User, name: str, model: str) -> None:
    assert user.run("windows", name, "--json").json["model"] == model


def test_short_name_has_the_window_of_its_model(user: User) -> None:
    short, full = (user.run("windows", name) for name in ("opus-4-5", "claude-opus-4-5"))
    assert short == full
    assert "  window 200,000 " in short.out


def test_mistyped_model_gets_a_suggestion(user: User) -> None:
    mistyped = user.run("windows", "cluade-opus-4-5")
    assert mistyped.err == "hint: cluade-opus-4-5 is not known. Did you mean claude-opus-4-5?\n"
    short = user.run("windows", "sonet-4-5")
    assert short.err == "hint: sonet-4-5 is not known. Did you mean sonnet-4-5?\n"
    assert user.run("windows", "claude-opus-4-5").err == ""
    assert user.run("windows", "my-model").err == ""


def test_models_of_the_clients_settings_are_listed(user: User) -> None:
    folder = user.home / ".pi/agent"
    folder.mkdir(parents=True)
    (folder / "models.json").write_text(
        '{"providers": {"mine": {"models": [{"id": "my-model", "contextWindow": 64000}]}}}'
    )
    lines = user.run("windows", "my-model", "--agent", "pi").lines
    assert lines[1:3] == ["  provider mine", "  window 64,000 (client): set in Pi's settings"]
    assert user.run("windows", "mine/my-model", "--agent", "pi").lines[1:] == lines[1:]


def test_client_that_does_not_know_the_model_gets_a_warning(user: User) -> None:
    lines = user.run("windows", "kimi-k2.5", "--agent", "claude").lines
    assert lines[1].startswith("  window 262,144 (catalogue): ")
    assert lines[2].startswith("  limit  967,000 (known): ")
    assert lines[2].endswith("; set CLAUDE_CODE_AUTO_COMPACT_WINDOW=262144")


def test_unknown_model_has_an_unknown_window(user: User) -> None:
    completed = user.run("windows", "my-model", "--agent", "pi")
    assert completed.lines == [
        "Pi, my-model",
        "  window unknown: not in the client table or the catalogue",
        "  limit  unknown",
        "catalogue (genai-prices 0.2.1): not listed",
    ]


def test_user_setting_overrides_the_window(user: User) -> None:
    completed = user.run("windows", "my-model", "--agent", "pi", BRIMLINE_WINDOWS="my-model=64000")
    assert completed.lines[1] == "  window 64,000 (set): set in Brimline's settings"


def test_client_setting_overrides_the_window(user: User) -> None:
    (user.projects.parent / "settings.json").write_text('{"autoCompactEnabled": false}')
    completed = user.run("windows", "claude-sonnet-4-5", "--agent", "claude")
    assert completed.lines[2].startswith("  limit  200,000 (off): ")


def test_json_has_window_and_evidence(user: User) -> None:
    output = user.run("windows", "claude-sonnet-4-5", "--json").json
    assert list(output) == ["model", "catalogue", "agents", "drifts"]
    assert output["catalogue"]["window"] == 200_000
    agents = dict.fromkeys(belief["agent"] for belief in output["agents"])
    assert list(agents) == ["claude", "opencode", "pi"]
    assert output["agents"][1]["provider"] == "anthropic"
    assert output["agents"][0]["limit"]["tokens"] == 167_000


def test_table_lists_the_clients_with_their_evidence(user: User) -> None:
    completed = user.run("windows")
    assert (completed.code, completed.err) == (0, "")
    assert completed.lines[0] == "Windows by client:"
    assert "Limits by client:" in completed.lines
    assert completed.lines[-1].endswith("ids in the catalogue, generated from genai-prices 0.2.1.")
    only = user.run("windows", "--agent", "gemini").out
    assert "gemini" in only
    assert "codex" not in only


def test_table_is_available_as_json(user: User) -> None:
    output = user.run("windows", "--json", "--agent", "codex").json
    assert {row["agent"] for row in output["windows"]} == {"codex"}
    assert output["limits"][0]["fraction"] == 0.9


@pytest.mark.parametrize("columns", [80, 200])
def test_table_fits_80_columns(user: User, columns: int) -> None:
    completed = user.on_terminal("windows", columns=columns)
    assert max(map(cells, without_colour(completed.out).splitlines())) <= columns


# The demo.


def test_piped_demo_prints_compactions_end_and_chart_without_escapes(user: User) -> None:
    completed = user.run("demo", COLUMNS="80")
    assert (completed.code, completed.err) == (0, "")
    assert "\x1b" not in completed.out
    assert "\r" not in completed.out
    assert completed.lines[0] == "A recorded Claude Code session (Ctrl-C stops it):"
    assert "usage is unknown until the next reply." in completed.out
    assert "\nNext: `brimline status`" in completed.out
    assert max(map(cells, completed.lines)) <= 80
    chart = [line for line in completed.lines if {"┤", "└", "┼"} & set(line)]
    assert len(chart) == 11
    assert "▲" in chart[-1]


def test_demo_fits_a_narrow_terminal(user: User) -> None:
    completed = user.run("demo", COLUMNS="40")
    assert max(map(cells, completed.lines)) <= 40
    drawn = user.on_terminal("demo", "--speed", "50", "--colour", "never", columns=40).out
    frames = [frame for line in drawn.split("\n") for frame in line.split("\r\x1b[K")]
    assert max(map(cells, frames)) <= 40
    assert any("█" in frame and "Context" in frame for frame in frames)


def test_terminal_demo_redraws_the_line_for_each_call(user: User) -> None:
    completed = user.on_terminal("demo", "--speed", "50")
    assert completed.code == 0
    assert completed.out.count("\r\x1b[K") > 20
    assert "call 3" in completed.out


@pytest.mark.parametrize("speed", ["0", "-1", "1e9", "inf"])
def test_senseless_demo_speed_means_no_delay(user: User, speed: str) -> None:
    assert user.on_terminal("demo", "--speed", speed).code == 0


DRIFT = "compacted at 146K three times since 2.1.325, expected 167K"


def write_drift(user: User) -> None:
    """Write a session that was compacted below the client's limit three times."""
    records: list[Json] = []
    for number, before in enumerate((147_000, 146_100, 146_900)):
        age = 1_000 - 100 * number
        records += [
            user.call(f"m{number}", before - 100, age),
            user.record(
                "system",
                age - 10,
                subtype="compact_boundary",
                compactMetadata={"trigger": "auto", "preTokens": before},
            ),
        ]
    user.session("s1", *records, user.call("m9", 40_000, 100))


def test_client_that_compacts_elsewhere_is_named(user: User) -> None:
    write_drift(user)
    drift = {"agent": "claude", "model": "claude-sonnet-4-5", "version": "2.1.325", "text": DRIFT}
    for arguments in ([], ["claude-sonnet-4-5"]):
        completed = user.run("windows", *arguments)
        assert completed.lines[-1] == f"WARNING: Claude Code, claude-sonnet-4-5: {DRIFT}"
        assert user.run("windows", *arguments, "--json").json["drifts"] == [drift]
    for arguments in (["gpt-5.5"], ["--agent", "pi"]):
        assert DRIFT not in user.run("windows", *arguments).out
