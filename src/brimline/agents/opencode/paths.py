"""Where opencode keeps its sessions."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from brimline.agents.opencode.database import sessions
from brimline.agents.opencode.json_storage import LARGEST, files, folders
from brimline.agents.opencode.records import SessionInfo
from brimline.agents.opencode.transcript import seconds
from brimline.errors import UnreadableTranscript
from brimline.events import MAIN
from brimline.regular_file import read_regular_file
from brimline.transcripts.source import MALFORMED, Places, Transcript

_info = msgspec.json.Decoder(SessionInfo)


def root(places: Places) -> Path:
    """opencode's data folder."""
    return places.folder("XDG_DATA_HOME", ".local/share") / "opencode"


def transcripts(places: Places) -> Iterator[Transcript]:
    """Every session: of the databases, then those that only the older storage has."""
    known: set[str] = set()
    for path in databases(places):
        for transcript in _in_database(path):
            known.add(_own(transcript))
            yield transcript
    for transcript in _in_folders(root(places)):
        if _own(transcript) not in known:
            yield transcript


def databases(places: Places) -> list[Path]:
    """The database that OPENCODE_DB names, else one for each channel of releases."""
    if named := places.env.get("OPENCODE_DB"):
        return [path] if (path := root(places) / named).exists() else []
    return sorted(root(places).glob("opencode*.db"))


def _in_database(path: Path) -> Iterator[Transcript]:
    """The sessions; a database that cannot be read stands for them, and its reader says why."""
    try:
        found = sessions(str(path))
    except UnreadableTranscript:
        yield Transcript(agent="opencode", path=str(path), modified=_modified(path), size=0)
        return
    for info, session, thread in _threads(found):
        yield Transcript(
            agent="opencode",
            path=str(path),
            modified=seconds(info.time.updated) or _modified(path),
            size=0,
            session=session,
            thread=thread,
            project=info.directory,
        )


def _in_folders(root: Path) -> Iterator[Transcript]:
    storages = [root / "storage", *sorted(root.glob("project/*/storage"))]
    found = {info.id: (file, info) for storage in storages for file, info in _stored(storage)}
    for info, session, thread in _threads(info for _, info in found.values()):
        file = found[info.id][0]
        yield Transcript(
            agent="opencode",
            path=str(file),
            modified=max(_modified(file), _modified(folders(file)[0])),
            size=0,
            session=session,
            thread=thread,
            project=info.directory,
        )


def _stored(storage: Path) -> Iterator[tuple[Path, SessionInfo]]:
    for folder in sorted(storage.glob("session/*")):
        if folder.name in ("message", "part"):
            continue
        for entry in files(folder):
            try:
                yield Path(entry.path), _info.decode(read_regular_file(entry.path, LARGEST))
            except (OSError, *MALFORMED):
                continue


def _threads(found: Iterable[SessionInfo]) -> Iterator[tuple[SessionInfo, str, str]]:
    """Each session with the session and the thread that it is: a child is a thread of its root."""
    infos = {info.id: info for info in found}
    for info in infos.values():
        session = _root(info, infos)
        yield info, session, MAIN if session == info.id else info.id


def _root(info: SessionInfo, infos: Mapping[str, SessionInfo]) -> str:
    passed = {info.id}
    while info.parent is not None and info.parent not in passed:
        passed.add(info.parent)
        if info.parent not in infos:
            return info.parent
        info = infos[info.parent]
    return info.id


def _own(transcript: Transcript) -> str:
    return transcript.session or "" if transcript.thread == MAIN else transcript.thread


def _modified(path: Path) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
