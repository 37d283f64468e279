"""Codex's hooks: as Claude Code's, in another order.

PostCompact comes before SessionStart(compact). Codex reports an answer to PostCompact as a failure;
the answer to SessionStart is in the first request after the compaction.
"""

from brimline.agents.hook_adapter import HookAdapter

HOOKS = HookAdapter()
