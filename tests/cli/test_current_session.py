"""Inside which agent a command runs, found in real processes inside each other."""

import json
import os
import subprocess
import sys

import pytest

from brimline.cli.current_session import Inside, inside

from .terminal import PATIENCE

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere our own order decides")

NEST = """
import json, os, subprocess, sys
from brimline.cli.current_session import inside
first, *rest = json.loads(sys.argv[1])
if rest:
    words = [sys.executable, "-c", sys.argv[2], json.dumps(rest), sys.argv[2]]
    sys.exit(subprocess.call(words, env=os.environ | rest[0]))
here = inside(os.environ)
print(json.dumps([here.agent, here.session]))
"""
"""Processes inside each other, each told more than the one above it; the last says where it is."""

CLAUDE = {"CLAUDECODE": "test", "CLAUDE_CODE_SESSION_ID": "of-claude"}
CODEX = {"CODEX_THREAD_ID": "of-codex"}
GEMINI = {"GEMINI_CLI": "test"}
PI = {"PI_CODING_AGENT": "test", "PI_SESSION_ID": "of-pi"}
NOTHING: dict[str, str] = {}


def innermost(*told: dict[str, str]) -> Inside:
    """Where the last of these processes finds itself, by what each is told; the outermost first."""
    words = [sys.executable, "-c", NEST, json.dumps(told), NEST]
    env = {"PATH": os.environ["PATH"], **told[0]}
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    return Inside(*json.loads(done.stdout))


@LINUX
@pytest.mark.parametrize(
    ("told", "found"),
    [
        ((CLAUDE, NOTHING, CODEX, NOTHING), Inside("codex", "of-codex")),
        ((CODEX, NOTHING, CLAUDE, NOTHING), Inside("claude", "of-claude")),
        ((CLAUDE, CODEX), Inside("codex", "of-codex")),
        ((CLAUDE, CODEX, PI, NOTHING), Inside("pi", "of-pi")),
        ((PI, CODEX, CLAUDE), Inside("claude", "of-claude")),
        ((CLAUDE, {"BRIMLINE_SESSION": "of-run"}), Inside(None, "of-run")),
        ((CLAUDE, {"CLAUDE_CODE_SESSION_ID": "inner"}), Inside("claude", "inner")),
    ],
)
def test_nearest(told: tuple[dict[str, str], ...], found: Inside) -> None:
    """Of agents inside each other the inner one is meant, whatever their kinds."""
    assert innermost(*told) == found


@LINUX
def test_nearest_that_tells_no_session() -> None:
    """Gemini CLI tells no session: then none is told, and not that of the agent around it."""
    assert innermost(CLAUDE, GEMINI, NOTHING) == Inside("gemini", None)


def test_order() -> None:
    """Where no process above tells them apart, the first of our order is taken."""
    assert inside({**CODEX, **GEMINI, **CLAUDE}) == Inside("claude", "of-claude")


@pytest.mark.parametrize("env", [{}, {"CODEX_THREAD_ID": ""}, {"GEMINI_CLI_HOME": "/home/u"}])
def test_outside(env: dict[str, str]) -> None:
    """A variable that is empty, or a setting of the user's, is no agent's word."""
    assert inside(env) is None
