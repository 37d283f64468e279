"""Kilo CLI, a fork of opencode: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Kilo CLI",
    tested_version="7.7.9",
    home_folders=(".local/share/kilo",),
    location_variables=("XDG_DATA_HOME", "KILO_DB"),
    limit_setting="`limit.input` of the model in kilo.json",
    settings_variables=("KILO_CONFIG", "KILO_CONFIG_DIR", "KILO_DISABLE_AUTOCOMPACT"),
    session_id_variables=("KILO_SESSION_ID",),
    spawn_variables=("KILO_SESSION_ID",),
    mcp_client_names=("kilo",),
    marker_variables=("KILO_PID",),
    inside_prefixes=("KILO", "OPENCODE"),
    user_prefixes=("KILO_CONFIG", "KILO_DISABLE_"),
    start_command=("kilo", "--prompt"),
    resume_command=("kilo", "--session"),
    npm_packages=("@kilocode/cli",),
    answers_subagent_hooks=False,
    stream_reports_context=False,  # it names no model
    unrecorded_content={
        "memory files": "none found; others are a part of the system prompt, which is not recorded"
    },
)
