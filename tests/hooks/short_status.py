"""The status line that the compiled client shows without a daemon, in Python.

A test compares the two on generated bodies.
"""

import json
from typing import Any

MAX_TOKENS = 10**8  # more than any window holds, as agents/hook_adapter.py has it
SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def short_status(reduced: bytes, daemon_state: str) -> bytes:
    """Return a line with what a reduced body contains; empty if that is nothing of the context."""
    decoded: Any = json.loads(reduced.decode("latin-1")) if reduced else {}
    context = get(decoded, "context_window")
    if type(context) is not dict:
        return b""
    sent = read_sent(get(context, "current_usage"))
    figure = describe(sent, get(context, "context_window_size"))
    return f"ctx {figure} | {daemon_state}\n".encode()


def get(value: Any, name: str) -> Any:
    """Return a member of a decoded object; None if there is none, or if that is no object."""
    return value.get(name) if hasattr(value, "get") else None


def describe(sent: int | None, window: Any) -> str:
    """Return the occupancy for people; a window smaller than what was sent is wrong."""
    if not sent:
        return "unknown"
    if not is_count(window) or window < sent:
        return f"{shorten(sent)} of an unknown window"
    tenths = (2_000 * sent + window) // (2 * window)
    return f"{tenths // 10}.{tenths % 10}% {shorten(sent)}/{shorten(window)}"


def read_sent(usage: Any) -> int | None:
    """Return the tokens that the last call sent; None if a part is missing or impossible."""
    counts = [get(usage, name) for name in SENT]
    return sum(counts) if all(is_count(count) for count in counts) else None


def is_count(number: Any) -> bool:
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
