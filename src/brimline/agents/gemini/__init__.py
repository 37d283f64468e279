"""Gemini CLI: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities, ComposerPatterns

CAPABILITIES = Capabilities(
    display_name="Gemini CLI",
    model_families=("gemini", "gemma"),
    tested_version="0.61.0",
    home_folders=(".gemini",),
    location_variables=("GEMINI_CLI_HOME",),
    limit_setting="`model.compressionThreshold` in Gemini CLI's settings.json",
    settings_variables=("GEMINI_CLI_HOME",),
    spawn_variables=("GEMINI_SESSION_ID",),  # for hooks; the commands of its tools get no id
    mcp_client_names=("gemini-cli-mcp-client",),
    marker_variables=("GEMINI_CLI",),
    inside_prefixes=("GEMINI_CLI",),
    user_prefixes=("GEMINI_CLI_HOME",),
    start_command=("gemini", "--prompt-interactive"),
    resume_command=("gemini", "--resume"),
    npm_packages=("@google/gemini-cli",),
    composer=ComposerPatterns(
        above=r".*\n▄{10,}",
        first=r" [*>] ",
        rest=r"(?!▄{10,}).*",
        below=r"▀{10,}",
        placeholder=r"Type your message or @path/to/file",
        busy_above=r"^ \S .*\(esc to cancel",
    ),
    answers_subagent_hooks=False,
    stream_reports_context=False,
    stream_ends_with_total=True,
)
