"""Which session spawned another, found in real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from brimline.process_tree import MAX_ANCESTORS
from brimline.server.hooks.process_context import find_spawner

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere `ps` lists the processes")

NEST = """
import json, os, subprocess, sys
first, *rest = json.loads(sys.argv[1])
if rest:
    words = [sys.executable, "-c", sys.argv[2], json.dumps(rest), sys.argv[2]]
    sys.exit(subprocess.call(words, env=rest[0]))
print(os.getpid(), flush=True)
sys.stdin.read()
"""
"""Processes inside each other, each with its own environment; the last tells its number."""

ORPHAN = "import os, sys; os.fork() and os._exit(0); os.execv(sys.argv[1], sys.argv[1:])"
"""Runs a command that is nobody's child: whoever runs the tests may be an agent's session."""


@contextmanager
def nested(*envs: dict[str, str]) -> Generator[int]:
    """Processes inside each other, the outermost first; gives the number of the innermost."""
    python = [sys.executable, "-c"]
    words = [*python, ORPHAN, *python, NEST, json.dumps(envs), NEST]
    with subprocess.Popen(
        words, env=envs[0], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        innermost = int(process.stdout.readline())
        process.wait()
        yield innermost
        process.communicate()


def claude(session: str) -> dict[str, str]:
    """What Claude Code tells the processes that it runs."""
    return {"CLAUDE_CODE_SESSION_ID": session}


def codex(session: str) -> dict[str, str]:
    """What Codex tells the processes that it runs."""
    return {"CODEX_SESSION_ID": session}


@LINUX
def test_session_of_its_own() -> None:
    """A session that a user started was spawned by none."""
    with nested({}, claude("mine")) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
def test_spawned_by_a_tool() -> None:
    """The client was run by another session's tool: that session spawned this one."""
    with nested(claude("outer"), claude("outer"), claude("mine")) as hook:
        assert find_spawner(hook, "mine") == "outer"


@LINUX
def test_nearest() -> None:
    """Of sessions inside each other the nearest is the one."""
    with nested(claude("first"), claude("second"), {}, claude("mine")) as hook:
        assert find_spawner(hook, "mine") == "second"


@LINUX
@pytest.mark.parametrize("turned", [False, True])
def test_nearest_of_two_agents(turned: bool) -> None:
    """Where agents of two kinds are inside each other, the inner one is the nearer."""
    outer, inner = (claude("outer"), codex("inner"))[:: -1 if turned else 1]
    innermost = next(iter(inner.values()))
    with nested(outer, {**outer, **inner}, {**outer, **inner}) as hook:
        assert find_spawner(hook, "mine") == innermost


@LINUX
def test_empty_variable() -> None:
    """A variable that is empty tells of no session."""
    with nested(claude(""), claude("mine")) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
def test_variable_that_is_no_text() -> None:
    """What a store could not keep is no session's id."""
    with nested({"CLAUDE_CODE_SESSION_ID": "\udcffbad"}, claude("mine")) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
def test_far_above() -> None:
    """It is not looked for ever: who is too far above is not found."""
    between: list[dict[str, str]] = [{}] * MAX_ANCESTORS
    with nested(claude("far"), *between) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start somebody else's process")
def test_somebody_elses() -> None:
    """What another user's process was told is not looked at."""
    words = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        words, env=claude("theirs"), user=65534, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert find_spawner(process.pid, "mine") is None
        process.communicate()


@pytest.mark.parametrize("pid", [-1, 0, 1, 1 << 22, 1 << 40])
def test_no_process(pid: int) -> None:
    """A number that is no process, or none of ours, tells nothing."""
    assert find_spawner(pid, "mine") is None
