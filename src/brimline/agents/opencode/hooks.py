"""opencode's hooks, which are our own plugin's (extension.js), with the events of other clients.

The plugin reports before each request. After a compaction the first such report gets the handoff,
since the compaction is then in the database. The ends of turns and compactions are reported too,
and cannot be answered.

opencode loads plugins only after it has downloaded a package of its own, which it does once, at its
first start with a network. Without it, 1.18.34 waits a minute or more at each start with a plugin.
"""

from functools import partial
from pathlib import Path

import msgspec

from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.hook_adapter import ExtensionHooks, HookRequest
from brimline.agents.hook_command import HOOK_NAME
from brimline.agents.install_spec import InstallSpec, McpPlace, McpSpec, Scope
from brimline.agents.observations import Observation
from brimline.agents.opencode.paths import PATHS, OpencodePaths
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.window import ResolveContext, find_input_limit, find_max_output
from brimline.files.jsonc import Dialect


class OpencodeHooks(ExtensionHooks):
    """The transcript of a hook is the database, which holds all sessions."""

    def __init__(self, agent: str) -> None:
        super().__init__(unanswerable=frozenset({"PostCompact", "Stop"}))
        self._agent = agent

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        observation = super().observe(request, at, late)
        if observation is None or observation.transcript is None:
            return observation
        session, project = observation.session, observation.project
        file = Transcript(self._agent, observation.transcript, at, 0, session, project=project)
        return msgspec.structs.replace(observation, transcript=None, file=file)


CONFIG_DIALECT = Dialect(comments=True, trailing_commas=True)
PLUGIN_FILE = "plugins/brimline.js"


def install_spec(paths: OpencodePaths) -> InstallSpec:
    """Return what setup installs: the plugin of opencode, also for its forks."""

    def find_mcp_place(places: Places, scope: Scope, cwd: Path) -> McpPlace:
        file = paths.config_file(paths.user_config(places) if scope == "user" else cwd)
        return McpPlace(file, ("mcp", HOOK_NAME), CONFIG_DIALECT)

    return InstallSpec(
        agent=paths.name,
        user_file=lambda places: paths.user_config(places) / PLUGIN_FILE,
        project_file=f"{paths.project_folders[-1]}/{PLUGIN_FILE}",
        is_extension=True,
        extension_of="opencode",
        next_step="Open sessions need a restart.",
        mcp=McpSpec(
            find_mcp_place, lambda command: {"type": "local", "command": list(command.words)}
        ),
    )


def find_compaction_setting(
    paths: OpencodePaths, places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting:
    """Return the tokens kept free of a model's longest prompt, or else the model's window."""
    file = paths.config_file(Path(project) if project else paths.user_config(places))
    if find_input_limit(known) is not None:
        return CompactionSetting(
            field="input_reserve",
            key=("compaction", "reserved"),
            file=file,
            is_shared=project is not None,
            dialect=CONFIG_DIALECT,
            note=f"{paths.name} keeps these free of the longest prompt of every such model",
        )
    provider, model = known.provider or "", known.model or ""
    return CompactionSetting(
        field="windows",
        key=("provider", provider, "models", model, "limit", "context"),
        model=f"{provider}/{model}",
        file=file,
        is_shared=project is not None,
        dialect=CONFIG_DIALECT,
        # It refuses a limit without both.
        siblings={"output": find_max_output(known)},
        note=f"{paths.name} then takes {model} for a model with a smaller window",
    )


HOOKS = OpencodeHooks(PATHS.name)
INSTALL_SPEC = install_spec(PATHS)
compaction_setting = partial(find_compaction_setting, PATHS)
