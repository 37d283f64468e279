"""Kimi Code: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Kimi Code",
    model_families=("kimi", "moonshot"),
    runs_other_models=True,
    tested_version="2.1.0",
    home_folders=(".kimi-code",),
    location_variables=("KIMI_CODE_HOME",),
    settings_variables=("KIMI_CODE_HOME", "KIMI_MODEL_NAME", "KIMI_MODEL_MAX_CONTEXT_SIZE"),
    limit_setting="`loop_control.reserved_context_size` in Kimi Code's config.toml",
    start_command=("kimi",),
    starts_with_prompt=False,
    resume_command=("kimi", "-r"),
    npm_packages=("@moonshot-ai/kimi-code",),
    answers_subagent_hooks=False,
    stream_reports_context=False,  # no usage at all
)
