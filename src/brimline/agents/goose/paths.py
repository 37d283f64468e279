"""Where Goose keeps its sessions and its settings."""

import re
from collections.abc import Iterator
from pathlib import Path

from brimline.agents.goose.database import read_sessions
from brimline.agents.transcripts.database import root_session
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import MAIN
from brimline.context.window import ClientSettings
from brimline.errors import UnreadableTranscript
from brimline.files.regular_file import read_regular_file

WINDOW, THRESHOLD = "GOOSE_CONTEXT_LIMIT", "GOOSE_AUTO_COMPACT_THRESHOLD"

# The values that are read stand at the top level of the YAML, as numbers.
_value = re.compile(rf"^({WINDOW}|{THRESHOLD})\s*:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


def _folder(places: Places, name: str, variable: str, default: str) -> Path:
    """Goose's folder of this name if its root is set, else the one of the user's system."""
    if root := places.env.get("GOOSE_PATH_ROOT"):
        return Path(root) / name
    return places.folder(variable, default) / "goose"


def folders(places: Places) -> list[Path]:
    return [_folder(places, "data", "XDG_DATA_HOME", ".local/share") / "sessions"]


def transcripts(places: Places) -> Iterator[Transcript]:
    """List every session; an unreadable database is listed itself: its reader reports why."""
    for folder in folders(places):
        path = folder / "sessions.db"
        if not path.is_file():
            continue
        written = path.stat().st_mtime
        try:
            sessions = read_sessions(str(path))
        except UnreadableTranscript:
            yield Transcript("goose", str(path), written, 0)
            continue
        parents = {one.id: one.parent for one in sessions}
        for one in sessions:
            session, modified = root_session(one.id, parents), one.updated or written
            thread = MAIN if session == one.id else one.id
            yield Transcript("goose", str(path), modified, 0, session, thread, one.folder, one.task)


def settings(places: Places, project: str | None = None) -> ClientSettings:
    """The window of every model, and the share of it at which Goose compacts.

    Variables go before the file; a share of 0, or of 1 and more, turns compaction off.
    """
    values = _file_values(_folder(places, "config", "XDG_CONFIG_HOME", ".config") / "config.yaml")
    values |= {name: value for name in (WINDOW, THRESHOLD) if (value := places.env.get(name))}
    window, share = _number(values.get(WINDOW)), _number(values.get(THRESHOLD))
    is_on = share is None or 0 < share < 1
    return ClientSettings(
        auto_compact=None if is_on else False,
        fraction=share if is_on else None,
        windows={"*": int(window)} if window and window >= 1 else {},
        place="Goose's settings",
    )


def _file_values(file: Path) -> dict[str, str]:
    try:
        text = read_regular_file(file).decode("utf-8", "replace")
    except OSError:
        return {}
    return {found[1]: found[2] for found in _value.finditer(text)}


def _number(text: str | None) -> float | None:
    """The number; None if it is none, or not finite."""
    is_plain = text is not None and re.fullmatch(r"-?\d{1,12}(\.\d*)?", text)
    return float(text) if text is not None and is_plain else None
