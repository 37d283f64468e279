"""Claude Code: what it can do, and its environment variables.

Recorded with 2.1.139 to the version in tests/clients/versions.toml.
"""

from brimline.agents.capabilities import Capabilities, ComposerPatterns
from brimline.agents.prompt_argument import PromptArgument

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"  # where the session began; a hook's `cwd` may be elsewhere

MANAGER_VARIABLE = "CLAUDE_SESSION_MANAGER_ID"  # an orchestrator's id of the session
ENTRYPOINT_VARIABLE = "CLAUDE_CODE_ENTRYPOINT"  # how the client was started

# What a session sets for the commands that it runs. A client that we start must not inherit it.
SESSION_VARIABLES = (
    "CLAUDECODE",
    ENTRYPOINT_VARIABLE,
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    PROJECT_VARIABLE,
)

# Options of the headless client, by what follows them.
_VALUE_OPTIONS = """
--agent --agents --append-system-prompt --append-system-prompt-file --autocompact --debug-file
--effort --environment --fallback-model --input-format --json-schema --max-budget-usd
--max-turns --model -n --name --output-format --permission-mode --permission-prompts
--permission-prompt-tool --plugin-dir --plugin-url --remote-control-session-name-prefix
--session-id --setting-sources --settings --system-prompt --system-prompt-file
--system-prompt-snapshot
"""
_OPTIONAL_VALUES = """
-d --debug --from-pr --prompt-suggestions --remote-control -r --resume -w --worktree
"""
_LIST_OPTIONS = """
--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools --file
--mcp-config --tools
"""
_RESUME_OPTIONS = """
-c --continue --fork-session --from-pr -r --resume --session-id
"""
# With these the prompt is not on the command line, or the run is not in this process.
_FOREIGN_WORDS = """
--input-format --input-format=stream-json --bg --background --cloud --teleport
"""

CAPABILITIES = Capabilities(
    display_name="Claude Code",
    model_families=("claude",),
    runs_other_models=True,
    tested_version="2.1.326",
    home_folders=(".claude", ".config/claude"),
    location_variables=("CLAUDE_CONFIG_DIR",),
    limit_setting=(
        "`autoCompactWindow` in Claude Code's settings.json, or CLAUDE_CODE_AUTO_COMPACT_WINDOW in "
        "its environment"
    ),
    settings_variables=(
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        "DISABLE_AUTO_COMPACT",
        "DISABLE_COMPACT",
        "CLAUDE_CODE_DISABLE_1M_CONTEXT",
        "ANTHROPIC_MODEL",
        "CLAUDE_CONFIG_DIR",
    ),
    session_id_variables=("CLAUDE_CODE_SESSION_ID",),
    spawn_variables=("CLAUDE_CODE_SESSION_ID",),
    countdown=(  # in an attachment, or as a part of the system prompt
        r'(?:"total_tokens_reminder","text":|[\[,])"<total_tokens>([0-9]{1,12}) tokens left'
    ),
    mcp_client_names=("claude-code",),
    marker_variables=("CLAUDECODE",),
    hook_variables=(
        PROJECT_VARIABLE,
        "CLAUDE_CODE_SESSION_ID",
        ENTRYPOINT_VARIABLE,
        MANAGER_VARIABLE,
    ),
    inside_prefixes=("CLAUDECODE", "CLAUDE_CODE_"),
    user_prefixes=(
        "CLAUDE_CODE_USE_",
        "CLAUDE_CODE_AUTO_COMPACT",
        "CLAUDE_CODE_MAX_",
        "CLAUDE_CODE_DISABLE_",
    ),
    start_command=("claude",),
    resume_command=("claude", "--resume"),
    npm_packages=("@anthropic-ai/claude-code",),
    prompt_argument=PromptArgument(
        headless_options=("-p", "--print"),
        value_options=frozenset(_VALUE_OPTIONS.split()),
        optional_values=frozenset(_OPTIONAL_VALUES.split()),
        list_options=frozenset(_LIST_OPTIONS.split()),
        resume_options=frozenset(_RESUME_OPTIONS.split()),
        foreign_words=tuple(_FOREIGN_WORDS.split()),
    ),
    composer=ComposerPatterns(
        above=r".*\n─{10,}.*",
        first="❯[\N{NO-BREAK SPACE} ]",
        rest=r"(?!─{10,}).*",
        below=r"─{10,}",
        busy_above=r"^[·✢✳✶✻✽*] \w[^…\n]*…( \(.*)?$",
        busy_below=r"esc to interrupt",
        compacting=r"^\S (Compacting conversation|Running P(re|ost)Compact hooks)",
        queued=r"^  \S+( \S+)? to send now$|^❯.Press up to .*queued",
    ),
    clear_confirmed_by_hook=True,
    disable_part={
        "MCP server": "run `/mcp disable {name}` in Claude Code",
        "skill": 'set "skillOverrides": {{"{name}": "off"}} in .claude/settings.local.json',
        "agent": 'add "Agent({name})" to permissions.deny in .claude/settings.local.json',
    },
)
