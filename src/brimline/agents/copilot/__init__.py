"""Copilot CLI: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Copilot CLI",
    tested_version="1.0.102",
    home_folders=(".copilot/session-state",),
    location_variables=("COPILOT_HOME",),
    settings_variables=("COPILOT_HOME",),
    session_id_variables=("COPILOT_AGENT_SESSION_ID",),
    spawn_variables=("COPILOT_AGENT_SESSION_ID",),
    mcp_client_names=("copilot-cli",),
    marker_variables=("COPILOT_CLI",),
    hook_variables=("COPILOT_HOOK_DIR", "COPILOT_PROJECT_DIR"),
    hook_marker="COPILOT_PROJECT_DIR",
    inside_prefixes=("COPILOT_AGENT_SESSION_ID", "COPILOT_CLI"),
    start_command=("copilot", "--interactive"),
    resume_command=("copilot", "--resume"),
    npm_packages=("@github/copilot",),
    answers_subagent_hooks=False,
    stream_reports_context=False,  # no usage at all
)
