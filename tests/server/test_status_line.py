"""What a client's status line shows of a session whose transcript nobody can read."""

from typing import Any

import pytest

from .running import Running

pytestmark = pytest.mark.slow

COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
UNKNOWN = "context unknown until the next reply, 200K window"


def told(sent: int | None, dollars: float = 0, session: str = "s") -> dict[str, Any]:
    """What Claude Code gives its status line; None before a call, 0 after a compaction."""
    usage = None if sent is None else dict.fromkeys(COUNTS, 0) | {"input_tokens": sent}
    context = {"context_window_size": 200_000, "current_usage": usage}
    money = {"total_cost_usd": dollars}
    return {"session_id": session, "cwd": "/", "context_window": context, "cost": money}


def test_unknown(daemon: Running) -> None:
    """No call is denied that was made: neither after a compaction nor where a price was paid."""

    def shown(input: dict[str, Any]) -> str:
        return daemon.hook(input, "statusline", NO_COLOR="1").partition(" | ")[0].strip()

    assert shown(told(None)) == "no call yet, 200K window"
    assert shown(told(0, session="first heard of after a compaction")) == UNKNOWN
    assert shown(told(90_000, 1.25)).endswith("45% 90K/200K window")
    assert shown(told(0, 1.25)) == UNKNOWN
    assert shown(told(None, 1.25)) == UNKNOWN


def test_reply_to_nothing(daemon: Running) -> None:
    """A usage that has a reply and no prompt tells nothing: it is no context of 0 %."""
    daemon.hook(told(90_000), "statusline")
    begun = told(0)
    begun["context_window"]["current_usage"]["output_tokens"] = 1
    assert daemon.hook(begun, "statusline", NO_COLOR="1").partition(" | ")[0] == UNKNOWN
