"""Claude Code's managed settings: variables that users cannot override (2.1.325)."""

import json

from brimline.agents.managed_settings import (
    OTLP_HEADERS,
    OTLP_HEADERS_VARIABLE,
    ManagedFile,
    ManagedSettings,
)

NOTE = (
    "Prompts stay on the machine unless OTEL_LOG_USER_PROMPTS is set. To keep the token out of "
    "this file, name a script as otelHeadersHelper that prints the headers as JSON."
)


def managed_settings(url: str) -> ManagedSettings:
    variables = {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        OTLP_HEADERS_VARIABLE: OTLP_HEADERS,
    }
    file = ManagedFile(
        linux="/etc/claude-code/managed-settings.json",
        macos="/Library/Application Support/ClaudeCode/managed-settings.json",
        text=json.dumps({"env": variables}, indent=2) + "\n",
    )
    return ManagedSettings("Claude Code", [file], NOTE)
