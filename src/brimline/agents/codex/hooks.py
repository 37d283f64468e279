"""Codex's hooks: as Claude Code's, in another order.

PostCompact comes before SessionStart(compact). Codex reports an answer to PostCompact as a failure;
the answer to SessionStart is in the first request after the compaction.

hooks.json is plain JSON and holds hooks and nothing else; commands are run by a shell. Codex runs a
hook only after the user has trusted it, and asks again when it has changed.
"""

from brimline.agents.codex.paths import home
from brimline.agents.hook_adapter import HookAdapter
from brimline.agents.install_spec import InstallSpec

HOOKS = HookAdapter()

INSTALL_SPEC = InstallSpec(
    agent="codex",
    user_file=lambda places: home(places) / "hooks.json",
    project_file=".codex/hooks.json",
    next_step="Codex runs hooks once you trust them: start codex, type /hooks, and trust them.",
)
