"""Claude Code: hooks without a shell, and the status line, in settings.json.

The file is plain JSON: Claude Code ignores all of it if it has a comment. `args`, which avoids a
shell, exists since 2.1.139. So does PostToolBatch, which replaces PostToolUse: its answer reaches
the same request, and the agent waits for one process per step, however many tools it used.
"""

from pathlib import Path

from brimline.agents.claude.paths import roots
from brimline.agents.hook_command import HOOK_TIMEOUT_S, Hook, HookCommand
from brimline.agents.install_spec import DisableSetting, InstallSpec
from brimline.agents.transcripts.source import Places
from brimline.files.jsonc import Dialect

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
# A line that was drawn while the daemon started or did not answer in time is drawn again.
REFRESH_INTERVAL_S = 10

COMMAND_ONLY_EVENTS = ("SessionStart",)  # events for which the client runs no HTTP hook


def _user_file(places: Places) -> Path:
    return roots(places)[0] / "settings.json"


def _hook(command: HookCommand) -> Hook:
    program, *words = command.words
    return Hook(type="command", command=program, args=words, timeout=HOOK_TIMEOUT_S)


INSTALL_SPEC = InstallSpec(
    agent="claude",
    user_file=_user_file,
    project_file=".claude/settings.json",
    local_file=".claude/settings.local.json",
    dialect=Dialect(byte_order_mark=True),
    events=EVENTS,
    hook=_hook,
    disable_setting=DisableSetting(("disableAllHooks",), off=True),
    http_events=[event for event in EVENTS if event not in COMMAND_ONLY_EVENTS],
    has_status_line=True,
    refresh_interval_s=REFRESH_INTERVAL_S,
    min_version=(2, 1, 139),
    next_step="Open sessions may need a restart.",
)
