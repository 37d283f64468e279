"""`brimline run`: what goes through, what is said about it, how it ends."""

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
from .terminal import PATIENCE, User

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent.parent / "fixtures"
GARBAGE = bytes(range(256)) * 300 + b"\n{\n\r\n{}{}\n\0\n" + "ünï".encode() + b"\xff no end"


def raw(user: User, *arguments: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run it and give its output as bytes."""
    return subprocess.run(
        [sys.executable, "-m", "brimline", "run", *arguments],
        input=stdin,
        capture_output=True,
        cwd=user.cwd,
        env=user.env,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    "data", [b"", b"x", b"no end", b"\n\n", GARBAGE, b"x" * 3_000_000, init().encode() * 9_000]
)
@pytest.mark.parametrize("name", ["claude", "anything"])
def test_untouched(user: User, data: bytes, name: str) -> None:
    """Every byte goes through as it is, whatever it is."""
    (user.cwd / "data").write_bytes(data)
    command = program(user, name, "#!/bin/sh\nexec cat data\n")
    done = raw(user, "--", command)
    assert done.stdout == data
    assert (done.returncode, done.stderr.startswith(b"Duration: ")) == (0, True)


@pytest.mark.parametrize("agent", ["claude", "codex", "pi", "gemini", "opencode"])
def test_untouched_streams(user: User, agent: str) -> None:
    """The real clients' streams go through as they are."""
    path = FIXTURES / agent / "tool-loop" / "stream-1.jsonl"
    assert raw(user, "--agent", agent, "--", "cat", str(path)).stdout == path.read_bytes()


def test_not_buffered(user: User) -> None:
    """A part of a line is there at once, while the child waits for an answer."""
    running = Running(user, "--", "sh", "-c", "printf 'your name? '; read name; echo hello $name")
    assert running.read_all(b"? ") == b"your name? "
    running.write(b"Ada\n")
    assert running.end()[:2] == (0, b"hello Ada\n")


def test_dies_in_the_middle_of_a_line(user: User) -> None:
    """What a child wrote before it died is all there, and its death is its exit code."""
    command = agent(user, init(), call("m1", 90_000)[:-30], then="os.kill(os.getpid(), 9)")
    done = raw(user, "--", command)
    assert done.stdout == (init() + call("m1", 90_000)[:-30]).encode()
    assert done.returncode == 137


def test_summary(user: User) -> None:
    """At the end of a run, on standard error, what it came to."""
    done = user.run("run", "--", agent(user, init(), call("m1", 90_000), result()))
    assert re.fullmatch(
        SUMMARY + r" \| Est. cost: \$0.5000 \| Turns: 2 \| Context: 45% \(90K/200K\)\n", done.err
    )


def test_tokens_alone(user: User) -> None:
    """Without a window there are the tokens; what is not known is left out."""
    stream = (init() + call("m1", 90_000)).replace(MODEL, "my-model")
    done = user.run("run", "--", agent(user, stream.replace("2.1.325", "2.1.300")))
    assert re.fullmatch(SUMMARY + r" \| Turns: 1 \| Tokens: 90K\n", done.err)


def test_no_agent(user: User) -> None:
    """A command that is no agent runs all the same, and its duration is known."""
    done = user.run("run", "--", "echo", "hello")
    assert (done.code, done.out) == (0, "hello\n")
    assert re.fullmatch(SUMMARY + "\n", done.err)


def test_agent_that_is_told(user: User) -> None:
    """--agent says whose a command is, whatever its name; else the first lines do."""
    stream = init() + call("m1", 90_000)
    for name, told in (("wrapper", ["--agent", "claude"]), ("wrapper", []), ("claude", [])):
        done = user.run("run", *told, "--", agent(user, stream, name=name))
        assert "Context: 45% (90K/200K)" in done.err


def test_without_dashes(user: User) -> None:
    """The command may follow without --, and its own options stay its own."""
    assert user.run("run", "echo", "--agent", "-h", "--", "x").out == "--agent -h -- x\n"
    assert user.run("run", "--", "echo", "--", "--json").out == "-- --json\n"


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_exit_code(user: User, script: str, code: int) -> None:
    """The child's exit code is ours; 128 and the signal that it died of."""
    assert user.run("run", "--", "sh", "-c", script).code == code


def test_not_started(user: User) -> None:
    """127 where the command is not there, 126 where it cannot be run; as a shell has it."""
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


def test_standard_input(user: User) -> None:
    """What comes in is the child's."""
    assert raw(user, "--", "cat", stdin=GARBAGE).stdout == GARBAGE


def test_standard_error(user: User) -> None:
    """The child's standard error is ours, and stands before the summary."""
    done = user.run("run", "--", "sh", "-c", "echo oops >&2")
    assert re.fullmatch(f"oops\n{SUMMARY}\n", done.err)


def test_reader_that_goes_away(user: User) -> None:
    """`| head -1`: the child's pipe is closed too; it ends as it would without us."""
    running = Running(user, "--", "sh", "-c", "echo first; while :; do echo more; done")
    assert running.read_all(b"\n").startswith(b"first\n")
    running.shut()
    code, _, err = running.end()
    assert code == 128 + signal.SIGPIPE
    assert re.fullmatch(SUMMARY + "\n", err)


def test_full_disk(user: User) -> None:
    """Output that cannot be written is told; the child ends as with any broken pipe."""
    words = [sys.executable, "-m", "brimline", "run", "--", "sh", "-c", "while :; do echo x; done"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, env=user.env, timeout=PATIENCE, check=False
        )
    assert done.returncode == 128 + signal.SIGPIPE
    assert done.stderr.startswith(b"brimline: cannot write output: No space left on device\n")


def test_grandchild_that_stays(user: User) -> None:
    """A process that the child left behind does not hold us, though it holds the pipe."""
    done = user.run("run", "--", "sh", "-c", "sleep 3600 2>/dev/null & echo $!")
    left = int(done.out)
    try:
        assert done.code == 0
        os.kill(left, 0)
    finally:
        os.kill(left, signal.SIGKILL)


def test_grandchild_that_goes_on_writing(user: User) -> None:
    """Nor does one that writes for ever; it gets a broken pipe."""
    script = "(while :; do echo noise; done) 2>/dev/null & echo mine"
    done = user.run("run", "--", "sh", "-c", script)
    assert done.code == 0
    assert "mine" in done.out


def test_much_output_at_the_end(user: User) -> None:
    """A slow reader gets all that a child wrote, also after it has ended."""
    running = Running(user, "--", "sh", "-c", "head -c 60000 /dev/zero; echo last")
    out = b""
    while piece := running.read(1_000):
        out += piece
    assert running.end()[0] == 0
    assert out == b"\0" * 60_000 + b"last\n"


def test_pipe_that_does_not_block(user: User) -> None:
    """Where somebody made our output non-blocking, all of it gets through all the same."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    words = [sys.executable, "-m", "brimline", "run", "--", "head", "-c", "1000000", "/dev/zero"]
    process = subprocess.Popen(words, stdout=theirs, stderr=subprocess.DEVNULL, env=user.env)
    os.close(theirs)
    out = b""
    while piece := os.read(ours, 10_000):
        out += piece
    os.close(ours)
    assert (process.wait(PATIENCE), out) == (0, b"\0" * 1_000_000)


# Ways to render.


def test_render_none(user: User) -> None:
    """Nothing of the child, the summary all the same."""
    done = user.run("run", "--render", "none", "--", agent(user, init(), call("m1", 90_000)))
    assert done.out == ""
    assert "Context: 45% (90K/200K)" in done.err


def test_render_json(user: User) -> None:
    """One object: what it came to, with the reading."""
    command = agent(user, init(), call("m1", 120_000), call("m2", 90_000), result())
    made = user.run("run", "--render", "json", "--hat", "builder", "--", command).json
    reading = made.pop("reading")
    assert made.pop("duration_ms") > 0
    assert made == {
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


def test_render_json_of_no_agent(user: User) -> None:
    """Of any other command little is known: null, never 0."""
    made = user.run("run", "--render", "json", "--", "sh", "-c", "exit 4").json
    known = {name: value for name, value in made.items() if value not in (None, False)}
    known.pop("duration_ms", None)
    assert known == {"is_error": True, "iteration": 1, "exit_code": 4, "ended": "itself"}


PRETTY = """\
Loading...
I run echo one.
› Bash  echo one
Two more.
› Bash  echo one
› Bash  echo two
All done.
no end"""


def test_render_pretty(user: User) -> None:
    """The stream as text; what is no stream goes through as it is."""
    stream = FIXTURES / "claude/tool-loop/stream-1.jsonl"
    script = f"echo Loading...; cat {stream}; printf 'no end'"
    done = user.run("run", "--render", "pretty", "--", "sh", "-c", script)
    assert done.out == PRETTY


def test_pretty_pieces(user: User) -> None:
    """A text that comes in pieces is one text."""
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
    done = user.run("run", "--render", "pretty", "--agent", "gemini", "--", "cat", "lines")
    assert done.out == 'Hello.\nYou.\n› ls\n! Ha\ufffd[31mlt\n{"half'


def test_pretty_of_each_run(user: User) -> None:
    """`--output-format json` prints its words at the end, in every iteration."""
    words = ("--render", "pretty", "--iterations", "2")
    assert user.run("run", *words, "--", agent(user, result())).out == "Done.\nDone.\n"


def test_pretty_of_other_json(user: User) -> None:
    """JSON that is no agent's stream is nobody's to render."""
    for name in ("claude", "anything"):
        command = agent(user, '{"type":"answer","n":1}\n', "\n", '{"a":2}\n', name=name)
        done = user.run("run", "--render", "pretty", "--", command)
        assert done.out == '{"type":"answer","n":1}\n\n{"a":2}\n'


# Loops.


def test_iterations(user: User) -> None:
    """The command runs again, each time fresh; it can tell which time it is."""
    script = 'echo "$BRIMLINE_ITERATION $BRIMLINE_HAT"'
    done = user.run(
        "run", "--iterations", "3", "--hat", "a", "--hat", "b", "--", "sh", "-c", script
    )
    assert done.out == "1 a\n2 b\n3 a\n"
    assert re.fullmatch(
        f"Iteration 1 of 3, a\n{SUMMARY}\nIteration 2 of 3, b\n{SUMMARY}\nIteration 3 of 3, a\n"
        f"{SUMMARY}\n"
        "hat  iterations     last     peak\n"
        "a             2  unknown  unknown\n"
        "b             1  unknown  unknown\n"
        "all           3  unknown  unknown\n",
        done.err,
    )


def test_until(user: User) -> None:
    """The loop is over when the agent says so, in its stream or in plain text."""
    says = "echo $BRIMLINE_ITERATION; test $BRIMLINE_ITERATION != 2 || echo All is DONE."
    done = user.run("run", "--iterations", "9", "--until", "DONE", "--", "sh", "-c", says)
    assert (done.code, done.out) == (0, "1\n2\nAll is DONE.\n")
    stream = agent(user, init(), call("m1", 9_000, "DONE"))
    done = user.run("run", "--iterations", "9", "--until", "DONE", "--", stream)
    assert done.err.count("Duration: ") == 1


def test_failure_ends_the_loop(user: User) -> None:
    """A child that fails ends the loop with its exit code."""
    script = "exit $((BRIMLINE_ITERATION / 2 * 5))"
    done = user.run("run", "--iterations", "9", "--", "sh", "-c", script)
    assert done.code == 5
    assert done.err.count("Duration: ") == 2


def test_per_hat(user: User) -> None:
    """After the last iteration the last and the peak of each hat, and of all."""
    lines = [call("m1", 120_000), call("m2", 90_000)]
    command = agent(user, init(), *lines)
    told = ("--iterations", "2", "--hat", "planner", "--render", "none")
    done = user.run("run", *told, "--", command)
    assert done.err.endswith(
        "hat      iterations            last             peak\n"
        "planner           2  45% (90K/200K)  60% (120K/200K)\n"
        "all               2  45% (90K/200K)  60% (120K/200K)\n"
    )


def test_events(user: User) -> None:
    """A row for each iteration; the rows of others are kept."""
    path = user.cwd / "logs" / "events.jsonl"
    path.parent.mkdir()
    path.write_text('{"topic":"task.start","ts":"t"}\nhalf a li')
    command = agent(user, init(), call("m1", 90_000), result())
    told = ("--iterations", "2", "--hat", "builder", "--events", str(path))
    assert user.run("run", *told, "--", command).code == 0
    first, second, *made = path.read_text().splitlines()
    assert (first, second) == ('{"topic":"task.start","ts":"t"}', "half a li")
    path.write_text("\n".join(made))
    numbers = [(row["iteration"], row["hat"], row["topic"]) for row in rows(path)]
    assert numbers == [(n, "builder", "iteration.summary") for n in (1, 2)]
    for row in rows(path):
        assert (row["input_tokens"], row["context_utilization_pct"]) == (90_000, 45.0)
        assert row["payload"]["cost_usd"] == 0.5
        assert row["payload"]["context_pct"] == 45.0


def test_summary_of_events(user: User) -> None:
    """What the rows of older runs add up to, as a table and as JSON."""
    path = user.cwd / "events.jsonl"
    command = agent(user, init(), call("m1", 120_000), call("m2", 90_000))
    for hat in ("planner", "builder"):
        user.run("run", "--hat", hat, "--events", str(path), "--", command)
    done = user.run("run", "--summary", str(path))
    assert done.out == (
        "hat      iterations            last             peak\n"
        "planner           1  45% (90K/200K)  60% (120K/200K)\n"
        "builder           1  45% (90K/200K)  60% (120K/200K)\n"
        "all               2  45% (90K/200K)  60% (120K/200K)\n"
    )
    made = user.run("run", "--summary", str(path), "--json").json
    assert [hat["hat"] for hat in made["hats"]] == ["planner", "builder"]
    assert made["overall"] == {
        "hat": None,
        "iterations": 2,
        "last_context_tokens": 90_000,
        "last_context_window": 200_000,
        "last_pct": 45.0,
        "peak_context_tokens": 120_000,
        "peak_context_window": 200_000,
        "peak_pct": 60.0,
    }


def test_summary_of_nothing(user: User) -> None:
    """A file without such a row says so; one that is not there is an error."""
    (user.cwd / "events.jsonl").write_text("{}\n")
    done = user.run("run", "--summary", "events.jsonl")
    assert (done.code, done.out) == (0, "No iterations in events.jsonl.\n")
    missing = user.run("run", "--summary", "none.jsonl")
    assert (missing.code, missing.out) == (2, "")
    assert "cannot read none.jsonl" in missing.err


def test_events_that_cannot_be_written(user: User) -> None:
    """It is known before anything runs."""
    done = user.run("run", "--events", ".", "--", "touch", "ran")
    assert (done.code, done.out) == (2, "")
    assert "argument: events: cannot write .: Is a directory" in done.err
    assert not (user.cwd / "ran").exists()


def test_events_that_cannot_be_written_later(user: User) -> None:
    """A row that cannot be written at the end is told, and the run was what it was."""
    path = user.cwd / "events.jsonl"
    script = f"rm {path}; mkdir {path}; exit 3"
    done = user.run("run", "--events", str(path), "--", "sh", "-c", script)
    assert done.code == 3
    assert done.err.endswith(f"brimline: cannot write {path}: Is a directory\n")


# Settings.


def test_ralph_yaml(user: User) -> None:
    """A Ralph configuration sets the window for everything; ours do too, also by agent."""
    command = agent(user, init(), call("m1", 64_000))
    (user.cwd / "ralph.yml").write_text("event_loop:\n  context_window_tokens: 128000\n")
    assert "50% (64K/128K)" in user.run("run", "--config", "ralph.yml", "--", command).err
    for text in ("context_window_tokens = 80000", "[context_window_tokens]\nclaude = 80000"):
        (user.cwd / ".brimline.toml").write_text(text)
        assert "80% (64K/80K)" in user.run("run", "--", command).err
    done = user.run("run", "--", command, BRIMLINE_CONTEXT_WINDOW_TOKENS="160000")
    assert "80% (64K/80K)" in done.err  # an agent's own size is closer than one for everything


def test_ralph_yaml_that_cannot_be_read(user: User) -> None:
    """It is told where and why, and nothing is run."""
    (user.cwd / "ralph.yml").write_text("event_loop: {}\n")
    done = user.run("run", "--config", "ralph.yml", "--", "touch", "ran")
    assert done.code == 2
    assert done.err == "brimline: ralph.yml:1: event_loop: expected one key per line: got '{}'\n"
    assert not (user.cwd / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "expected a command to run after --"),
        (["--"], "expected a command to run after --"),
        (["--iterations", "0", "--", "true"], "argument: iterations: expected 1 or more: got 0"),
        (["--agent", "vim", "--", "true"], "unknown agent 'vim'"),
        (["--warn", "65,50", "--", "true"], "strictly increasing"),
        (["--warn", "half", "--", "true"], "warn must be numbers above 0"),
        (["--stop-at", "-1", "--", "true"], "finite numbers above 0"),
        (["--stop-at", "80,90", "--", "true"], "stop-at must be one number above 0"),
    ],
)
def test_asked_for_wrongly(user: User, arguments: list[str], told: str) -> None:
    """2, and what was expected."""
    done = user.run("run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


# Transcripts.


def test_plain_text_is_followed_by_its_transcript(user: User) -> None:
    """`claude -p hi` prints no stream: its transcript tells."""
    made = user.run("run", "--render", "json", "--", program(user, "claude", WRITES)).json
    assert (made["context_tokens"], made["context_window"], made["output_tokens"]) == (
        90_000,
        200_000,
        7,
    )
    assert (made["session_id"], made["reading"]["source"]) == ("s1", "transcript")


def test_a_transcript_of_another_run(user: User) -> None:
    """What another session in the same folder had before is not this run's."""
    path = user.session("s0", user.call("m0", 150_000, cwd=str(user.cwd), sessionId="s0"))
    os.utime(path)
    done = user.run("run", "--", program(user, "claude", "#!/bin/sh\necho hello\n"))
    assert re.fullmatch(SUMMARY + "\n", done.err)
