"""Copilot CLI's variables (1.0.102); its managed settings have headers only for the editor."""

from brimline.agents.managed_settings import (
    OTLP_HEADERS,
    OTLP_HEADERS_VARIABLE,
    ManagedFile,
    ManagedSettings,
)

NOTE = (
    "Every program with an OpenTelemetry SDK reads the OTEL_ variables: on machines that run such "
    "programs, set them for Copilot alone, in a script that starts it."
)


def managed_settings(url: str) -> ManagedSettings:
    variables = {
        "COPILOT_OTEL_ENABLED": "true",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        OTLP_HEADERS_VARIABLE: OTLP_HEADERS,
    }
    file = ManagedFile(
        linux="/etc/profile.d/copilot-telemetry.sh",
        macos="/etc/zprofile",
        text="".join(f'export {name}="{value}"\n' for name, value in variables.items()),
    )
    return ManagedSettings("Copilot", [file], NOTE)
