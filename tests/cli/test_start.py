"""What every command has in common: start, help, errors and exit codes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from brimline import __version__
from brimline.agents import agent_names
from brimline.cli.commands import create_parser

from .terminal import PATIENCE_S, User, environment

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
    """The modules that a command imports beyond those of Python itself."""
    return _imported(user, "-m", "brimline", *arguments) - _imported(user, "-c", "import runpy")


def _imported(user: User, *arguments: str) -> set[str]:
    completed = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        cwd=user.cwd,
        env=environment(user, **{name: None for name in user.env if "COVERAGE" in name}),
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 0
    rows = [
        line.split("|") for line in completed.stderr.splitlines() if line.startswith("import time:")
    ]
    return {row[2].strip() for row in rows}


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_prints_the_version_only(user: User, flag: str) -> None:
    assert user.run(flag) == (0, f"brimline {__version__}\n", "")


def test_version_imports_nothing_heavy(user: User) -> None:
    mine = imported(user, "--version")
    assert "brimline.cli" in mine
    assert not mine & {*HEAVY, "typing"}
    assert {name for name in mine if name.startswith("brimline.")} <= {
        "brimline._version",
        "brimline.cli",
    }


def test_version_wins_over_other_options(user: User) -> None:
    assert user.run("--colour", "never", "--version").out == f"brimline {__version__}\n"


def test_status_imports_no_prices_and_no_unused_agents(user: User) -> None:
    user.session("aaa", user.call("m1", 50_000))
    mine = imported(user, "status", "--agent", "claude")
    assert not mine & {"genai_prices", "asyncio", "brimline.cli.report", "brimline.agents.pi"}


def test_help_names_every_command(user: User) -> None:
    completed = user.run("--help")
    assert (completed.code, completed.err) == (0, "")
    assert completed.lines[0].startswith("usage: brimline")
    for command in COMMANDS:
        assert f"\n  {command} " in completed.out


CORE_ONLY = """
import sys

class OnlyCore:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("uvicorn", "starlette", "textual"):
            raise ModuleNotFoundError(name=name.partition(".")[0])

sys.meta_path.insert(0, OnlyCore())
from brimline.cli.commands import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "command", [["serve"], ["serve", "--background"], ["setup", "claude"], ["setup", "--dry-run"]]
)
def test_command_of_the_daemon_says_what_to_install_in_one_sentence(
    user: User, command: list[str]
) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", CORE_ONLY, *command],
        capture_output=True, text=True, cwd=user.cwd, env=user.env, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    needs = "this command needs the package uvicorn, which brimline-core does not include"
    assert completed.stderr == f"brimline: {needs}: run `pip install 'brimline-core[daemon]'`\n"
    assert (completed.returncode, completed.stdout) == (2, "")
    assert not list(user.projects.parent.glob("settings.json"))


def test_watch_says_what_to_install_on_a_terminal_and_prints_a_frame_without(user: User) -> None:
    script = user.cwd / "core.py"
    script.write_text(CORE_ONLY)
    shown = user.on_terminal("watch", program=(str(script),))
    assert "needs the package textual" in shown.out
    assert shown.code == 2
    assert user.on_terminal("watch", "--once", program=(str(script),)).code == 0


HELP_OF_INSPECT = """\
usage: brimline inspect [-h] [--colour WHEN] [--agent A] [--series] [--audit]
                        [--json]
                        [PATH|SESSION|-]

Show one transcript or stream, call by call.

Positional arguments:
  PATH|SESSION|-        a file, a session's id or title, or - for stdin
                        (default: this or the latest session)
"""


def test_help_of_inspect_lists_targets_and_options(user: User) -> None:
    assert user.run("inspect", "--help", COLUMNS="80").out.startswith(HELP_OF_INSPECT)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_own_help(user: User, command: str) -> None:
    completed = user.start(command, "--help")
    assert (completed.code, completed.err) == (0, "")
    assert completed.lines[0].startswith(f"usage: brimline {command}")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("status", 0),
        ("inspect aaa", 0),
        ("explain aaa", 0),
        ("report", 0),
        ("windows", 0),
        ("inbox", 2),
        ("send aaa Stop.", 2),
        ("handoff --draft aaa", 0),
        ("setup --dry-run", 0),
        ("doctor", 0),
        ("baseline", 2),
    ],
)
def test_command_works_as_a_process_of_its_own(user: User, command: str, code: int) -> None:
    """The other tests run commands in forks of a process that has imported all of them."""
    prompt = user.record("user", message={"role": "user", "content": "Fix the parser."})
    user.session("aaa", prompt, user.call("m1", 5_000))
    completed = user.start(*command.split())
    assert completed.code == code, completed
    assert "Traceback" not in completed.err


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_help_and_usage_fit_60_columns(user: User, command: str) -> None:
    help_text = user.run(*command.split(), "--help", COLUMNS="60").out
    wrong = user.run(*command.split(), "--nonsense", COLUMNS="60").err
    usage = wrong.rpartition("\nbrimline")[0]
    assert max(map(len, [*help_text.splitlines(), *usage.splitlines()])) <= 60


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_error_of_one_command_shows_the_whole_usage(command: str) -> None:
    assert create_parser([command]).format_usage() == create_parser().format_usage()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nope"],
        ["send"],
        ["report", "--by", "hour"],
        ["report", "--json", "--csv"],
        ["report", "--nope"],
        ["status", "nope"],
    ],
)
def test_wrong_arguments_exit_2_with_the_usage(user: User, arguments: list[str]) -> None:
    completed = user.run(*arguments)
    assert (completed.code, completed.out) == (2, "")
    command = " ".join(["brimline", *arguments[:1]]) if arguments[0] in COMMANDS else "brimline"
    assert completed.err.startswith(f"usage: {command} [")
    assert f"\n{command}: error: " in completed.err


@pytest.mark.parametrize("command", [[], ["status"], ["report"], ["windows"], ["inspect", "-"]])
def test_unknown_agent_exits_2_and_lists_the_known_ones(user: User, command: list[str]) -> None:
    completed = user.run(*command, "--agent", "vim")
    assert completed == (
        2,
        "",
        f"brimline: unknown agent 'vim'\nhint: Known agents: {', '.join(agent_names())}.\n",
    )


@pytest.mark.parametrize("span", ["yesterday", "7", "-1d", "7y", ""])
@pytest.mark.parametrize("command", ["status", "report"])
def test_wrong_duration_exits_2_with_an_example(user: User, command: str, span: str) -> None:
    completed = user.run(command, f"--since={span}")
    assert (completed.code, completed.out) == (2, "")
    assert "90m, 24h, 7d, 2w" in completed.err


@pytest.mark.parametrize("command", ["inspect", "explain"])
def test_missing_path_exits_2_with_a_hint(user: User, command: str) -> None:
    completed = user.run(command, "some/where.jsonl")
    assert (completed.code, completed.out) == (2, "")
    first, *hint = completed.err.splitlines()
    assert first == "brimline: cannot read some/where.jsonl: no such file"
    assert hint


@pytest.mark.parametrize("command", [["inspect"], ["explain"], ["handoff", "--draft"]])
def test_machine_without_sessions_is_an_error_with_what_to_start(
    user: User, command: list[str]
) -> None:
    completed = user.run(*command)
    hint = "hint: Start an agent first; `brimline demo` replays a recorded session."
    assert completed == (2, "", f"brimline: no sessions found\n{hint}\n")


def test_unknown_session_exits_2_with_how_to_list_sessions(user: User) -> None:
    completed = user.run("inspect", "nope")
    assert (completed.code, completed.out) == (2, "")
    assert completed.err == (
        "brimline: no file or session named 'nope'\n"
        "hint: `brimline status --all` lists the sessions on this machine.\n"
    )


def test_ambiguous_session_prefix_exits_2_and_lists_the_matches(user: User) -> None:
    for name in ("abc-1", "abc-2"):
        user.session(name, user.call("m1", 5_000))
    completed = user.run("inspect", "abc")
    assert (completed.code, completed.out) == (2, "")
    assert "abc-1" in completed.err
    assert "abc-2" in completed.err


def test_wrong_settings_exit_2_with_file_and_field(user: User) -> None:
    (user.cwd / ".brimline.toml").write_text("[windows]\nclaude = -5\n")
    completed = user.run("status")
    assert (completed.code, completed.out) == (2, "")
    assert ".brimline.toml: windows.claude: expected more than 0: got -5" in completed.err


@pytest.mark.parametrize(
    "command", [["status"], ["status", "--json"], ["report"], ["inspect", "aaa", "--series"],
                ["windows"], ["demo"], ["--help"], ["--version"], ["report", "--help"]],
    ids=" ".join,
)  # fmt: skip
def test_closed_pipe_is_silent(user: User, command: list[str]) -> None:
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
        assert process.communicate(timeout=PATIENCE_S)[1] == b""
        assert process.returncode == 0


def test_pipe_closed_in_the_middle_is_silent(user: User) -> None:
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
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize(
    "command", [["status"], ["inspect", "aaa", "--series", "--json"], ["report"], ["windows"],
                ["--help"], ["--version"]],
    ids=" ".join,
)  # fmt: skip
def test_full_output_exits_1_with_one_line(user: User, command: list[str]) -> None:
    user.session("aaa", *[user.call(f"m{i}", 5_000 + i) for i in range(2_000)])
    for _ in range(2):
        assert write_outcome(user, "/dev/full", command) == (
            1,
            "brimline: cannot write the output: No space left on device\n",
        )


def test_closed_output_fails_only_commands_that_write(user: User) -> None:
    prompt = user.record("user", message={"role": "user", "content": "Fix the parser."})
    user.session("aaa", prompt, user.call("m1", 5_000))
    why = "brimline: cannot write the output: Bad file descriptor\n"
    assert write_outcome(user, "&-", ["status"]) == (1, why)
    assert write_outcome(user, "&-", ["handoff", "--draft", "aaa", "--output", "x.md"]) == (0, "")


def write_outcome(user: User, where: str, command: list[str]) -> tuple[int, str]:
    """Exit code and error output of a command with a shell redirection."""
    words = ["sh", "-c", f'exec "$@" >{where}', "sh", sys.executable, "-m", "brimline", *command]
    completed = subprocess.run(
        words, stderr=subprocess.PIPE, text=True, cwd=user.cwd, env=user.env, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    return completed.returncode, completed.stderr


def test_ctrl_c_exits_130_without_a_traceback(user: User) -> None:
    completed = user.on_terminal("demo", "--speed", "0.3", interrupt="call 3")
    assert completed.code == 130
    assert "Traceback" not in completed.out
    assert "KeyboardInterrupt" not in completed.out


# Presses Ctrl-C at the import of a module, or after the command.
INTERRUPTED = """
import atexit, os, signal, sys

place = sys.argv.pop(1)

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == place:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
if place == "exit":
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
from brimline.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("status", "brimline.cli.commands"),
        ("status", "argparse"),
        ("status", "msgspec"),
        ("status", "typing_extensions"),  # by the C code of msgspec, which crashes
        ("status", "brimline.cli.status"),
        ("status", "brimline.sessions.status"),
        ("status", "exit"),
        ("serve", "brimline.server.daemon"),
        ("serve", "uvicorn"),
    ],
)
def test_ctrl_c_during_an_import_or_at_the_exit_is_silent(
    user: User, command: str, place: str
) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, place, command],
        capture_output=True, cwd=user.cwd, env=user.env, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (completed.returncode, completed.stderr) == (-signal.SIGINT, b"")


def test_ctrl_c_that_is_ignored_does_not_end_a_command(user: User) -> None:
    """A shell script has it ignored by what it starts in the background."""
    completed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "msgspec", "status"],
        capture_output=True, cwd=user.cwd, env=user.env, timeout=PATIENCE_S, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert (completed.returncode, completed.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["status"], ["serve", "--port", "any"]], ids=" ".join)
def test_ctrl_c_at_any_moment_of_the_start_is_silent(user: User, command: list[str]) -> None:
    """Python prints its own traceback before it has read a line of ours."""
    user.session("aaa", user.call("m1", 50_000))
    for number in range(60):
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "brimline", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=user.cwd, env=user.env,
        )  # fmt: skip
        assert process.stderr is not None
        while process.stderr.readline().split()[-1:] != [b"brimline.cli"]:
            assert process.poll() is None
        time.sleep(0.005 * number)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode in (-signal.SIGINT, 130, 0)
        # The first line may lack its beginning, which `readline` has read ahead.
        lines = errors.splitlines()[1:]
        assert [line for line in lines if not line.startswith(b"import time:")] == []


def test_missing_home_is_no_error(user: User) -> None:
    missing: dict[str, Any] = {"HOME": str(user.home / "none"), "CLAUDE_CONFIG_DIR": ""}
    for command in ("status", "report"):
        completed = user.run(command, **missing)
        assert (completed.code, completed.err) == (0, "")
        assert "No transcripts found" in completed.out


def test_commands_write_nothing_but_the_cache(user: User) -> None:
    path = user.session("aaa", user.call("m1", 50_000))
    before = path.read_bytes(), path.stat().st_mtime_ns
    for command in (["status"], ["report"], ["report"], ["inspect", "aaa"], ["windows"]):
        assert user.run(*command).code == 0
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(os.listdir(user.home)) == []
    assert sorted(os.listdir(path.parent)) == [path.name]
    assert Path(user.env["BRIMLINE_CACHE_DIR"]).is_dir()


def test_unwritable_cache_is_no_error(user: User) -> None:
    user.session("aaa", user.call("m1", 50_000))
    (user.home / "file").write_text("")
    for _ in range(2):
        completed = user.run("report", BRIMLINE_CACHE_DIR=str(user.home / "file"))
        assert (completed.code, completed.err) == (0, "")
        assert "claude" in completed.out


@pytest.mark.parametrize("command", ["status", "setup", "doctor"])
def test_deleted_working_folder_is_an_error_with_a_hint(
    user: User, tmp_path: Path, command: str
) -> None:
    deleted = tmp_path / "gone"

    def go_there() -> None:
        deleted.mkdir()
        os.chdir(deleted)
        deleted.rmdir()

    completed = user.run(command, first=go_there)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith("brimline: the working directory no longer exists\n")
