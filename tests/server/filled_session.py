"""A transcript of Claude Code with tool results, a repeated read and a cache miss."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

MODEL = "claude-sonnet-4-5"
FIRST_SENT = 20_000  # system prompt and tools, for the most part
RESULT = "def main() -> None: ...\n" * 400
RESULT_TOKENS, OUTPUT_TOKENS = 3_000, 60


def write_filled_session(
    home: Path, session: str, calls: int = 6, packed_after: int = 0, result: str = RESULT
) -> Path:
    """Write a session whose calls read two files in turn; the call before the last is a miss.

    It is compacted after `packed_after` calls, unless that is 0.
    """
    records = [_user(f"Please look at the sources of {session}")]
    sent = FIRST_SENT
    for number in range(calls):
        if packed_after and number == packed_after:
            records += _compaction(sent)
            sent = FIRST_SENT + 2_000
        file = f"/project/src/module_{number % 2}.py"
        records.append(_call(number, sent, file, is_miss=number == calls - 2))
        records.append(_result(number, result))
        sent += OUTPUT_TOKENS + RESULT_TOKENS
    path = home / ".claude" / "projects" / "-project" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = time.time() - 60 * len(records)
    path.write_text(
        "".join(_line(each, session, begun + 60 * at) for at, each in enumerate(records))
    )
    return path


def _line(record: Json, session: str, at: float) -> str:
    stamp = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    common = {"sessionId": session, "cwd": "/project", "version": "2.1.325", "isSidechain": False}
    return json.dumps({**common, **record, "timestamp": stamp}) + "\n"


def _user(content: Any) -> Json:
    return {"type": "user", "uuid": "u", "message": {"role": "user", "content": content}}


def _call(number: int, sent: int, file: str, is_miss: bool) -> Json:
    cached = 0 if is_miss or not number else sent - RESULT_TOKENS
    usage = {"input_tokens": 10, "cache_read_input_tokens": cached,
             "cache_creation_input_tokens": sent - cached - 10,
             "output_tokens": OUTPUT_TOKENS}  # fmt: skip
    content = [
        {"type": "text", "text": f"I read the file of step {number}."},
        {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": file}},
    ]
    message = {"id": f"m{number}", "type": "message", "role": "assistant", "model": MODEL,
               "content": content, "usage": usage, "stop_reason": "tool_use"}  # fmt: skip
    return {"type": "assistant", "uuid": f"a{number}", "requestId": f"r{number}",
            "message": message}  # fmt: skip


def _result(number: int, result: str) -> Json:
    text = result + f"# {number % 2}"
    return _user([{"type": "tool_result", "tool_use_id": f"t{number}", "content": text}])


def _compaction(sent: int) -> list[Json]:
    boundary = {"type": "system", "uuid": "c", "subtype": "compact_boundary", "content": "",
                "compactMetadata": {"trigger": "auto", "preTokens": sent}}  # fmt: skip
    summary = {**_user("What was done so far. " * 200), "isCompactSummary": True}
    return [boundary, summary]
