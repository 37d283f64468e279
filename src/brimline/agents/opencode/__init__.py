"""opencode: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities, ComposerPatterns

CAPABILITIES = Capabilities(
    display_name="opencode",
    tested_version="1.18.34",
    home_folders=(".local/share/opencode",),
    location_variables=("XDG_DATA_HOME", "OPENCODE_DB"),
    limit_setting="`limit.input` of the model in opencode.json",
    settings_variables=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_DISABLE_AUTOCOMPACT"),
    session_id_variables=("OPENCODE_SESSION_ID",),
    spawn_variables=("OPENCODE_SESSION_ID",),
    mcp_client_names=("opencode",),
    marker_variables=("OPENCODE",),
    inside_prefixes=("OPENCODE",),
    user_prefixes=("OPENCODE_CONFIG", "OPENCODE_DISABLE_"),
    start_command=("opencode", "--prompt"),
    resume_command=("opencode", "--session"),
    npm_packages=("opencode-ai",),
    composer=ComposerPatterns(
        above=r"(?! *┃).*\n *┃",
        first=r" *┃  ",
        rest=r" *┃.*",
        below=r" *┃\n *┃  \S.* · \S.*\n *╹▀{10,}",  # a blank row, agent and model, the edge
        placeholder=r"Ask anything(\.\.\.|…).*",
        busy_below=r"esc interrupt",
    ),
    answers_subagent_hooks=False,
    stream_reports_context=False,  # it names no model
    unrecorded_content={
        "memory files": "none found; others are a part of the system prompt, which is not recorded"
    },
)
