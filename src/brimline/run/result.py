"""What a run came to, and the line that says so."""

from typing import Literal, TypeAlias

import msgspec

from brimline.tracker import Reading
from brimline.usage import context_line

Ended: TypeAlias = Literal["itself", "level", "signal"]


class SessionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to. Unknown is None; how long it took is always known.

    The four counts are what was billed over the run, all threads together: by the client's own
    account of the run (Claude Code's and Gemini CLI's result line), else every call of its
    transcript since the run began (subagents' and compactions' too, as far as the client records
    them), else every call of its stream. `context_tokens` is what the main thread's last call sent,
    `peak_context_tokens` the most that one of its calls in this run sent, `context_window` the
    window of the last one's model: no call, no window. `total_cost_usd` is the
    client's own figure for the run, else an estimate by list prices. `num_turns` is the client's
    own count, else the number of the main thread's calls.
    """

    duration_ms: int
    total_cost_usd: float | None = None
    num_turns: int | None = None
    is_error: bool | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    context_tokens: int | None = None
    peak_context_tokens: int | None = None
    context_window: int | None = None


class Iteration(SessionResult, frozen=True, kw_only=True):
    """One run of the command in a loop: what it came to, and how it ended.

    `ended` tells by whom: the child itself, us at a level (`--stop-at`), a signal that came to us.
    `said_it`: the agent said the text after which the loop is over.
    """

    iteration: int
    hat: str | None
    agent: str | None
    session_id: str | None
    exit_code: int
    ended: Ended
    said_it: bool
    reading: Reading | None

    @property
    def failed(self) -> bool:
        """Whether the child failed by itself."""
        return self.ended != "level" and self.exit_code != 0


def summary_line(result: SessionResult) -> str:
    """The line at the end of a run; what is not known is left out of it."""
    cost, turns = result.total_cost_usd, result.num_turns
    parts = [
        f"Duration: {result.duration_ms}ms",
        "" if cost is None else f"Est. cost: ${cost:.4f}",
        "" if turns is None else f"Turns: {turns}",
        context_line(result.context_tokens, result.context_window),
    ]
    return " | ".join(part for part in parts if part)
