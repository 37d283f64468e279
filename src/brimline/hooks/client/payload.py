"""The parts of a hook's or status line's input that the daemon reads: a part of client.py.

While no daemon runs, only these parts go to disk: never a prompt, a tool's input or its output.
payload.c does the same in C, and a test compares the two on generated bodies.
"""

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_VALUE_BYTES = 4096
MAX_REDUCED_BYTES = 64 << 10
MAX_KEPT_DEPTH = 3

# Every field that the daemon reads, of all agents and at any depth; none of them is free text.
# tables.h has the same list for C (scripts/hook_tables.py). Gemini CLI's `llm_request` and
# `llm_response` are read too, but not spooled: they hold the conversation, and its chat file has
# the same usage. So are `rate_limits` and `prompt_cache`: the next status line has newer ones.
FIELDS = frozenset((
    "agent_id", "agent_transcript_path", "cache_creation_input_tokens",
    "cache_read_input_tokens", "context_window", "context_window_size", "cost", "current_usage",
    "cwd", "display_name", "hook_event_name", "id", "input_limit", "input_tokens",
    "is_interactive", "max_output", "model", "output_tokens", "project_dir", "session_id",
    "source", "stop_hook_active", "tool_name", "total_cost_usd", "total_input_tokens",
    "total_output_tokens", "transcript_path", "trigger", "used_percentage", "version", "workspace"
))  # fmt: skip

SPACE = " \t\n\r"
PIECE = 256


class PayloadRules:
    """The attributes that the scanner of JSON needs; Python refuses to convert long integers."""

    strict = True
    array_hook = object_hook = object_pairs_hook = None
    parse_int = parse_float = parse_constant = str


# The scanner raises them if a text is not JSON, or is nested too deeply.
INVALID = (ValueError, StopIteration, SystemError, RecursionError)


def reduce_body(body: bytes) -> bytes:
    """Return the fields that the daemon reads as a JSON object; empty if the body is none.

    Bytes outside ASCII are copied, not checked: the daemon rejects a text that is not UTF-8.
    """
    text = body.decode("latin-1")
    rules: Any = PayloadRules
    scan = _json.make_scanner(rules)  # a function: the value at a position, and its end
    try:
        reduced, end = reduce_object(text, skip_space(text, 0), scan, 1)
    except INVALID:
        return b""
    if skip_space(text, end) < len(text) or len(reduced) > MAX_REDUCED_BYTES:
        return b""
    return reduced.encode("latin-1")


def reduce_object(text: str, begin: int, scan: "Any", depth: int) -> tuple[str, int]:
    """Return the object at a position with its needed members only, and its end."""
    members, end = scan_members(text, begin, scan)
    needed: list[str] = []
    for key, value_at, value_end in members:
        first = text[value_at]
        if key not in FIELDS or first == "[":
            continue
        if first == "{":
            if depth < MAX_KEPT_DEPTH:
                needed.append(f'"{key}":{reduce_object(text, value_at, scan, depth + 1)[0]}')
        elif value_end - value_at <= MAX_VALUE_BYTES:
            needed.append(f'"{key}":{text[value_at:value_end]}')
    return "{" + ",".join(needed) + "}", end


def scan_members(text: str, at: int, scan: "Any") -> tuple[list[tuple[str, int, int]], int]:
    """Return the members of the object at a position, and its end.

    A member is its key, and start and end of its value. Raises ValueError or StopIteration if the
    object is malformed.
    """
    members: list[tuple[str, int, int]] = []
    at = skip_space(text, expect(text, at, "{"))
    while not text.startswith("}", at):
        if members:
            at = skip_space(text, expect(text, at, ","))
        key_at = expect(text, at, '"')
        key_end = _json.scanstring(text, key_at, True)[1]
        value_at = skip_space(text, expect(text, skip_space(text, key_end), ":"))
        value_end = scan(text, value_at)[1]
        members.append((text[key_at : key_end - 1], value_at, value_end))
        at = skip_space(text, value_end)
    return members, at + 1


def expect(text: str, at: int, mark: str) -> int:
    """Return the position after a mark; raises ValueError if the mark is not there."""
    if not text.startswith(mark, at):
        raise ValueError(mark)
    return at + 1


def skip_space(text: str, at: int) -> int:
    """Return the next position that is not JSON's white space."""
    while piece := text[at : at + PIECE]:
        rest = piece.lstrip(SPACE)
        at += len(piece) - len(rest)
        if rest:
            break
    return at
