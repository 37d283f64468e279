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
MAX_TOKENS = 10**8  # more than any window holds, as agents/hook_payloads.py has it

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

SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
SPACE = " \t\n\r"
PIECE = 256


class Rules:
    """The attributes that the scanner of JSON needs."""

    strict = True
    array_hook = object_hook = object_pairs_hook = None
    parse_int, parse_float, parse_constant = int, float, float


class SkippingRules(Rules):
    """For values that are only skipped: Python refuses to convert very long integers."""

    parse_int = parse_float = parse_constant = str


# The scanner raises them if a text is not JSON, or is nested too deeply.
INVALID = (ValueError, StopIteration, SystemError, RecursionError)


def scanner(rules: "Any") -> "Any":
    """Return a function that reads the JSON value at a position, and returns it and its end."""
    return _json.make_scanner(rules)


def reduce_body(body: bytes) -> bytes:
    """Return the fields that the daemon reads as a JSON object; empty if the body is none.

    Bytes outside ASCII are copied, not checked: the daemon rejects a text that is not UTF-8.
    """
    text = body.decode("latin-1")
    try:
        reduced, end = reduce_object(text, skip_space(text, 0), scanner(SkippingRules), 1)
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


# The status line while no daemon answers: no limit, no forecast, no cost and no colour.


def short_status(reduced: bytes, daemon_state: str) -> bytes:
    """Return a line with what a reduced body contains; empty if that is nothing of the context."""
    decoded: Any = scanner(Rules)(reduced.decode("latin-1"), 0)[0] if reduced else {}
    context = get(decoded, "context_window")
    if type(context) is not dict:
        return b""
    sent = read_sent(get(context, "current_usage"))
    figure = describe(sent, get(context, "context_window_size"))
    return f"ctx {figure} | {daemon_state}\n".encode()


def get(value: "Any", name: str) -> "Any":
    """Return a member of a decoded object; None if there is none, or if that is no object."""
    return value.get(name) if hasattr(value, "get") else None


def describe(sent: int | None, window: "Any") -> str:
    """Return the occupancy for people; a window smaller than what was sent is wrong."""
    if not sent:
        return "unknown"
    if not is_count(window) or window < sent:
        return f"{shorten(sent)} of an unknown window"
    tenths = (2_000 * sent + window) // (2 * window)
    return f"{tenths // 10}.{tenths % 10}% {shorten(sent)}/{shorten(window)}"


def read_sent(usage: "Any") -> int | None:
    """Return the tokens that the last call sent; None if a part is missing or impossible."""
    counts = [get(usage, name) for name in SENT]
    return sum(counts) if all(is_count(count) for count in counts) else None


def is_count(number: "Any") -> bool:
    """Return whether this is a number of tokens that a window could hold."""
    return type(number) is int and 0 <= number < MAX_TOKENS


def shorten(tokens: int) -> str:
    """Return a token count for people, as `usage.format_tokens` does."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{(tokens + 50) // 100 / 10:g}K"
    if tokens < 999_500:
        return f"{(tokens + 500) // 1_000}K"
    return f"{(tokens + 5_000) // 10_000 / 100:.2f}".rstrip("0").rstrip(".") + "M"
