"""Gemini CLI's system settings, which take precedence over each user's (0.61).

They have no place for headers: the exporter reads these from its environment, to which the client
adds a file of the user.
"""

import json

from brimline.agents.managed_settings import (
    OTLP_HEADERS,
    OTLP_HEADERS_VARIABLE,
    ManagedFile,
    ManagedSettings,
)

TOKEN_FILE = "~/.gemini/.env"
NOTE = (
    "The client skips system settings that others than root can write. "
    f"{TOKEN_FILE} is ignored in a project that has its own .env: there, set the variable in the "
    "environment of the client."
)


def managed_settings(url: str) -> ManagedSettings:
    telemetry = {
        "enabled": True,
        "target": "local",
        "otlpEndpoint": url,
        "otlpProtocol": "http",
        "logPrompts": False,
    }
    files = [
        ManagedFile(
            linux="/etc/gemini-cli/settings.json",
            macos="/Library/Application Support/GeminiCli/settings.json",
            text=json.dumps({"telemetry": telemetry}, indent=2) + "\n",
        ),
        ManagedFile(
            linux=TOKEN_FILE, macos=TOKEN_FILE, text=f'{OTLP_HEADERS_VARIABLE}="{OTLP_HEADERS}"\n'
        ),
    ]
    return ManagedSettings("Gemini CLI", files, NOTE)
