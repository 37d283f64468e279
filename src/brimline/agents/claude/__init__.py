"""Claude Code: what it can do, and its environment variables.

Recorded with 2.1.139 to the version in tests/clients/versions.toml.
"""

from brimline.agents.capabilities import Capabilities, ComposerPatterns

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

CAPABILITIES = Capabilities(
    display_name="Claude Code",
    model_families=("claude",),
    runs_other_models=True,
    tested_version="2.1.325",
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
)
