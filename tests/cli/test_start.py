"""Starting up, help, errors and endings: what every command has in common."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brimline import __version__
from brimline.cli.arguments import parser

from .terminal import PATIENCE, User, environment

COMMANDS = (
    "status",
    "inspect",
    "report",
    "windows",
    "run",
    "baseline",
    "setup",
    "doctor",
    "serve",
    "send",
    "inbox",
    "handoff",
    "demo",
)
HEAVY = ("argparse", "msgspec", "genai_prices", "asyncio", "json", "ctypes", "tempfile")


def imported(user: User, *arguments: str) -> set[str]:
    """The modules that a command imports beyond what Python does, by its own account."""
    return _imported(user, "-m", "brimline", *arguments) - _imported(user, "-c", "import runpy")


def _imported(user: User, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        cwd=user.cwd,
        env=environment(user, **{name: None for name in user.env if "COVERAGE" in name}),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0
    rows = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {row[2].strip() for row in rows}


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(user: User, flag: str) -> None:
    """The version, and nothing else."""
    assert user.run(flag) == (0, f"brimline {__version__}\n", "")


def test_version_imports_nothing_heavy(user: User) -> None:
    """To say its version Brimline needs nothing but itself."""
    mine = imported(user, "--version")
    assert "brimline.cli" in mine
    assert not mine & set(HEAVY)
    assert {name for name in mine if name.startswith("brimline.")} <= {
        "brimline._version",
        "brimline.cli",
    }


def test_version_beside_other_options(user: User) -> None:
    """It is said also where another option stands beside it."""
    assert user.run("--colour", "never", "--version").out == f"brimline {__version__}\n"


def test_status_imports_no_prices(user: User) -> None:
    """A glance needs no price list, and only the agents that are there."""
    user.session("aaa", user.call("m1", 50_000))
    mine = imported(user, "status", "--agent", "claude")
    assert not mine & {"genai_prices", "asyncio", "brimline.cli.report", "brimline.agents.pi"}


def test_help(user: User) -> None:
    """The help names every command."""
    done = user.run("--help")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith("usage: brimline")
    for command in COMMANDS:
        assert f"    {command} " in done.out


HELP_OF_INSPECT = """\
usage: brimline inspect [-h] [--colour {auto,always,never}] [--agent A]
                        [--series] [--json]
                        PATH|SESSION|-

Show one transcript or stream, call by call.

positional arguments:
  PATH|SESSION|-        a file, a session id, or - for stdin
"""


def test_help_of_inspect(user: User) -> None:
    """What can be inspected, and how."""
    assert user.run("inspect", "--help", COLUMNS="80").out.startswith(HELP_OF_INSPECT)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each(user: User, command: str) -> None:
    """Every command has its own help."""
    done = user.run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith(f"usage: brimline {command}")


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_help_in_a_narrow_terminal(user: User, command: str) -> None:
    """No help, nor the usage that comes with an error, is wider than 60 columns."""
    shown = user.run(*command.split(), "--help", COLUMNS="60").out
    wrong = user.run(*command.split(), "--nonsense", COLUMNS="60").err
    usage = wrong.rpartition("\nbrimline")[0]
    assert max(map(len, [*shown.splitlines(), *usage.splitlines()])) <= 60


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_with_each(command: str) -> None:
    """With one command alone, the usage is that of the whole command line."""
    assert parser(command).format_usage() == parser().format_usage()


@pytest.mark.parametrize(
    "arguments",
    [["nope"], ["--nope"], ["inspect"], ["report", "--by", "hour"], ["report", "--json", "--csv"]],
)
def test_wrong_arguments(user: User, arguments: list[str]) -> None:
    """What is asked for wrongly ends with 2 and the usage."""
    done = user.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: brimline")


@pytest.mark.parametrize("command", [[], ["status"], ["report"], ["windows"], ["inspect", "-"]])
def test_unknown_agent(user: User, command: list[str]) -> None:
    """An agent that we do not know: 2, and those that we know."""
    done = user.run(*command, "--agent", "vim")
    assert done == (
        2,
        "",
        "brimline: unknown agent 'vim'\nhint: Known agents: claude, codex, gemini, opencode, pi.\n",
    )


@pytest.mark.parametrize("span", ["yesterday", "7", "-1d", "7y", ""])
@pytest.mark.parametrize("command", ["status", "report"])
def test_wrong_span(user: User, command: str, span: str) -> None:
    """A span of time that is none: 2, and what one looks like."""
    done = user.run(command, f"--since={span}")
    assert (done.code, done.out) == (2, "")
    assert "90m, 24h, 7d, 2w" in done.err


def test_unknown_path(user: User) -> None:
    """A path that does not exist: 2, what it is, and what to do."""
    done = user.run("inspect", "some/where.jsonl")
    assert (done.code, done.out) == (2, "")
    first, *hint = done.err.splitlines()
    assert first == "brimline: cannot read some/where.jsonl: no such file"
    assert hint


def test_unknown_session(user: User) -> None:
    """A session that does not exist: 2, and how to list them."""
    done = user.run("inspect", "nope")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "brimline: no file or session named 'nope'\n"
        "hint: `brimline status --all` lists the sessions on this machine.\n"
    )


def test_ambiguous_session(user: User) -> None:
    """A beginning that two sessions have: 2, and both."""
    for name in ("abc-1", "abc-2"):
        user.session(name, user.call("m1", 5_000))
    done = user.run("inspect", "abc")
    assert (done.code, done.out) == (2, "")
    assert "abc-1" in done.err
    assert "abc-2" in done.err


def test_wrong_settings(user: User) -> None:
    """Settings that cannot be used: 2, the place and the field."""
    (user.cwd / ".brimline.toml").write_text("[windows]\nclaude = -5\n")
    done = user.run("status")
    assert (done.code, done.out) == (2, "")
    assert ".brimline.toml: windows.claude: expected more than 0: got -5" in done.err


@pytest.mark.parametrize(
    "command", [["status"], ["status", "--json"], ["report"], ["inspect", "aaa", "--series"],
                ["windows"], ["demo"], ["--help"], ["--version"], ["report", "--help"]],
    ids=" ".join,
)  # fmt: skip
def test_closed_pipe(user: User, command: list[str]) -> None:
    """A reader that goes away before anything is written hears no complaint, twice over."""
    user.session("aaa", *[user.call(f"m{i}", 5_000 + i) for i in range(2_000)])
    for _ in range(2):
        ours, theirs = os.pipe()
        os.close(ours)
        process = subprocess.Popen(
            [sys.executable, "-m", "brimline", *command],
            stdout=theirs,
            stderr=subprocess.PIPE,
            cwd=user.cwd,
            env=user.env,
        )
        os.close(theirs)
        assert process.communicate(timeout=PATIENCE)[1] == b""
        assert process.returncode == 0


def test_pipe_closed_half_way(user: User) -> None:
    """`| head -1`: the reader goes away in the middle of much output."""
    user.session("aaa", *[user.call(f"m{i}", 5_000 + i) for i in range(5_000)])
    process = subprocess.Popen(
        [sys.executable, "-m", "brimline", "inspect", "aaa", "--series", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=user.cwd,
        env=user.env,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"{\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize(
    "command", [["status"], ["inspect", "aaa", "--series", "--json"], ["report"], ["windows"],
                ["--help"], ["--version"]],
    ids=" ".join,
)  # fmt: skip
def test_full_output(user: User, command: list[str]) -> None:
    """Output that cannot be written: 1, and why, in one line."""
    user.session("aaa", *[user.call(f"m{i}", 5_000 + i) for i in range(2_000)])
    for _ in range(2):
        assert written(user, "/dev/full", command) == (
            1,
            "brimline: cannot write the output: No space left on device\n",
        )


def test_closed_output(user: User) -> None:
    """Output that is closed takes nothing; what writes nothing does not need it."""
    said = user.record("user", message={"role": "user", "content": "Fix the parser."})
    user.session("aaa", said, user.call("m1", 5_000))
    why = "brimline: cannot write the output: Bad file descriptor\n"
    assert written(user, "&-", ["status"]) == (1, why)
    assert written(user, "&-", ["handoff", "--draft", "aaa", "--output", "x.md"]) == (0, "")


def written(user: User, where: str, command: list[str]) -> tuple[int, str]:
    """How a command ends whose output a shell sends somewhere, and what it says about that."""
    words = ["sh", "-c", f'exec "$@" >{where}', "sh", sys.executable, "-m", "brimline", *command]
    done = subprocess.run(
        words, stderr=subprocess.PIPE, text=True, cwd=user.cwd, env=user.env, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_interrupt(user: User) -> None:
    """Ctrl-C in the middle of the demo: 130, and no traceback."""
    done = user.on_terminal("demo", "--speed", "0.3", interrupt="call 3")
    assert done.code == 130
    assert "Traceback" not in done.out
    assert "KeyboardInterrupt" not in done.out


def test_terminal_that_knows_no_unicode(user: User) -> None:
    """Where the output cannot hold our bars, something else is written, and no traceback."""
    user.session("aaa", user.call("m1", 50_000, cwd="/büro/プロジェクト"))
    for command in (["status"], ["inspect", "aaa"], ["report", "--by", "project"], ["demo"]):
        done = user.run(*command, PYTHONIOENCODING="ascii", LC_ALL="C")
        assert (done.code, done.err) == (0, "")


def test_home_that_is_not_there(user: User) -> None:
    """Without a home, or with one that is not there, there is nothing to show, and no error."""
    missing: dict[str, Any] = {"HOME": str(user.home / "none"), "CLAUDE_CONFIG_DIR": ""}
    for command in ("status", "report"):
        done = user.run(command, **missing)
        assert (done.code, done.err) == (0, "")
        assert "No transcripts found" in done.out


def test_nothing_is_written_in_the_home(user: User) -> None:
    """Looking changes nothing but our own cache."""
    path = user.session("aaa", user.call("m1", 50_000))
    before = path.read_bytes(), path.stat().st_mtime_ns
    for command in (["status"], ["report"], ["report"], ["inspect", "aaa"], ["windows"]):
        assert user.run(*command).code == 0
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(os.listdir(user.home)) == []
    assert sorted(os.listdir(path.parent)) == [path.name]
    assert Path(user.env["BRIMLINE_CACHE_DIR"]).is_dir()


def test_cache_that_cannot_be_written(user: User) -> None:
    """A cache folder that cannot be made costs time, and nothing else."""
    user.session("aaa", user.call("m1", 50_000))
    (user.home / "file").write_text("")
    for _ in range(2):
        done = user.run("report", BRIMLINE_CACHE_DIR=str(user.home / "file"))
        assert (done.code, done.err) == (0, "")
        assert "claude" in done.out


@pytest.mark.parametrize("command", ["status", "setup", "doctor"])
def test_folder_that_is_gone(user: User, tmp_path: Path, command: str) -> None:
    """In a folder that was deleted a command says so, and what to do."""
    gone = tmp_path / "gone"

    def go_there() -> None:
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    done = user.run(command, first=go_there)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("brimline: the working directory no longer exists\n")
