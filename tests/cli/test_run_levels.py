"""`brimline run --warn --on-warn --stop-at`: what is done when a level is reached."""

import re

from .children import SUMMARY, WRITES, agent, call, init, program, rows, stepping
from .terminal import User


def test_warn(user: User) -> None:
    """Each level is said once, when it is reached."""
    up = ['call("m1", 90_000)', 'call("m2", 110_000)', 'wait("at-50")', 'call("m3", 120_000)']
    on = ['call("m4", 131_000)', 'wait("at-65")', 'call("m5", 20_000)', 'call("m6", 140_000)']
    told = ("--warn", "50,65", "--on-warn", "touch at-$BRIMLINE_LEVEL")
    done = user.run("run", *told, "--", stepping(user, *up, *on))
    assert done.code == 0
    assert re.fullmatch(
        r"brimline: level 50 reached, Context: 55% \(110K/200K\)\n"
        r"brimline: level 65 reached, Context: 6\d% \(131K/200K\)\n" + SUMMARY + ".*\n",
        done.err,
    )


def test_a_jump_is_one(user: User) -> None:
    """A jump over two levels is said once, and it is the higher; also at the very end."""
    command = agent(user, init(), call("m1", 180_000))
    done = user.run("run", "--warn", "50,65", "--", command)
    assert done.err.count("reached") == 1
    assert done.err.startswith("brimline: level 65 reached, Context: 90% (180K/200K)\n")


def test_nothing_is_reached(user: User) -> None:
    """Below the level nothing is said, nor of a command that is no agent."""
    command = agent(user, init(), call("m1", 90_000))
    assert "reached" not in user.run("run", "--warn", "50", "--", command).err
    assert "reached" not in user.run("run", "--warn", "50", "--stop-at", "60", "--", "true").err


def test_on_warn(user: User) -> None:
    """The command has the figures in its environment; what it prints goes to standard error."""
    told = 'env | grep ^BRIMLINE_ | grep -v -e DIR | sort > told; echo "said $BRIMLINE_PERCENT"'
    command = agent(user, init(), call("m1", 110_000))
    done = user.run("run", "--hat", "builder", "--warn", "50", "--on-warn", told, "--", command)
    assert done.out == init() + call("m1", 110_000)
    assert "said 55.0\n" in done.err
    assert (user.cwd / "told").read_text().splitlines() == [
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


def test_on_warn_that_fails(user: User) -> None:
    """A command that fails changes nothing of the run."""
    command = agent(user, init(), call("m1", 110_000))
    done = user.run("run", "--warn", "50", "--on-warn", "no-such-command-here", "--", command)
    assert done.code == 0
    assert "Context: 55% (110K/200K)" in done.err.splitlines()[-1]


GENTLE = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: (os.write(1, b"saved"), os._exit(1)))
if os.environ["BRIMLINE_ITERATION"] == "1":
    os.write(1, {stream!r})
    time.sleep(3600)
"""
"""An agent whose first run would not end by itself; asked to, it saves something."""


def test_stop_at(user: User) -> None:
    """The child is asked to end; that iteration has not failed, and the next begins fresh."""
    stream = init() + call("m1", 180_000)
    command = program(user, "claude", GENTLE.replace("{stream!r}", repr(stream.encode())))
    path = user.cwd / "events.jsonl"
    told = ("--iterations", "2", "--stop-at", "85", "--events", str(path))
    done = user.run("run", *told, "--", command)
    assert done.code == 0
    assert done.out == f"{stream}saved"
    assert "brimline: level 85 reached, Context: 90% (180K/200K); stopping the child\n" in done.err
    assert [(row["payload"]["ended"], row["payload"]["exit_code"]) for row in rows(path)] == [
        ("level", 0),
        ("itself", 0),
    ]


def test_stop_at_by_transcript(user: User) -> None:
    """An agent that prints no stream is ended by what its transcript says."""
    command = program(user, "claude", WRITES + "time.sleep(3600)\n")
    done = user.run("run", "--render", "json", "--stop-at", "40", "--", command)
    assert done.code == 0
    assert (done.json["ended"], done.json["context_tokens"]) == ("level", 90_000)
