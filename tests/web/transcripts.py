"""Transcripts of Claude Code in the daemon's home, for the history."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from server.running import Running

from .story import MODEL


def write_past(
    daemon: Running, session: str, project: str, model: str = MODEL, missed: int = 0
) -> None:
    """Write a session of two calls and a compaction, more than an hour ago.

    If the cache `missed` that many tokens, a third call wrote them.
    """
    folder = daemon.home / ".claude" / "projects" / "past"
    folder.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": session, "cwd": project, "version": "2.1.325", "isSidechain": False}
    common["gitBranch"] = "feature/basket"
    lines = [
        {"type": "user", "uuid": "u0", "message": {"role": "user", "content": "go"}},
        _reply(f"m0-{session}", 120_000, model),
        {"type": "system", "uuid": "u2", "subtype": "compact_boundary", "content": "compacted",
         "compactMetadata": {"trigger": "auto", "preTokens": 160_000}},
        _reply(f"m1-{session}", 30_000, model),
    ]  # fmt: skip
    if missed:
        lines.append(_reply(f"m2-{session}", 30_040, model, missed))
    begun = time.time() - 3_700
    stamped = [{**common, **line, "timestamp": _stamp(begun + at)} for at, line in enumerate(lines)]
    text = "".join(f"{json.dumps(line)}\n" for line in stamped)
    (folder / f"{session}.jsonl").write_text(text)


def _reply(id: str, sent: int, model: str, written: int = 0) -> dict[str, object]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": sent - 10 - written,
             "cache_creation_input_tokens": written, "output_tokens": 50}  # fmt: skip
    message = {"id": id, "type": "message", "role": "assistant", "model": model, "content": "",
               "usage": usage, "stop_reason": "end_turn"}  # fmt: skip
    return {"type": "assistant", "uuid": f"u-{id}", "requestId": f"r-{id}", "message": message}


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
