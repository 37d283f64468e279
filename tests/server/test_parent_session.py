"""The session that spawned another, known from real processes, and the pane of a hook."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from brimline.daemon.parent_session import find_spawner
from brimline.daemon.process_tree import MAX_ANCESTORS

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere `ps` lists the processes")

# Runs processes inside each other, each with its own environment; the innermost prints its pid.
NEST = """
import json, os, subprocess, sys
first, *rest = json.loads(sys.argv[1])
if rest:
    words = [sys.executable, "-c", sys.argv[2], json.dumps(rest), sys.argv[2]]
    sys.exit(subprocess.call(words, env=rest[0]))
print(os.getpid(), flush=True)
sys.stdin.read()
"""

# Runs a command without a parent, because the tests may run inside an agent's session.
ORPHAN = "import os, sys; os.fork() and os._exit(0); os.execv(sys.argv[1], sys.argv[1:])"


@contextmanager
def run_nested(*envs: dict[str, str]) -> Generator[int]:
    """Run processes inside each other, the outermost first; return the pid of the innermost."""
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


def claude_env(session: str) -> dict[str, str]:
    return {"CLAUDE_CODE_SESSION_ID": session}


def codex_env(session: str) -> dict[str, str]:
    return {"CODEX_SESSION_ID": session}


@LINUX
def test_session_started_by_a_user_has_no_parent() -> None:
    with run_nested({}, claude_env("mine")) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
def test_session_run_by_a_tool_of_another_has_that_parent() -> None:
    with run_nested(claude_env("outer"), claude_env("outer"), claude_env("mine")) as hook:
        assert find_spawner(hook, "mine") == "outer"


@LINUX
def test_nearest_session_is_the_parent() -> None:
    with run_nested(claude_env("first"), claude_env("second"), {}, claude_env("mine")) as hook:
        assert find_spawner(hook, "mine") == "second"


@LINUX
@pytest.mark.parametrize("turned", [False, True])
def test_nearest_session_of_another_agent_is_the_parent(turned: bool) -> None:
    outer, inner = (claude_env("outer"), codex_env("inner"))[:: -1 if turned else 1]
    innermost = next(iter(inner.values()))
    with run_nested(outer, {**outer, **inner}, {**outer, **inner}) as hook:
        assert find_spawner(hook, "mine") == innermost


@LINUX
def test_codex_thread_is_the_parent_of_a_session_that_its_shell_started() -> None:
    """Older versions of Codex have no variable but this one."""
    with run_nested({"CODEX_THREAD_ID": "outer"}, claude_env("mine")) as hook:
        assert find_spawner(hook, "mine") == "outer"


@LINUX
def test_parent_is_the_session_and_not_the_thread_of_a_codex_subagent() -> None:
    env = {**codex_env("outer"), "CODEX_THREAD_ID": "subagent"}
    with run_nested(env, {**env, **claude_env("mine")}) as hook:
        assert find_spawner(hook, "mine") == "outer"


@LINUX
def test_empty_variable_names_no_session() -> None:
    with run_nested(claude_env(""), claude_env("mine")) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
def test_variable_that_is_no_utf8_names_no_session() -> None:
    with run_nested({"CLAUDE_CODE_SESSION_ID": "\udcffbad"}, claude_env("mine")) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
def test_too_distant_ancestor_is_not_found() -> None:
    between: list[dict[str, str]] = [{}] * MAX_ANCESTORS
    with run_nested(claude_env("far"), *between) as hook:
        assert find_spawner(hook, "mine") is None


@LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_process_of_another_user_is_not_read() -> None:
    words = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        words, env=claude_env("theirs"), user=65534, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert find_spawner(process.pid, "mine") is None
        process.communicate()


@pytest.mark.parametrize("pid", [-1, 0, 1, 1 << 22, 1 << 40])
def test_missing_process_has_no_parent_session(pid: int) -> None:
    assert find_spawner(pid, "mine") is None
