"""Codex's managed requirements, which take precedence over each user's config.toml (0.166).

Codex does not replace variables in headers: the token is in the file.
"""

from brimline.agents.managed_settings import TOKEN_MARK, ManagedFile, ManagedSettings

TEXT = """\
[otel]
log_user_prompt = false

[otel.exporter.otlp-http]
endpoint = "{url}/v1/logs"
protocol = "json"
headers = {{ Authorization = "Bearer {token}" }}
"""
PLACE = "/etc/codex/requirements.toml"
NOTE = (
    "Users cannot override requirements. The same text in config.toml (~/.codex) is for one user."
)


def managed_settings(url: str) -> ManagedSettings:
    file = ManagedFile(linux=PLACE, macos=PLACE, text=TEXT.format(url=url, token=TOKEN_MARK))
    return ManagedSettings("Codex", [file], NOTE)
