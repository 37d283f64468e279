"""`brimline run --warn --on-warn --stop-at`: actions when a level is reached."""

import re

from .children import SUMMARY, WRITES, agent, call, init, program, rows, stepping
from .terminal import User


def test_each_level_warns_once(user: User) -> None:
    up = ['call("m1", 90_000)', 'call("m2", 110_000)', 'wait("at-50")', 'call("m3", 120_000)']
    on = ['call("m4", 131_000)', 'wait("at-65")', 'call("m5", 20_000)', 'call("m6", 140_000)']
    options = ("--warn", "50,65", "--on-warn", "touch at-$BRIMLINE_LEVEL")
    completed = user.run("run", *options, "--", stepping(user, *up, *on))
    assert completed.code == 0
    assert re.fullmatch(
        r"brimline: level 50 reached, Context: 55% \(110K/200K\)\n"
        r"brimline: level 65 reached, Context: 6\d% \(131K/200K\)\n" + SUMMARY + ".*\n",
        completed.err,
    )


def test_jump_over_two_levels_warns_once_with_the_higher(user: User) -> None:
    command = agent(user, init(), call("m1", 180_000))
    completed = user.run("run", "--warn", "50,65", "--", command)
    assert completed.err.count("reached") == 1
    assert completed.err.startswith("brimline: level 65 reached, Context: 90% (180K/200K)\n")


def test_levels_of_an_unknown_window_are_reported_as_unchecked(user: User) -> None:
    """Of older versions it is not known what they assume about models of other makers."""
    lines = [
        line.replace("claude-sonnet-4-5", "my-local-model").replace("2.1.325", "2.1.324")
        for line in (init(), call("m", 199_000))
    ]
    completed = user.run("run", "--warn", "50", "--", agent(user, *lines))
    assert completed.err.startswith("brimline: the window is unknown, so no level was checked; ")
    assert "unknown" not in user.run("run", "--", agent(user, *lines)).err


def test_no_warning_below_the_level_or_without_an_agent(user: User) -> None:
    command = agent(user, init(), call("m1", 90_000))
    assert "reached" not in user.run("run", "--warn", "50", "--", command).err
    assert "reached" not in user.run("run", "--warn", "50", "--stop-at", "60", "--", "true").err


def test_on_warn_command_gets_the_figures_and_prints_to_standard_error(user: User) -> None:
    script = 'env | grep ^BRIMLINE_ | grep -v -e DIR | sort > out; echo "printed $BRIMLINE_PERCENT"'
    command = agent(user, init(), call("m1", 110_000))
    completed = user.run(
        "run", "--hat", "builder", "--warn", "50", "--on-warn", script, "--", command
    )
    assert completed.out == init() + call("m1", 110_000)
    assert "printed 55.0\n" in completed.err
    assert (user.cwd / "out").read_text().splitlines() == [
        "BRIMLINE_AGENT=claude",
        "BRIMLINE_HAT=builder",
        "BRIMLINE_HELD=110001",
        "BRIMLINE_ITERATION=1",
        "BRIMLINE_LEVEL=50",
        "BRIMLINE_LIMIT=167000",
        "BRIMLINE_PERCENT=55.0",
        "BRIMLINE_SENT=110000",
        "BRIMLINE_SESSION=5e551011-0000-4000-8000-000000000001",
        "BRIMLINE_WINDOW=200000",
    ]


def test_failed_on_warn_command_does_not_change_the_run(user: User) -> None:
    command = agent(user, init(), call("m1", 110_000))
    completed = user.run("run", "--warn", "50", "--on-warn", "no-such-command-here", "--", command)
    assert completed.code == 0
    assert "Context: 55% (110K/200K)" in completed.err.splitlines()[-1]


# An agent whose first run ends only when it is stopped, and saves something then.
GENTLE = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: (os.write(1, b"saved"), os._exit(1)))
if os.environ["BRIMLINE_ITERATION"] == "1":
    os.write(1, {stream!r})
    time.sleep(3600)
"""


def test_stop_at_ends_the_child_without_failing_the_iteration(user: User) -> None:
    stream = init() + call("m1", 180_000)
    command = program(user, "claude", GENTLE.replace("{stream!r}", repr(stream.encode())))
    path = user.cwd / "events.jsonl"
    options = ("--iterations", "2", "--stop-at", "85", "--events", str(path))
    completed = user.run("run", *options, "--", command)
    assert completed.code == 0
    assert completed.out == f"{stream}saved"
    assert (
        "brimline: level 85 reached, Context: 90% (180K/200K); stopping the child\n"
        in completed.err
    )
    assert [(row["payload"]["ended"], row["payload"]["exit_code"]) for row in rows(path)] == [
        ("level", 0),
        ("itself", 0),
    ]


def test_stop_at_works_by_transcript_without_a_stream(user: User) -> None:
    command = program(user, "claude", WRITES + "time.sleep(3600)\n")
    completed = user.run("run", "--render", "json", "--stop-at", "40", "--", command)
    assert completed.code == 0
    assert (completed.json["ended"], completed.json["context_tokens"]) == ("level", 90_000)
