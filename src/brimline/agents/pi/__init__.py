"""Pi: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities, ComposerPatterns

CAPABILITIES = Capabilities(
    display_name="Pi",
    tested_version="0.87.1",
    home_folders=(".pi",),
    location_variables=("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"),
    limit_setting="`compaction.reserveTokens` in Pi's settings.json",
    settings_variables=("PI_CODING_AGENT_DIR",),
    session_id_variables=("PI_SESSION_ID",),
    spawn_variables=("PI_SESSION_ID",),
    marker_variables=("PI_CODING_AGENT",),
    inside_prefixes=("PI_CODING_AGENT", "PI_SESSION_ID"),
    user_prefixes=("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"),
    start_command=("pi",),
    resume_command=("pi", "--session"),
    npm_packages=("@mariozechner/pi-coding-agent", "@earendil-works/pi-coding-agent"),
    composer=ComposerPatterns(
        above=r".*\n─{2,}.*─",
        first=r"",
        below=r"─{2,}.*─",
        busy_above=r"^──+ [^─↑\s].*─$",
    ),
)
