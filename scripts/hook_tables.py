"""Write the tables that the compiled hook client shares with Python: hooks/client/tables.h.

They are the environment variables that the client passes to the daemon, from the registry of
agents, and the fields that it may spool, from payload.py. `--check` fails if the file is stale.
"""

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from brimline.agents import all_agents
from brimline.hooks.client.payload import FIELDS

HEADER = Path(__file__).parent.parent / "src/brimline/hooks/client/tables.h"
GENERAL = (
    "COLUMNS",
    "NO_COLOR",
    "TERM",
    "TMUX",
    "TMUX_PANE",
    "BRIMLINE_PARENT",
    "BRIMLINE_SESSION",
    "BRIMLINE_STATUS_LINE",
)


def render_header() -> str:
    """Return the text of the header."""
    every = [agent.capabilities for agent in all_agents()]
    variables = [*GENERAL, *(name for one in every for name in one.hook_variables)]
    variables += [name for one in every for name in one.settings_variables]
    return (
        "/* Written by scripts/hook_tables.py from the agents and payload.py. */\n"
        f"{_render_table('VARIABLES', dict.fromkeys(variables))}"
        f"{_render_table('FIELDS', sorted(FIELDS))}"
    )


def _render_table(name: str, values: Iterable[str]) -> str:
    quoted = ", ".join(f'"{value}"' for value in values)
    rows = textwrap.fill(quoted, 100, initial_indent="    ", subsequent_indent="    ")
    return f"\nstatic const char *const {name}[] = {{\n{rows},\n}};\n"


def main() -> int:
    """Write the header, or check it."""
    if "--check" not in sys.argv:
        HEADER.write_text(render_header(), "utf-8")
    elif HEADER.read_text("utf-8") != render_header():
        print(f"stale: {HEADER.name}; run `python scripts/hook_tables.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
