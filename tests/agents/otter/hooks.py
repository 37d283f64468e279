"""Otter names its hooks as Claude Code does."""

from brimline.agents.hook_adapter import HookAdapter

HOOKS = HookAdapter()
