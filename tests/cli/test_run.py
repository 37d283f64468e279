"""`brimline run`: output, summary and exit codes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .children import (
    MODEL,
    SESSION,
    SUMMARY,
    WRITES,
    Running,
    agent,
    call,
    init,
    program,
    result,
    rows,
)
from .terminal import PATIENCE_S, User

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent.parent / "fixtures"
GARBAGE = bytes(range(256)) * 300 + b"\n{\n\r\n{}{}\n\0\n" + "ünï".encode() + b"\xff no end"


def run_bytes(
    user: User, *arguments: str, stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command; its output is bytes."""
    return subprocess.run(
        [sys.executable, "-m", "brimline", "run", *arguments],
        input=stdin,
        capture_output=True,
        cwd=user.cwd,
        env=user.env,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    "data", [b"", b"x", b"no end", b"\n\n", GARBAGE, b"x" * 3_000_000, init().encode() * 9_000]
)
@pytest.mark.parametrize("name", ["claude", "anything"])
def test_every_byte_passes_through_unchanged(user: User, data: bytes, name: str) -> None:
    (user.cwd / "data").write_bytes(data)
    command = program(user, name, "#!/bin/sh\nexec cat data\n")
    completed = run_bytes(user, "--", command)
    assert completed.stdout == data
    assert (completed.returncode, completed.stderr.startswith(b"Duration: ")) == (0, True)


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "pi", "gemini", "opencode"])
def test_streams_of_real_clients_pass_through_unchanged(user: User, agent: str) -> None:
    path = FIXTURES / agent / "tool-loop" / "stream-1.jsonl"
    assert run_bytes(user, "--agent", agent, "--", "cat", str(path)).stdout == path.read_bytes()


def test_partial_line_is_shown_while_the_child_waits(user: User) -> None:
    running = Running(user, "--", "sh", "-c", "printf 'your name? '; read name; echo hello $name")
    assert running.read_all(b"? ") == b"your name? "
    running.write(b"Ada\n")
    assert running.end()[:2] == (0, b"hello Ada\n")


def test_killed_child_keeps_its_output_and_exit_code(user: User) -> None:
    command = agent(user, init(), call("m1", 90_000)[:-30], then="os.kill(os.getpid(), 9)")
    completed = run_bytes(user, "--", command)
    assert completed.stdout == (init() + call("m1", 90_000)[:-30]).encode()
    assert completed.returncode == 137


def test_summary_is_on_standard_error(user: User) -> None:
    completed = user.run("run", "--", agent(user, init(), call("m1", 90_000), result()))
    assert re.fullmatch(
        SUMMARY + r" \| Est. cost: \$0.5000 \| Turns: 2 \| Context: 45% \(90K/200K\)\n",
        completed.err,
    )


def test_summary_without_a_window_has_tokens_only(user: User) -> None:
    stream = (init() + call("m1", 90_000)).replace(MODEL, "my-model")
    completed = user.run("run", "--", agent(user, stream.replace("2.1.325", "2.1.300")))
    assert re.fullmatch(SUMMARY + r" \| Turns: 1 \| Tokens: 90K\n", completed.err)


def test_command_that_is_no_agent_has_a_duration_only(user: User) -> None:
    completed = user.run("run", "--", "echo", "hello")
    assert (completed.code, completed.out) == (0, "hello\n")
    assert re.fullmatch(SUMMARY + "\n", completed.err)


def test_agent_comes_from_the_option_or_from_the_first_lines(user: User) -> None:
    stream = init() + call("m1", 90_000)
    for name, options in (("wrapper", ["--agent", "claude"]), ("wrapper", []), ("claude", [])):
        completed = user.run("run", *options, "--", agent(user, stream, name=name))
        assert "Context: 45% (90K/200K)" in completed.err


def test_command_may_follow_without_dashes_and_keeps_its_options(user: User) -> None:
    assert user.run("run", "echo", "--agent", "-h", "--", "x").out == "--agent -h -- x\n"
    assert user.run("run", "--", "echo", "--", "--json").out == "-- --json\n"


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_exit_code_is_that_of_the_child(user: User, script: str, code: int) -> None:
    assert user.run("run", "--", "sh", "-c", script).code == code


def test_missing_command_exits_127_and_not_executable_126(user: User) -> None:
    plain = user.cwd / "plain"
    plain.write_text("x")
    missing = user.run("run", "--", "no-such-command")
    assert (missing.code, missing.out) == (127, "")
    assert missing.err == (
        "brimline: cannot start 'no-such-command': command not found\n"
        "hint: Check that it is installed and in PATH.\n"
    )
    assert user.run("run", "--", str(plain)).code == 126
    assert user.run("run", "--", str(user.cwd)).code == 126


def test_standard_input_goes_to_the_child(user: User) -> None:
    assert run_bytes(user, "--", "cat", stdin=GARBAGE).stdout == GARBAGE


def test_standard_error_of_the_child_precedes_the_summary(user: User) -> None:
    completed = user.run("run", "--", "sh", "-c", "echo oops >&2")
    assert re.fullmatch(f"oops\n{SUMMARY}\n", completed.err)


def test_closed_output_ends_the_child_with_sigpipe(user: User) -> None:
    running = Running(user, "--", "sh", "-c", "echo first; while :; do echo more; done")
    assert running.read_all(b"\n").startswith(b"first\n")
    running.close_output()
    code, _, err = running.end()
    assert code == 128 + signal.SIGPIPE
    assert re.fullmatch(SUMMARY + "\n", err)


def test_full_disk_is_reported_and_ends_the_child(user: User) -> None:
    words = [sys.executable, "-m", "brimline", "run", "--", "sh", "-c", "while :; do echo x; done"]
    with open("/dev/full", "wb") as full:
        completed = subprocess.run(
            words,
            stdout=full,
            stderr=subprocess.PIPE,
            env=user.env,
            timeout=PATIENCE_S,
            check=False,
        )
    assert completed.returncode == 128 + signal.SIGPIPE
    assert completed.stderr.startswith(b"brimline: cannot write output: No space left on device\n")


def test_background_process_of_the_child_does_not_block_the_exit(user: User) -> None:
    completed = user.run("run", "--", "sh", "-c", "sleep 3600 2>/dev/null & echo $!")
    pid = int(completed.out)
    try:
        assert completed.code == 0
        os.kill(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_background_process_that_writes_forever_does_not_block_the_exit(user: User) -> None:
    script = "(while :; do echo noise; done) 2>/dev/null & echo mine"
    completed = user.run("run", "--", "sh", "-c", script)
    assert completed.code == 0
    assert "mine" in completed.out


def test_slow_reader_gets_output_written_just_before_the_exit(user: User) -> None:
    running = Running(user, "--", "sh", "-c", "head -c 60000 /dev/zero; echo last")
    out = b""
    while piece := running.read(1_000):
        out += piece
    assert running.end()[0] == 0
    assert out == b"\0" * 60_000 + b"last\n"


def test_non_blocking_output_gets_every_byte(user: User) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    words = [sys.executable, "-m", "brimline", "run", "--", "head", "-c", "1000000", "/dev/zero"]
    process = subprocess.Popen(words, stdout=theirs, stderr=subprocess.DEVNULL, env=user.env)
    os.close(theirs)
    out = b""
    while piece := os.read(ours, 10_000):
        out += piece
    os.close(ours)
    assert (process.wait(PATIENCE_S), out) == (0, b"\0" * 1_000_000)


# Rendering.


def test_render_none_prints_the_summary_only(user: User) -> None:
    completed = user.run("run", "--render", "none", "--", agent(user, init(), call("m1", 90_000)))
    assert completed.out == ""
    assert "Context: 45% (90K/200K)" in completed.err


def test_render_json_prints_one_object_with_the_reading(user: User) -> None:
    command = agent(user, init(), call("m1", 120_000), call("m2", 90_000), result())
    output = user.run("run", "--render", "json", "--hat", "builder", "--", command).json
    reading = output.pop("reading")
    assert output.pop("duration_ms") > 0
    assert output == {
        "total_cost_usd": 0.5,
        "num_turns": 2,
        "is_error": False,
        "input_tokens": 8,
        "output_tokens": 9,
        "cache_read_tokens": 209_992,
        "cache_write_tokens": 0,
        "context_tokens": 90_000,
        "peak_context_tokens": 120_000,
        "context_window": 200_000,
        "iteration": 1,
        "hat": "builder",
        "agent": "claude",
        "session_id": SESSION,
        "exit_code": 0,
        "ended": "itself",
        "said_it": False,
    }
    assert (reading["sent"], reading["percent"], reading["source"]) == (90_000, 45.0, "stream")
    assert reading["window"]["origin"] == "client"


def test_render_json_of_another_command_has_null_for_unknown(user: User) -> None:
    output = user.run("run", "--render", "json", "--", "sh", "-c", "exit 4").json
    known_fields = {name: value for name, value in output.items() if value not in (None, False)}
    known_fields.pop("duration_ms", None)
    assert known_fields == {"is_error": True, "iteration": 1, "exit_code": 4, "ended": "itself"}


PRETTY = """\
Loading...
I run echo one.
› Bash  echo one
Two more.
› Bash  echo one
› Bash  echo two
All done.
no end"""


def test_render_pretty_prints_the_text_and_passes_other_lines_through(user: User) -> None:
    stream = FIXTURES / "claude/tool-loop/stream-1.jsonl"
    script = f"echo Loading...; cat {stream}; printf 'no end'"
    completed = user.run("run", "--render", "pretty", "--", "sh", "-c", script)
    assert completed.out == PRETTY


def test_render_pretty_joins_partial_messages(user: User) -> None:
    lines = [
        '{"type":"init","session_id":"s","model":"auto"}',
        *(
            f'{{"type":"message","role":"assistant","content":"{piece}","delta":true}}'
            for piece in ("Hel", "lo.\\n", "You.")
        ),
        '{"type":"tool_use","tool_name":"ls","parameters":{"n":1}}',
        '{"type":"error","message":"Ha\\u001b[31mlt"}',
    ]
    (user.cwd / "lines").write_text("\n".join(lines) + '\n{"half')
    completed = user.run("run", "--render", "pretty", "--agent", "gemini", "--", "cat", "lines")
    assert completed.out == 'Hello.\nYou.\n› ls\n! Ha\ufffd[31mlt\n{"half'


def test_render_pretty_prints_the_final_text_of_each_iteration(user: User) -> None:
    words = ("--render", "pretty", "--iterations", "2")
    assert user.run("run", *words, "--", agent(user, result())).out == "Done.\nDone.\n"


def test_render_pretty_leaves_other_json_unchanged(user: User) -> None:
    for name in ("claude", "anything"):
        command = agent(user, '{"type":"answer","n":1}\n', "\n", '{"a":2}\n', name=name)
        completed = user.run("run", "--render", "pretty", "--", command)
        assert completed.out == '{"type":"answer","n":1}\n\n{"a":2}\n'


def test_render_pretty_says_once_that_an_agent_is_unknown(user: User) -> None:
    """By its name and by its output; a script whose output is an agent's stream is known."""
    words = ("run", "--render", "pretty", "--iterations", "2", "--")
    command = agent(user, '{"type":"answer"}\n', name="anything")
    reason = "its output was passed through (--agent names the agent)"
    first, *lines = user.run(*words, command).err.splitlines()[1:]
    assert first == f"brimline: unknown agent {command}: {reason}"
    assert not any("unknown agent" in line for line in lines)
    stream = FIXTURES / "claude/tool-loop/stream-1.jsonl"
    assert "unknown agent" not in user.run(*words, "cat", str(stream)).err
    assert "unknown agent" not in user.run("run", "--render", "plain", "--", "true").err


# Loops.


def test_each_iteration_gets_its_number_and_hat(user: User) -> None:
    script = 'echo "$BRIMLINE_ITERATION $BRIMLINE_HAT"'
    completed = user.run(
        "run", "--iterations", "3", "--hat", "a", "--hat", "b", "--", "sh", "-c", script
    )
    assert completed.out == "1 a\n2 b\n3 a\n"
    assert re.fullmatch(
        f"Iteration 1 of 3, a\n{SUMMARY}\nIteration 2 of 3, b\n{SUMMARY}\nIteration 3 of 3, a\n"
        f"{SUMMARY}\n"
        "hat  iterations     last     peak\n"
        "a             2  unknown  unknown\n"
        "b             1  unknown  unknown\n"
        "all           3  unknown  unknown\n",
        completed.err,
    )


def test_loop_ends_when_the_agent_prints_the_until_text(user: User) -> None:
    says = "echo $BRIMLINE_ITERATION; test $BRIMLINE_ITERATION != 2 || echo All is DONE."
    completed = user.run("run", "--iterations", "9", "--until", "DONE", "--", "sh", "-c", says)
    assert (completed.code, completed.out) == (0, "1\n2\nAll is DONE.\n")
    stream = agent(user, init(), call("m1", 9_000, "DONE"))
    completed = user.run("run", "--iterations", "9", "--until", "DONE", "--", stream)
    assert completed.err.count("Duration: ") == 1


def test_failed_child_ends_the_loop_with_its_exit_code(user: User) -> None:
    script = "exit $((BRIMLINE_ITERATION / 2 * 5))"
    completed = user.run("run", "--iterations", "9", "--", "sh", "-c", script)
    assert completed.code == 5
    assert completed.err.count("Duration: ") == 2


def test_loop_table_has_last_and_peak_of_each_hat(user: User) -> None:
    lines = [call("m1", 120_000), call("m2", 90_000)]
    command = agent(user, init(), *lines)
    options = ("--iterations", "2", "--hat", "planner", "--render", "none")
    completed = user.run("run", *options, "--", command)
    assert completed.err.endswith(
        "hat      iterations            last             peak\n"
        "planner           2  45% (90K/200K)  60% (120K/200K)\n"
        "all               2  45% (90K/200K)  60% (120K/200K)\n"
    )


def test_events_file_gets_a_row_per_iteration_and_keeps_other_rows(user: User) -> None:
    path = user.cwd / "logs" / "events.jsonl"
    path.parent.mkdir()
    path.write_text('{"topic":"task.start","ts":"t"}\nhalf a li')
    command = agent(user, init(), call("m1", 90_000), result())
    options = ("--iterations", "2", "--hat", "builder", "--events", str(path))
    assert user.run("run", *options, "--", command).code == 0
    first, second, *written_rows = path.read_text().splitlines()
    assert (first, second) == ('{"topic":"task.start","ts":"t"}', "half a li")
    path.write_text("\n".join(written_rows))
    numbers = [(row["iteration"], row["hat"], row["topic"]) for row in rows(path)]
    assert numbers == [(n, "builder", "iteration.summary") for n in (1, 2)]
    for row in rows(path):
        assert (row["input_tokens"], row["context_utilization_pct"]) == (90_000, 45.0)
        assert row["payload"]["cost_usd"] == 0.5
        assert row["payload"]["context_pct"] == 45.0


def test_summary_adds_up_older_runs_as_table_and_json(user: User) -> None:
    path = user.cwd / "events.jsonl"
    command = agent(user, init(), call("m1", 120_000), call("m2", 90_000))
    for hat in ("planner", "builder"):
        user.run("run", "--hat", hat, "--events", str(path), "--", command)
    completed = user.run("run", "--summary", str(path))
    assert completed.out == (
        "hat      iterations            last             peak\n"
        "planner           1  45% (90K/200K)  60% (120K/200K)\n"
        "builder           1  45% (90K/200K)  60% (120K/200K)\n"
        "all               2  45% (90K/200K)  60% (120K/200K)\n"
    )
    coloured = user.run("run", "--summary", str(path), "--colour", "always")
    assert coloured.out.count("\x1b[32m45%") == coloured.out.count("\x1b[33m60%") == 3
    output = user.run("run", "--summary", str(path), "--json").json
    assert [hat["hat"] for hat in output["hats"]] == ["planner", "builder"]
    assert output["overall"] == {
        "hat": None,
        "iterations": 2,
        "last_context_tokens": 90_000,
        "last_context_window": 200_000,
        "last_pct": 45.0,
        "peak_context_tokens": 120_000,
        "peak_context_window": 200_000,
        "peak_pct": 60.0,
    }


def test_summary_without_rows_is_empty_and_without_file_an_error(user: User) -> None:
    (user.cwd / "events.jsonl").write_text("{}\n")
    completed = user.run("run", "--summary", "events.jsonl")
    assert (completed.code, completed.out) == (0, "No iterations in events.jsonl.\n")
    missing = user.run("run", "--summary", "none.jsonl")
    assert (missing.code, missing.out) == (2, "")
    assert "cannot read none.jsonl" in missing.err


def test_unwritable_events_file_fails_before_the_run(user: User) -> None:
    completed = user.run("run", "--events", ".", "--", "touch", "ran")
    assert (completed.code, completed.out) == (2, "")
    assert "argument events: cannot write .: Is a directory" in completed.err
    assert not (user.cwd / "ran").exists()


def test_events_row_that_fails_later_does_not_change_the_exit_code(user: User) -> None:
    path = user.cwd / "events.jsonl"
    script = f"rm {path}; mkdir {path}; exit 3"
    completed = user.run("run", "--events", str(path), "--", "sh", "-c", script)
    assert completed.code == 3
    assert completed.err.endswith(f"brimline: cannot write {path}: Is a directory\n")


# Settings.


def test_window_comes_from_ralph_yaml_or_from_settings_by_agent(user: User) -> None:
    command = agent(user, init(), call("m1", 64_000))
    (user.cwd / "ralph.yml").write_text("event_loop:\n  context_window_tokens: 128000\n")
    assert "50% (64K/128K)" in user.run("run", "--config", "ralph.yml", "--", command).err
    for text in ("context_window_tokens = 80000", "[context_window_tokens]\nclaude = 80000"):
        (user.cwd / ".brimline.toml").write_text(text)
        assert "80% (64K/80K)" in user.run("run", "--", command).err
    completed = user.run("run", "--", command, BRIMLINE_CONTEXT_WINDOW_TOKENS="160000")
    assert "80% (64K/80K)" in completed.err  # an agent's own size is closer than one for everything


def test_unreadable_ralph_yaml_is_an_error_before_the_run(user: User) -> None:
    (user.cwd / "ralph.yml").write_text("event_loop: {}\n")
    completed = user.run("run", "--config", "ralph.yml", "--", "touch", "ran")
    assert completed.code == 2
    assert (
        completed.err == "brimline: ralph.yml:1: event_loop: expected one key per line: got '{}'\n"
    )
    assert not (user.cwd / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a command to run after --"),
        (["--"], "expected a command to run after --"),
        (["--iterations", "0", "--", "true"], "argument iterations: expected 1 or more: got 0"),
        (["--agent", "vim", "--", "true"], "unknown agent 'vim'"),
        (["--warn", "65,50", "--", "true"], "strictly increasing"),
        (["--warn", "half", "--", "true"], "warn must be numbers above 0"),
        (["--stop-at", "-1", "--", "true"], "finite numbers above 0"),
        (["--stop-at", "80,90", "--", "true"], "stop-at must be one number above 0"),
    ],
)
def test_wrong_arguments_exit_2_with_what_was_expected(
    user: User, arguments: list[str], message: str
) -> None:
    completed = user.run("run", *arguments)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err


# Transcripts.


def test_plain_text_run_is_measured_by_its_transcript(user: User) -> None:
    output = user.run("run", "--render", "json", "--", program(user, "claude", WRITES)).json
    assert (output["context_tokens"], output["context_window"], output["output_tokens"]) == (
        90_000,
        200_000,
        7,
    )
    assert (output["session_id"], output["reading"]["source"]) == ("s1", "transcript")


def test_transcript_of_an_earlier_session_does_not_count(user: User) -> None:
    path = user.session("s0", user.call("m0", 150_000, cwd=str(user.cwd), sessionId="s0"))
    os.utime(path)
    completed = user.run("run", "--", program(user, "claude", "#!/bin/sh\necho hello\n"))
    assert re.fullmatch(SUMMARY + "\n", completed.err)
