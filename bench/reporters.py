"""Tools that read the agents' files: what all calls sent, and what fills a session's context.

Each runs offline in a home folder of its own. None is what a tool does not do.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from brimline import __version__
from brimline.agents import agent_names
from measure import run
from other_tools import AGENTSVIEW, CCUSAGE, CODEBURN, NODE, Report, agentsview, ccusage, codeburn

UNSHARE = shutil.which("unshare")
OFFLINE = [UNSHARE, "-n"] if UNSHARE and os.geteuid() == 0 else []
PROJECTS = "CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL)"
DAYS = ("--from", "2025-12-01", "--to", "2026-12-31")  # of all recordings
BY_DOCUMENTATION = re.compile(r"across (\d+) tools and agents")
BY_HELP = re.compile(r"^  \w+ +Show .* usage commands$", re.MULTILINE)
BY_TABLE = re.compile(r"^\| Agent .*?\n\| -+.*?\n((?:\|.*\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Reporter:
    """A tool: the agents that it reads by its own help or README, and what it reports.

    `total` is what all calls of a home folder sent; `parts` is the sum of what fills the context of
    a session of an agent.
    """

    name: str
    version: str
    agents: int
    total: Callable[[Path], int]
    parts: Callable[[Path, str, str], int] | None = None


def environment(home: Path) -> dict[str, str]:
    """The environment of every tool: nothing of the user's own.

    ccusage keeps its last line for each session in the folder for temporary files. Without a
    network, a name is looked for once and not for ten seconds.
    """
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "200",
        "RES_OPTIONS": "attempts:1 timeout:1",
        "AGENTSVIEW_NO_DAEMON": "1",
    }


def reporters(cache: Path) -> list[Reporter]:
    """Brimline and ccusage, and those of the others that can be installed."""
    native = ccusage(cache)
    found = [
        Reporter("brimline", __version__, len(agent_names()), _brimline_total, _brimline_parts),
        Reporter("ccusage", CCUSAGE, _count_by_help(native), partial(_ccusage_total, native)),
    ]
    if script := codeburn(cache):
        about = (script.parent.parent / "README.md").read_text("utf-8")
        stated = BY_DOCUMENTATION.search(about)
        command = [str(NODE), str(script)]
        total, parts = partial(_codeburn_total, command), partial(_codeburn_parts, command)
        agents = int(stated[1]) if stated else 0
        found.append(Reporter("codeburn", CODEBURN, agents, total, parts))
    if program := agentsview(cache):
        metadata = next(program.parents[2].glob("agentsview-*.dist-info")) / "METADATA"
        stated = BY_TABLE.search(metadata.read_text("utf-8"))
        agents = len(stated[1].splitlines()) if stated else 0
        total = partial(_agentsview_total, program)
        found.append(Reporter("agentsview", AGENTSVIEW, agents, total))
    return found


def _count_by_help(program: Path) -> int:
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    return len(BY_HELP.findall(help_text.stdout))


def _read_json(command: Sequence[str], home: Path) -> Any:
    return msgspec.json.decode(run(list(command), environment(home)).output)


def _brimline_total(home: Path) -> int:
    command = [sys.executable, "-m", "brimline", "report", "--since", "9999d", "--json"]
    usage = _read_json(command, home)["total"]["usage"]
    return sum(usage[name] for name in ("input", "cache_read", "cache_write"))


def _brimline_parts(home: Path, agent: str, session: str) -> int:
    words = ["explain", session, "--agent", agent, "--json"]
    explained = _read_json([sys.executable, "-m", "brimline", *words], home)
    (main,) = (each for each in explained["threads"] if each["thread"] == "main")
    return main["unexplained"] + sum(each["tokens"] for each in main["categories"])


def _ccusage_total(program: Path, home: Path) -> int:
    command = [str(program), "session", "--json", "--offline"]
    totals = msgspec.json.decode(run(command, environment(home)).output, type=Report).totals
    return totals.input_tokens + totals.cache_creation_tokens + totals.cache_read_tokens


def _codeburn_total(command: Sequence[str], home: Path) -> int:
    models = _read_json([*OFFLINE, *command, "audit", "--format", "json", *DAYS], home)
    names = ("inputTokens", "cacheWriteTokens", "cacheReadTokens")
    return sum(model["displayed"][name] for model in models for name in names)


def _codeburn_parts(command: Sequence[str], home: Path, agent: str, session: str) -> int:
    words = ["context", session, "--provider", agent, "--json"]
    return _read_json([*OFFLINE, *command, *words], home)["effective"]["tokens"]


def _agentsview_total(program: Path, home: Path) -> int:
    _add_projects(home)
    command = [*OFFLINE, str(program)]
    run([*command, "sync"], environment(home))
    daily = [*command, "usage", "daily", "--json", "--all", "--offline", "--no-sync"]
    totals = _read_json(daily, home)["totals"]
    names = ("inputTokens", "cacheCreationTokens", "cacheReadTokens")
    return sum(totals[name] for name in names)


def _add_projects(home: Path) -> None:
    """Add the table of projects, without which agentsview reads no session of opencode.

    opencode's own database has it; the recordings have the tables that Brimline reads.
    """
    path = home / ".local/share/opencode/opencode.db"
    if path.exists():
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(PROJECTS)
            database.execute(
                "INSERT INTO project SELECT DISTINCT project_id, directory FROM session"
            )
