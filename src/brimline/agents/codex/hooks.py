"""Codex's hooks: as Claude Code's, in another order.

PostCompact comes before SessionStart(compact), and an answer to it is called a failure; the other
one's is in the first request after the compaction.
"""

from brimline.agents.hook_adapter import EVENTS, STARTS, StandardHooks

HOOKS = StandardHooks(EVENTS, STARTS)
