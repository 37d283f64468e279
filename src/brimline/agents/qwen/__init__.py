"""Qwen Code: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Qwen Code",
    model_families=("qwen",),
    runs_other_models=True,
    tested_version="0.24.4",
    home_folders=(".qwen",),
    location_variables=("QWEN_HOME", "QWEN_RUNTIME_DIR"),
    limit_setting="`context.autoCompactThreshold` in Qwen Code's settings.json",
    settings_variables=("QWEN_HOME",),
    session_id_variables=("QWEN_CODE_SESSION_ID",),
    spawn_variables=("QWEN_CODE_SESSION_ID",),
    mcp_client_names=("qwen-cli-mcp-client-brimline",),
    marker_variables=("QWEN_CODE",),
    inside_prefixes=("QWEN_CODE",),
    user_prefixes=("QWEN_CODE_SYSTEM_", "QWEN_CODE_MAX_", "QWEN_CODE_DISABLE_"),
    start_command=("qwen", "--prompt-interactive"),
    resume_command=("qwen", "--resume"),
    npm_packages=("@qwen-code/qwen-code",),
    stream_reports_context=False,  # it has no calls of background subagents and of compactions
    unrecorded_content={
        "memory files": "none found; others are a part of the prompt, which is not recorded"
    },
)
