"""Everything particular to an agent is in its folder: nothing else names an agent.

Two rules: no string outside `agents/` is an agent's name, and each environment variable of an agent
is in one file, its `__init__.py` or the file that reads it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from brimline.agents import agent_names, all_agents, telemetry_readers
from source_trees import parse_modules

SOURCE = Path(__file__).parent.parent / "src" / "brimline"

# Folders that may name agents: their own, the scripted sample data, and what is shipped for tests.
EXEMPT_FOLDERS = ("agents", "server/demo", "testing")

# Files that name an agent, and why.
ALLOWED_NAMES = {
    "cli/baseline.py": "only Claude Code can be asked for a baseline",
    "cli/demo.py": "the recorded session is one of Claude Code",
    "sdk/stream.py": "the Claude Agent SDK hands on lines of Claude Code's stream",
    "sdk/service.py": "an id that ends in [1m] is Claude Code's",
    "server/daemon.py": "any agent's session, to load the modules",
}

# Files that name variables of agents beside `agents/`: what runs inside a hook imports nothing.
HOOK_CLIENT = "hooks/client/"

VARIABLE = re.compile(
    r"\b(?:CLAUDECODE|(?:CLAUDE|CLINE|CODEX|COPILOT|GEMINI|KILO|OPENCODE|PI|QWEN)_[A-Z0-9_]{3,})\b"
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module outside the exempt folders, by its path."""
    for name, tree in parse_modules().items():
        if not name.startswith(tuple(f"{folder}/" for folder in EXEMPT_FOLDERS)):
            yield name, tree


def strings(tree: ast.Module) -> Iterator[str]:
    """Every string and bytes literal of a module, also in f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value
            yield value if isinstance(value, str) else value.decode("utf-8", "replace")


def test_no_agent_is_named_outside_its_folder() -> None:
    """Code that needs to know about an agent asks the registry."""
    names = {*agent_names(), *(name for name, _ in telemetry_readers())}
    naming = {path for path, tree in modules() if names & set(strings(tree))}
    assert naming == set(ALLOWED_NAMES)


def test_no_agent_variable_is_named_outside_its_folder() -> None:
    """Only the hook client, which can import nothing, repeats variables of agents."""
    naming = {
        path
        for path, tree in modules()
        if not path.startswith(HOOK_CLIENT)
        and any(VARIABLE.search(text) for text in strings(tree) if "\n" not in text)
    }
    assert naming == set()


def test_hook_client_passes_on_every_variable_of_the_registry() -> None:
    from brimline.hooks.client import autostart, exchange

    capabilities = [agent.capabilities for agent in all_agents()]
    settings = {
        name
        for agent_capabilities in capabilities
        for name in agent_capabilities.settings_variables
    }
    hooks = {
        name for agent_capabilities in capabilities for name in agent_capabilities.hook_variables
    }
    locations = {
        name
        for agent_capabilities in capabilities
        for name in agent_capabilities.location_variables
    }
    assert {name.decode() for name in exchange.SETTINGS_VARIABLES} == settings
    passed_on = {name.decode() for name in exchange.PASSED_VARIABLES}
    assert passed_on >= settings | hooks
    assert {name for name in passed_on if VARIABLE.search(name)} <= settings | hooks
    by_prefix = tuple(prefix.decode() for prefix in autostart.PREFIXES)
    inherited = {name.decode() for name in autostart.NAMES}
    assert {name for name in locations if not name.startswith(by_prefix)} <= inherited
    header = (SOURCE / "hooks/client/tables.h").read_text("utf-8")
    table = header.partition("VARIABLES[] = {")[2].partition("};")[0]
    assert set(re.findall(r'"(\w+)"', table)) == passed_on
