"""Which agent a command runs inside, detected in real nested processes."""

import json
import os
import subprocess
import sys

import pytest

from brimline.cli.session_choice import CurrentSession, find_current_session

from .terminal import PATIENCE_S

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere our own order decides")

# Nested processes, each with more variables than its parent; the last prints what it detects.
NEST = """
import json, os, subprocess, sys
from brimline.cli.session_choice import find_current_session
first, *rest = json.loads(sys.argv[1])
if rest:
    words = [sys.executable, "-c", sys.argv[2], json.dumps(rest), sys.argv[2]]
    sys.exit(subprocess.call(words, env=os.environ | rest[0]))
here = find_current_session(os.environ)
print(json.dumps([here.agent, here.session]))
"""

CLAUDE = {"CLAUDECODE": "test", "CLAUDE_CODE_SESSION_ID": "of-claude"}
CODEX = {"CODEX_THREAD_ID": "of-codex"}
GEMINI = {"GEMINI_CLI": "test"}
PI = {"PI_CODING_AGENT": "test", "PI_SESSION_ID": "of-pi"}
NOTHING: dict[str, str] = {}


def innermost(*environments: dict[str, str]) -> CurrentSession:
    """What the innermost process detects; `environments` go from the outermost to the innermost."""
    words = [sys.executable, "-c", NEST, json.dumps(environments), NEST]
    env = {"PATH": os.environ["PATH"], **environments[0]}
    completed = subprocess.run(
        words, env=env, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=True
    )
    return CurrentSession(*json.loads(completed.stdout))


@LINUX
@pytest.mark.parametrize(
    ("environments", "expected"),
    [
        ((CLAUDE, NOTHING, CODEX, NOTHING), CurrentSession("codex", "of-codex")),
        ((CODEX, NOTHING, CLAUDE, NOTHING), CurrentSession("claude", "of-claude")),
        ((CLAUDE, CODEX), CurrentSession("codex", "of-codex")),
        ((CLAUDE, CODEX, PI, NOTHING), CurrentSession("pi", "of-pi")),
        ((PI, CODEX, CLAUDE), CurrentSession("claude", "of-claude")),
        ((CLAUDE, {"BRIMLINE_SESSION": "of-run"}), CurrentSession(None, "of-run")),
        ((CLAUDE, {"CLAUDE_CODE_SESSION_ID": "inner"}), CurrentSession("claude", "inner")),
    ],
)
def test_innermost_agent_wins_whatever_its_kind(
    environments: tuple[dict[str, str], ...], expected: CurrentSession
) -> None:
    assert innermost(*environments) == expected


@LINUX
def test_inner_agent_without_a_session_id_hides_the_outer_session() -> None:
    assert innermost(CLAUDE, GEMINI, NOTHING) == CurrentSession("gemini", None)


def test_registry_order_decides_when_no_process_tells_agents_apart() -> None:
    assert find_current_session({**CODEX, **GEMINI, **CLAUDE}) == CurrentSession(
        "claude", "of-claude"
    )


@pytest.mark.parametrize("env", [{}, {"CODEX_THREAD_ID": ""}, {"GEMINI_CLI_HOME": "/home/u"}])
def test_empty_variables_and_user_settings_are_no_agent(env: dict[str, str]) -> None:
    assert find_current_session(env) is None
