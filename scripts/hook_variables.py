"""Write the list of environment variables that the compiled hook client passes to the daemon.

`python scripts/hook_variables.py` writes hooks/client/variables.h from the registry of agents;
`--check` fails if the file is stale.
"""

import sys
from pathlib import Path

from brimline.agents import all_agents

HEADER = Path(__file__).parent.parent / "src/brimline/hooks/client/variables.h"
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


def header() -> str:
    """The header's text: general variables, then those that agents set for hooks and settings."""
    every = [agent.capabilities for agent in all_agents()]
    names = [*GENERAL, *(name for one in every for name in one.hook_variables)]
    names += [name for one in every for name in one.settings_variables]
    lines = "".join(f'    "{name}",\n' for name in dict.fromkeys(names))
    about = "/* Written by scripts/hook_variables.py from the capabilities of the agents. */"
    return f"{about}\n\nstatic const char *const NAMES[] = {{\n{lines}}};\n"


def main() -> int:
    """Write the header, or check it."""
    if "--check" not in sys.argv:
        HEADER.write_text(header(), "utf-8")
    elif HEADER.read_text("utf-8") != header():
        print(f"stale: {HEADER.name}; run `python scripts/hook_variables.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
