"""Words that are nearly right: commands, agents, and `brimline help`."""

import shlex
from itertools import takewhile

import pytest

from brimline.cli.commands import COMMANDS, GROUPS, create_parser, examples_of

from .terminal import User


def test_mistyped_command_gets_a_suggestion(user: User) -> None:
    wrong = user.run("statsu")
    assert wrong.code == 2
    assert (
        wrong.err == "brimline: unknown command 'statsu'\nhint: Did you mean `brimline status`?\n"
    )


def test_unknown_command_is_told_where_the_commands_are_listed(user: User) -> None:
    assert "hint: `brimline help` lists the commands." in user.run("xyzzy").err


def test_word_that_is_not_near_gets_no_suggestion(user: User) -> None:
    assert "hint: `brimline help` lists the commands." in user.run("help", "nope").err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        ("report --bye day", "--by"),
        ("report --sinc=7d", None),  # an abbreviation, which argparse knows
        ("status --colr=never", "--color"),
        ("--jsn", "--json"),
        ("report --bogus", None),
        ("handoff --sesion a1", "--session"),
    ],
)
def test_mistyped_option_gets_a_suggestion(user: User, arguments: str, near: str | None) -> None:
    hints = [line for line in user.run(*arguments.split()).err.splitlines() if "hint: " in line]
    assert hints == ([f"hint: Did you mean {near}?"] if near else [])


def test_help_lists_every_command_in_its_group(user: User) -> None:
    sections = user.run("help", COLUMNS="120").out.split("\n\n")
    listed = {
        lines[0].rstrip(":"): [line.split()[0] for line in lines[1:]]
        for lines in map(str.splitlines, sections[2:-2])
    }
    assert listed == {group: list(commands) for group, commands in GROUPS.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_ends_with_two_examples_that_parse(user: User, command: str) -> None:
    examples = user.run(command, "--help", COLUMNS="80").out.rpartition("Examples:\n")[2]
    assert [line.strip() for line in examples.splitlines()] == examples_of(command)
    assert len(examples_of(command)) == 2
    for example in examples_of(command):
        program, *words = takewhile(lambda word: word not in "|>", shlex.split(example))
        assert (program, create_parser(words).parse_args(words).command) == ("brimline", command)


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_terminal(user: User, command: str, columns: int) -> None:
    shown = user.run(*command.split(), "--help", COLUMNS=str(columns))
    assert shown.code == 0
    assert [line for line in shown.lines if len(line) > columns] == []
    assert "--colour WHEN" in shown.out


def test_help_with_a_command_is_the_help_of_the_command(user: User) -> None:
    assert user.run("help", "report") == user.run("report", "--help")
    assert user.run("help") == user.run("--help")
    assert "brimline help COMMAND" in user.run("help").out


@pytest.mark.parametrize("name", ["CLAUDE", "claude-code", "Claude-Code"])
def test_agent_is_found_in_any_case_and_by_the_clients_name(user: User, name: str) -> None:
    found = user.run("windows", "claude-opus-5", "--agent", name)
    assert found.out.startswith("Claude Code, claude-opus-5\n")


def test_mistyped_agent_gets_a_suggestion(user: User) -> None:
    wrong = user.run("report", "--agent", "Codx")
    assert wrong.code == 2
    assert "hint: Did you mean codex? Known agents: claude, cline, codex," in wrong.err


@pytest.mark.parametrize(
    ("model", "agents"),
    [
        ("claude-opus-5", ["Claude Code", "opencode", "Pi"]),
        ("openai/gpt-5.5", ["Codex", "opencode", "Pi"]),
        ("gemini-2.5-pro", ["Gemini CLI", "opencode", "Pi"]),
        (
            "glm-4.7",
            ["Claude Code", "Cline CLI", "Codex", "Kimi Code", "opencode", "Pi", "Qwen Code"],
        ),
        (
            "my-local-model",
            [
                *("Claude Code", "Cline CLI", "Codex", "Copilot CLI", "Goose", "Kilo CLI"),
                *("Kimi Code", "opencode", "Pi", "Qwen Code"),
            ],
        ),
        ("codex-auto-review", ["Codex"]),
        ("qwen3-coder-plus", ["opencode", "Pi", "Qwen Code"]),
        ("gemma-4-31b-it", ["Gemini CLI", "opencode", "Pi"]),
    ],
)
def test_windows_answers_for_the_agents_that_can_run_the_model(
    user: User, model: str, agents: list[str]
) -> None:
    lines = user.run("windows", model).out.splitlines()
    headings = [line.partition(",")[0] for line in lines if line.endswith(f", {model}")]
    assert list(dict.fromkeys(headings)) == agents


def test_run_takes_json_before_the_command(user: User) -> None:
    ran = user.run("run", "--json", "--", "true")
    assert ran.code == 0
    assert ran.json["exit_code"] == 0
    both = user.run("run", "--json", "--render", "pretty", "--", "true")
    assert both.code == 2
    assert "argument json: not allowed with --render pretty" in both.err
