"""Codex: what it can do, and its environment variables."""

from brimline.agents.capabilities import Capabilities, ComposerPatterns
from brimline.agents.prompt_argument import PromptArgument

# Options of the headless client, by what follows them.
_VALUE_OPTIONS = """
-a --ask-for-approval --add-dir -c --config -C --cd --color --cyber-access-program --disable
--enable --local-provider -m --model -o --output-last-message --output-schema -p --profile -s
--sandbox --thread-source
"""

CAPABILITIES = Capabilities(
    display_name="Codex",
    model_families=("codex", "gpt-", "o1", "o3", "o4"),
    runs_other_models=True,
    tested_version="0.169.0",
    home_folders=(".codex",),
    location_variables=("CODEX_HOME",),
    limit_setting="`model_auto_compact_token_limit` in Codex's config.toml",
    settings_variables=("CODEX_HOME",),
    mcp_client_names=("codex-mcp-client",),
    session_id_variables=("CODEX_SESSION_ID", "CODEX_THREAD_ID"),
    spawn_variables=("CODEX_SESSION_ID", "CODEX_THREAD_ID"),  # older versions have only the last
    inside_prefixes=("CODEX_",),
    user_prefixes=("CODEX_HOME",),
    start_command=("codex",),
    resume_command=("codex", "resume"),
    npm_packages=("@openai/codex",),
    prompt_argument=PromptArgument(
        subcommands=("exec", "e"),
        value_options=frozenset(_VALUE_OPTIONS.split()),
        list_options=frozenset(("-i", "--image")),
        resume_options=frozenset(("--all", "--last")),
        resume_words=("resume", "fork"),
        foreign_words=("review",),
    ),
    composer=ComposerPatterns(
        first=r"›.",
        rest=r"(  .*)?",
        # A blank row, then one or two rows to the end; since 0.169.0 a long path wraps.
        below=r"\n((.*\n)?.+|(  .*\S\n){2}  .*\S)\s*\Z",
        cursor_visible=True,
        busy_above=r"^\S \w.*esc to interrupt\)",
    ),
    clear_confirmed_by_hook=False,  # its SessionStart hook comes with the next prompt
    answers_subagent_hooks=False,
    stream_reports_context=False,  # totals only
)
