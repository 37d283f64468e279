/* Written by scripts/hook_tables.py from the agents and payload.py. */

static const char *const VARIABLES[] = {
    "COLUMNS", "NO_COLOR", "TERM", "TMUX", "TMUX_PANE", "BRIMLINE_PARENT", "BRIMLINE_SESSION",
    "BRIMLINE_STATUS_LINE", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_SESSION_MANAGER_ID", "COPILOT_HOOK_DIR",
    "COPILOT_PROJECT_DIR", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "CLAUDE_CODE_DISABLE_1M_CONTEXT", "ANTHROPIC_MODEL",
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "KILO_CONFIG",
    "KILO_CONFIG_DIR", "KILO_DISABLE_AUTOCOMPACT", "KIMI_CODE_HOME", "KIMI_MODEL_NAME",
    "KIMI_MODEL_MAX_CONTEXT_SIZE", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR",
    "OPENCODE_DISABLE_AUTOCOMPACT", "PI_CODING_AGENT_DIR", "QWEN_HOME",
};

static const char *const FIELDS[] = {
    "agent_id", "agent_transcript_path", "cache_creation_input_tokens", "cache_read_input_tokens",
    "context_window", "context_window_size", "cost", "current_usage", "cwd", "display_name",
    "hook_event_name", "id", "input_limit", "input_tokens", "is_interactive", "max_output", "model",
    "output_tokens", "project_dir", "session_id", "source", "stop_hook_active", "tool_name",
    "total_cost_usd", "total_input_tokens", "total_output_tokens", "transcript_path", "trigger",
    "used_percentage", "version", "workspace",
};
