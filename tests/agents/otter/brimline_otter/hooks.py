"""Otter's hooks, which have the names and the JSON of Claude Code's; they are in `hooks.json`."""

from brimline.agents.hook_adapter import HookAdapter
from brimline.agents.install_spec import InstallSpec

from .paths import root

HOOKS = HookAdapter()

INSTALL_SPEC = InstallSpec(
    agent="otter",
    user_file=lambda places: root(places) / "hooks.json",
    project_file=".otter/hooks.json",
    events=("SessionStart", "PostToolUse", "Stop", "PreCompact"),
)
