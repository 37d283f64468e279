"""A session of Claude Code that has MCP servers, a skill and an agent."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

SERVERS = ("serena", "tides")
Json = dict[str, Any]


def carried_session(session: str, at: float, project: str, calls: Sequence[str] = ()) -> bytes:
    """Return the lines of a session of two calls, of which the first calls these tools."""
    head = {"sessionId": session, "cwd": project, "version": "2.1.325", "isSidechain": False}
    head |= {"parentUuid": None, "userType": "external"}
    lines = [
        json.dumps({**head, **record, "uuid": f"u{number}", "timestamp": _stamp(at + 10 * number)})
        for number, record in enumerate(_records(session, calls))
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _records(session: str, calls: Sequence[str]) -> Iterator[Json]:
    names = [f"mcp__{server}__{tool}" for server in SERVERS for tool in ("high", "low")]
    tools = [
        {"name": each, "description": "", "schema": {"name": each, "description": "A tool. " * 300}}
        for each in names
    ]
    attached: list[Json] = [
        {"type": "skill_listing", "names": ["knots"], "content": "- knots: " + "Ties. " * 200},
        {"type": "agent_listing_delta", "addedTypes": ["pilot"], "addedLines": ["- pilot: x"]},
        {"type": "prompt_snapshot", "systemPrompt": ["Be kind. " * 300], "tools": tools},
    ]
    uses: list[Json] = [
        {"type": "tool_use", "id": f"t{each}", "name": each, "input": {}} for each in calls
    ]
    yield {"type": "user", "message": {"role": "user", "content": "x"}}
    for each in attached:
        yield {"type": "attachment", "attachment": each}
    yield _reply(f"{session}a", 20_000, uses)
    yield _reply(f"{session}b", 21_000, [])


def _reply(id: str, sent: int, content: Sequence[Json]) -> Json:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 597,
        "cache_read_input_tokens": sent - 600,
        "output_tokens": 10,
    }
    message = {"model": "claude-sonnet-4-5", "id": id, "role": "assistant", "content": content}
    return {"type": "assistant", "message": {**message, "usage": usage}}


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
