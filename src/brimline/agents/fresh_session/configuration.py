"""What changes the overhead of a session, as one hash.

That is everything which puts text or tools into the prompt: settings, memory files, MCP servers,
agents, skills, commands, output styles, plugins, and the variables that steer the client.
"""

import errno
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents.claude.paths import MAX_STATE_BYTES, STATE_FILE, roots
from brimline.agents.transcripts.client_settings import read_settings
from brimline.agents.transcripts.source import Places, files_below
from brimline.files.foreign_json import ABSENT
from brimline.files.regular_file import read_regular_file

EXTENSIONS = ("rules", "agents", "skills", "commands", "output-styles")
USER_FILES = ("settings.json", "CLAUDE.md", *EXTENSIONS)
# Below `plugins`, where the client also keeps what it writes at each start.
PLUGIN_FILES = ("installed_plugins.json", "known_marketplaces.json", "cache", "marketplaces")

# In the working folder, and in each folder above it.
PROJECT_FILES = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    ".mcp.json",
    ".claude/CLAUDE.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    *(f".claude/{name}" for name in EXTENSIONS),
)

MANAGED_FOLDERS = ("/etc/claude-code", "/Library/Application Support/ClaudeCode")
MANAGED_FILES = ("managed-settings.json", "managed-settings.d", "managed-mcp.json", "CLAUDE.md")
VARIABLE_PREFIXES = ("ANTHROPIC_", "CLAUDE_", "DISABLE_", "ENABLE_", "MAX_", "MCP_", "USE_")
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|HEADERS")
TEXT_SUFFIXES = (".md", ".json")
MAX_FILE_BYTES = 1 << 20  # of a larger file only the size counts: no client puts it into a prompt


class _Project(msgspec.Struct, frozen=True, rename="camel"):
    mcp_servers: msgspec.Raw = ABSENT
    disabled_mcp_servers: msgspec.Raw = ABSENT
    enabled_mcpjson_servers: msgspec.Raw = ABSENT
    disabled_mcpjson_servers: msgspec.Raw = ABSENT
    has_trust_dialog_accepted: msgspec.Raw = ABSENT


class _ClaudeState(msgspec.Struct, frozen=True, rename="camel"):
    """The few fields of ~/.claude.json that count; the client writes others at each start."""

    mcp_servers: msgspec.Raw = ABSENT
    projects: dict[str, _Project] = msgspec.field(default_factory=dict[str, _Project])


def fingerprint(places: Places, cwd: Path) -> str:
    """Hash what changes the overhead of a session that starts in a folder."""
    digest = hashlib.sha256()
    for label, content in _parts(places, cwd):
        for part in (label.encode("utf-8", "surrogateescape"), content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()


def hash_files(paths: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(hashlib.sha256(_read_or_size(Path(path)) or b"").digest())
    return digest.hexdigest()


def _parts(places: Places, cwd: Path) -> Iterator[tuple[str, bytes]]:
    yield "variables", "\n".join(steering_variables(places.env)).encode("utf-8", "surrogateescape")
    yield "state", _read_state(places, cwd)
    for path in _configuration_paths(places, cwd):
        yield from _read_below(path)


def _configuration_paths(places: Places, cwd: Path) -> Iterator[Path]:
    root = roots(places)[0]
    yield from (root / name for name in USER_FILES)
    yield from (root / "plugins" / name for name in PLUGIN_FILES)
    slug = re.sub(r"[^a-zA-Z0-9]", "-", str(cwd))
    yield root / "projects" / slug / "memory" / "MEMORY.md"
    yield from (folder / name for folder in (cwd, *cwd.parents) for name in PROJECT_FILES)
    yield from (Path(folder, name) for folder in MANAGED_FOLDERS for name in MANAGED_FILES)


def _read_below(path: Path) -> Iterator[tuple[str, bytes]]:
    """Read a file or the texts below a folder; nothing if there is neither."""
    content = _read_or_size(path)
    if content is not None:
        yield str(path), content
        return
    paths = (entry.path for ending in TEXT_SUFFIXES for entry in files_below(str(path), ending))
    for name in sorted(paths):
        yield name, _read_or_size(Path(name)) or b""


def _read_or_size(path: Path) -> bytes | None:
    try:
        return read_regular_file(path, MAX_FILE_BYTES)
    except OSError as error:
        if error.errno != errno.EFBIG:
            return None
    with suppress(OSError):
        return str(path.stat().st_size).encode()
    return None


def steering_variables(env: Mapping[str, str]) -> list[str]:
    """Return the variables that affect the client; of a secret only that it is set."""
    return [
        f"{name}={'set' if SECRET_NAME.search(name) else value}"
        for name, value in sorted(env.items())
        if name.startswith(VARIABLE_PREFIXES) and value
    ]


def _read_state(places: Places, cwd: Path) -> bytes:
    root = roots(places)[0]
    above = root if places.env.get("CLAUDE_CONFIG_DIR") else places.home
    state = read_settings(above / STATE_FILE, _ClaudeState, MAX_STATE_BYTES) or _ClaudeState()
    project = state.projects.get(str(cwd), _Project())
    fields = (getattr(project, name) for name in project.__struct_fields__)
    return b"\0".join(map(bytes, (state.mcp_servers, *fields)))
