"""The result of a run, and its summary line."""

from typing import Literal, TypeAlias

import msgspec

from brimline.context.tracker import Reading
from brimline.context.usage import context_line

EndReason: TypeAlias = Literal["itself", "level", "signal"]


class SessionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run. Unknown figures are None; the duration is always known.

    The four counts are what was billed over the run in all threads: as the client reports it (in
    the result line of Claude Code and Gemini CLI), else the sum of all calls in its transcript
    since the run started (with subagents and compactions, if the client records them), else the sum
    of all calls in its stream. `context_tokens` is what the main thread's last call sent,
    `peak_context_tokens` the most that one of its calls in this run sent, `context_window` the
    window of the last call's model (None without a call). `total_cost_usd` is the client's own
    figure for the run, else an estimate by list prices. `num_turns` is the client's own count, else
    the number of the main thread's calls.
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


class IterationResult(SessionResult, frozen=True, kw_only=True):
    """The result of one iteration of a loop.

    `ended` is why it ended: by itself, at a level (`--stop-at`), or by a signal sent to us.
    `said_it` is true if the agent said the text that ends the loop (`--until`).
    """

    iteration: int
    hat: str | None
    agent: str | None
    session_id: str | None
    exit_code: int
    ended: EndReason
    said_it: bool
    reading: Reading | None

    @property
    def failed(self) -> bool:
        """Whether the child failed, and was not stopped by us."""
        return self.ended != "level" and self.exit_code != 0


def summary_line(result: SessionResult) -> str:
    """The line at the end of a run; unknown figures are left out."""
    cost, turns = result.total_cost_usd, result.num_turns
    parts = [
        f"Duration: {result.duration_ms}ms",
        "" if cost is None else f"Est. cost: ${cost:.4f}",
        "" if turns is None else f"Turns: {turns}",
        context_line(result.context_tokens, result.context_window),
    ]
    return " | ".join(part for part in parts if part)
