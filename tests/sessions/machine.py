"""A home folder with generated transcripts of Claude Code."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from brimline.agents.transcripts.source import Places, Transcript
from brimline.sessions.files import find_transcripts

Json = dict[str, Any]
NOON = 1_794_657_600  # 2026-11-14, 12:00 UTC


def packed(record: Json) -> bytes:
    """A record as a line."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def clock(second: int) -> str:
    """The time this many seconds after noon, possibly on a later day."""
    day, second = divmod(second + 43_200, 86_400)
    return f"2026-11-{14 + day:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


def record(kind: str, second: int = 0, uuid: str = "u", **fields: Any) -> Json:
    """A record of Claude Code in its field order."""
    head = {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/project",
        "userType": "external",
        "sessionId": "s1",
        "version": "2.1.325",
    }
    return {**head, **fields, "type": kind, "uuid": uuid, "timestamp": clock(second)}


def call(
    id: str,
    sent: int = 20_000,
    second: int = 0,
    output: int = 10,
    model: str | None = "claude-sonnet-4-5",
    **fields: Any,
) -> bytes:
    """A call whose prompt came from the cache except for 600 tokens."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 597,
        "cache_read_input_tokens": sent - 600,
        "output_tokens": output,
    }
    message: Json = {"model": model, "id": id, "role": "assistant", "content": [], "usage": usage}
    fields = {"uuid": id, "message": message, **fields}
    return packed(record("assistant", second, **fields))


def user_record(text: str = "x", second: int = 0, **fields: Any) -> bytes:
    return packed(record("user", second, message={"role": "user", "content": text}, **fields))


def compaction(second: int = 0, held: int = 167_000, **fields: Any) -> bytes:
    """A compaction: its boundary record and its summary record."""
    metadata = {"trigger": "auto", "preTokens": held}
    boundary = {"subtype": "compact_boundary", "compactMetadata": metadata}
    message = {"role": "user", "content": "This session is being continued."}
    return packed(record("system", second, **boundary, **fields)) + packed(
        record("user", second, message=message, isCompactSummary=True, **fields)
    )


def subagent_fields(agent: str) -> Json:
    """The fields of every record of a subagent."""
    return {"isSidechain": True, "agentId": agent}


class Machine:
    """A home, its cache folder, and Claude Code's files in it."""

    def __init__(self, root: Path) -> None:
        self.home, self.cache = root / "home", root / "cache"
        self.projects = self.home / ".claude" / "projects"
        self.projects.mkdir(parents=True)
        self.places = Places(self.home, {})

    def session(self, name: str, *lines: bytes, folder: str = "-project") -> Path:
        return self._write(self.projects / folder / f"{name}.jsonl", lines)

    def subagent(self, session: str, agent: str, *lines: bytes, folder: str = "-project") -> Path:
        """Write a subagent's transcript where newer clients put it."""
        path = self.projects / folder / session / "subagents" / f"agent-{agent}.jsonl"
        return self._write(path, lines)

    def older_subagent(self, agent: str, *lines: bytes, folder: str = "-project") -> Path:
        """Write a subagent's transcript where older clients put it: beside the sessions."""
        return self._write(self.projects / folder / f"agent-{agent}.jsonl", lines)

    def transcripts(self) -> list[Transcript]:
        """All transcripts in the order of their paths."""
        return sorted(find_transcripts(self.places), key=lambda transcript: transcript.path)

    def _write(self, path: Path, lines: Iterable[bytes]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        os.utime(path, (NOON, NOON))
        return path


def overwrite_head(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes in place: the file keeps its id, size, end and time."""
    assert len(old) == len(new)
    data = path.read_bytes()
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(data.index(old))
        file.write(new)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
