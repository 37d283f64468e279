"""Claude Code: hooks without a shell, and the status line, in settings.json.

It reads plain JSON: with a comment in it the whole file is ignored. `args`, which spares the shell,
is known from 2.1.139 on. So is PostToolBatch, which makes PostToolUse needless: its answer reaches
the same request, and an agent waits for one process a step, however many tools it used.
"""

from pathlib import Path

from brimline.agents.claude.paths import roots
from brimline.jsonc import Dialect
from brimline.setup.command import SECONDS, Hook, HookCommand
from brimline.setup.recipe import Recipe, Switch
from brimline.transcripts.source import Places

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)
BY_COMMAND = ("SessionStart",)
"""Where a hook that posts is not run."""


def _file(places: Places) -> Path:
    return roots(places)[0] / "settings.json"


def _hook(command: HookCommand) -> Hook:
    program, *words = command.words
    return Hook(type="command", command=program, args=words, timeout=SECONDS)


RECIPE = Recipe(
    agent="claude",
    user=_file,
    project=".claude/settings.json",
    local=".claude/settings.local.json",
    dialect=Dialect(byte_order_mark=True),
    events=EVENTS,
    hook=_hook,
    switch=Switch(("disableAllHooks",), off=True),
    over_http=[event for event in EVENTS if event not in BY_COMMAND],
    has_status_line=True,
    oldest=(2, 1, 139),
    then="Sessions that are open may have to be started anew.",
)
