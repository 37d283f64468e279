"""Goose: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities

CAPABILITIES = Capabilities(
    display_name="Goose",
    tested_version="1.52.0",
    home_folders=(".local/share/goose",),
    location_variables=("GOOSE_PATH_ROOT", "XDG_DATA_HOME"),
    limit_setting="`GOOSE_AUTO_COMPACT_THRESHOLD`",
    session_id_variables=("AGENT_SESSION_ID",),
    inside_prefixes=("AGENT_SESSION_ID",),
    start_command=("goose", "run", "--interactive", "--text"),
    resume_command=("goose", "session", "--resume", "--session-id"),
    npm_packages=("@aaif/goose",),
    answers_subagent_hooks=False,
    session_ids_are_unique=False,  # the day and a number
    stream_reports_context=False,  # totals of the whole session only
)
