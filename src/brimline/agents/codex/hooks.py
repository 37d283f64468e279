"""Codex's hooks: as Claude Code's, in another order.

PostCompact comes before SessionStart(compact). Codex reports an answer to PostCompact as a failure;
the answer to SessionStart is in the first request after the compaction.

hooks.json is plain JSON and holds hooks and nothing else; commands are run by a shell. Codex runs a
hook only after the user has trusted it, and asks again when it has changed.
"""

from pathlib import Path

from brimline.agents.codex.paths import home
from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.hook_adapter import HookAdapter
from brimline.agents.hook_command import HOOK_NAME
from brimline.agents.install_spec import InstallSpec, McpPlace, McpSpec, Scope
from brimline.agents.transcripts.source import Places
from brimline.context.window import ResolveContext

HOOKS = HookAdapter()


def _mcp_place(places: Places, scope: Scope, cwd: Path) -> McpPlace:
    folder = home(places) if scope == "user" else cwd / ".codex"
    return McpPlace(folder / "config.toml", ("mcp_servers", HOOK_NAME), dialect=None)


INSTALL_SPEC = InstallSpec(
    agent="codex",
    user_file=lambda places: home(places) / "hooks.json",
    project_file=".codex/hooks.json",
    next_step="Codex runs hooks once you trust them: start codex, type /hooks, and trust them.",
    mcp=McpSpec(_mcp_place),
)


def compaction_setting(
    places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting:
    """Its token limit, of every model: 90 % of the raw window is the most that it takes."""
    return CompactionSetting(
        field="limit",
        key=("model_auto_compact_token_limit",),
        file=Path(project, ".codex", "config.toml") if project else home(places) / "config.toml",
        is_shared=project is not None,
        dialect=None,
        note="for every model",
    )
