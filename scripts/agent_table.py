"""Write the table of docs/guides/agents.md: what works with which agent, by the test that shows it.

A part of an agent's code that no test shows is `not tested`. `--check` fails if the table is stale.
`--lines` prints the lines of each agent's folder.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import brimline
from brimline.agents import Agent, agent_names, telemetry_readers

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guides" / "agents.md"
FOLDER = Path(brimline.__file__).parent / "agents"
HEADING = "## What is tested"
NOT_SUPPORTED, UNTESTED = "", "not tested"

MONITORED = r"tests/clients/test_monitor\w*\.py::"
RECORDED = r"tests/agents/test_recorded_agents\.py::"
SUITE = r"tests/agents/test_conformance\.py::test_agent_does_not_hold\[{agent}-"
EQUAL = r"tests/clients/test_equal\.py::"
# The columns: the part of the agent's code, and the tests that show it, the best one first.
COLUMNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "transcript": ("paths", (EQUAL + r"test_main_calls_of_the_transcript\[{agent}-",)),
    "stream": ("", (EQUAL + r"test_{agent}_stream\b",)),
    "subagents": ("", (EQUAL + r"test_subagent_calls_of_the_transcript\[{agent}-subagent",)),
    "compaction": (
        "paths",
        (EQUAL + r"test_compactions_of_the_transcript\[{agent}-\S*compact",),
    ),
    "levels": ("hooks", (MONITORED + r"test_levels_reach_the_agent_once\[{agent}\]",)),
    "handoff": (
        "hooks",
        (
            MONITORED + r"test_handoff_returns_after_a_compaction\[{agent}\]",
            MONITORED + r"test_handoff_returns_\w+\[{agent}\]",
        ),
    ),
    "draft": ("content", (RECORDED + r"test_agent_has_no_draft\[{agent}\]",)),
    "explain": (
        "content",
        (
            r"tests/clients/test_ledger_{agent}\.py::test_every_category_is_what_was_sent",
            RECORDED + r"test_context_does_not_add_up\[{agent}\]",
        ),
    ),
    "telemetry": (
        "telemetry",
        (
            r"tests/clients/test_telemetry\.py::test_every_call_\w+\[run_{agent}-",
            r"tests/clients/test_telemetry\.py::test_\w+\[run_{agent}-",
            r"tests/agents/test_telemetry\.py::test_\w+_{agent}_\w+",
        ),
    ),
    "remove": (
        "hooks",
        (MONITORED + r"test_remove_restores_the_files\[{agent}\]", SUITE + r"\S*-setup_restores"),
    ),
}


def collect_tests() -> list[str]:
    """Return the ids of all tests of agents."""
    command = [
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-n",
        "0",
        "-m",
        "",
        "-p",
        "no:cacheprovider",
    ]
    folders = ["tests/clients", "tests/agents"]
    result = subprocess.run(
        [sys.executable, *command, *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [line for line in result.stdout.splitlines() if "::" in line]


def read_agents() -> dict[str, str]:
    """Return the names of all agents, and what their clients are called."""
    names = sorted({*agent_names(), *(name for name, _ in telemetry_readers())})
    return {name: _display_name(name) for name in names}


def _display_name(name: str) -> str:
    if name in agent_names():
        return Agent(name).capabilities.display_name
    title = (FOLDER / name / "__init__.py").read_text("utf-8").partition(":")[0]
    return title.strip('". \n')


def find_test(agent: str, column: str, tests: Sequence[str]) -> str | None:
    """Return the id of the test that shows a cell."""
    for pattern in COLUMNS[column][1]:
        compiled = re.compile(pattern.replace("{agent}", agent))
        if found := next(filter(compiled.match, tests), None):
            return found
    return None


def has_part(agent: str, column: str) -> bool:
    """Return whether the agent's folder has the code of a column; True if it is in no part."""
    part = COLUMNS[column][0]
    return not part or (FOLDER / agent / f"{part}.py").exists()


def render_table(tests: Sequence[str]) -> str:
    """Return the table, each cell with a link to its test."""
    rows = [["", *COLUMNS], ["---"] * (len(COLUMNS) + 1)]
    for agent, shown in read_agents().items():
        cells = (_cell(agent, column, tests) for column in COLUMNS)
        rows.append([shown, *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(agent: str, column: str, tests: Sequence[str]) -> str:
    if not has_part(agent, column):
        return NOT_SUPPORTED
    if test := find_test(agent, column, tests):
        return f"[yes](../../{test.partition('::')[0]})"
    return UNTESTED if COLUMNS[column][0] else NOT_SUPPORTED


def replace_table(page: str, table: str) -> str:
    """Return the page with the table below its heading replaced."""
    old = re.compile(rf"({HEADING}\n.*?\n\n)(?:\|[^\n]*\n)+", re.DOTALL)
    return old.sub(lambda found: found[1] + table, page, count=1)


def count_lines() -> Iterator[tuple[str, int]]:
    """Yield the lines of Python and JavaScript of each agent's folder."""
    for agent in read_agents():
        files = [*(FOLDER / agent).glob("*.py"), *(FOLDER / agent).glob("*.js")]
        yield agent, sum(path.read_bytes().count(b"\n") for path in files)


def main() -> int:
    """Write the table, or check it."""
    if "--lines" in sys.argv:
        for agent, lines in count_lines():
            print(f"{lines:6,} {agent}")
        return 0
    page = PAGE.read_text("utf-8")
    current = replace_table(page, render_table(collect_tests()))
    if "--check" not in sys.argv:
        PAGE.write_text(current, "utf-8")
    elif page != current:
        print(f"stale: {PAGE.name}; run `python scripts/agent_table.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
