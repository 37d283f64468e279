"""The status line of a session whose transcript cannot be read."""

from typing import Any

from .running import Running

COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
UNKNOWN = "context unknown until the next reply, 200K window"


def status_input(sent: int | None, dollars: float = 0, session: str = "s") -> dict[str, Any]:
    """Claude Code's input; `sent` is None before a call, 0 after a compaction."""
    usage = None if sent is None else dict.fromkeys(COUNTS, 0) | {"input_tokens": sent}
    context = {"context_window_size": 200_000, "current_usage": usage}
    money = {"total_cost_usd": dollars}
    return {"session_id": session, "cwd": "/", "context_window": context, "cost": money}


def test_unknown_context_after_a_call_is_not_shown_as_no_call(shared_daemon: Running) -> None:
    def shown(input: dict[str, Any]) -> str:
        return shared_daemon.hook(input, "statusline", NO_COLOR="1").partition(" | ")[0].strip()

    assert shown(status_input(None)) == "no call yet, 200K window"
    assert shown(status_input(0, session="first seen after a compaction")) == UNKNOWN
    assert shown(status_input(90_000, 1.25)).endswith("45.0% 90K/200K window")
    assert shown(status_input(0, 1.25)) == UNKNOWN
    assert shown(status_input(None, 1.25)) == UNKNOWN


def test_usage_with_output_but_no_prompt_is_unknown_not_zero(shared_daemon: Running) -> None:
    shared_daemon.hook(status_input(90_000, session="begun"), "statusline")
    begun = status_input(0, session="begun")
    begun["context_window"]["current_usage"]["output_tokens"] = 1
    assert shared_daemon.hook(begun, "statusline", NO_COLOR="1").partition(" | ")[0] == UNKNOWN
