"""What each context window of a run took, and the totals of an iteration with several windows."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from brimline.run.result import IterationResult

HandoffOrigin: TypeAlias = Literal["agent", "draft"]
FigureT = TypeVar("FigureT", int, float)


class WindowResult(msgspec.Struct, frozen=True, kw_only=True):
    """One context window: a session that was continued from the handoff of the one before.

    `read_again_tokens` is what its first call sent, in a window that continues another: system
    prompt, tools and handoff. `peak_context_tokens` is the most that a call sent, `handoff` what
    the next window continues from, None of the last. Unknown figures are None.
    """

    window: int
    session_id: str | None
    calls: int
    duration_ms: int
    cost_usd: float | None = None
    peak_context_tokens: int | None = None
    context_window: int | None = None
    read_again_tokens: int | None = None
    cache_write_tokens: int | None = None
    compactions: int = 0
    handoff: HandoffOrigin | None = None


class RotatedResult(IterationResult, frozen=True, kw_only=True):
    """The result of an iteration with `windows`; what was billed is the sum of theirs."""

    windows: tuple[WindowResult, ...] = ()


def make_window(
    result: IterationResult, number: int, calls: int, first: int | None, compactions: int
) -> WindowResult:
    """Return the figures of a window; `first` is what its first call sent."""
    return WindowResult(
        window=number,
        session_id=result.session_id,
        calls=calls,
        duration_ms=result.duration_ms,
        cost_usd=result.total_cost_usd,
        peak_context_tokens=result.peak_context_tokens,
        context_window=result.context_window,
        read_again_tokens=first if number > 1 else None,
        cache_write_tokens=result.cache_write_tokens,
        compactions=compactions,
    )


def merge_results(
    results: Sequence[IterationResult], windows: Sequence[WindowResult]
) -> RotatedResult:
    """Return the last result with the sums of all, and with the windows.

    `windows` may have some of a run that was interrupted; the sums have none of those.
    """
    last = results[-1]
    peaks = [each.peak_context_tokens for each in results if each.peak_context_tokens is not None]
    merged = msgspec.structs.replace(
        last,
        duration_ms=sum(each.duration_ms for each in results),
        total_cost_usd=add_known([each.total_cost_usd for each in results]),
        num_turns=add_known([each.num_turns for each in results]),
        input_tokens=add_known([each.input_tokens for each in results]),
        output_tokens=add_known([each.output_tokens for each in results]),
        cache_read_tokens=add_known([each.cache_read_tokens for each in results]),
        cache_write_tokens=add_known([each.cache_write_tokens for each in results]),
        peak_context_tokens=max(peaks, default=None),
    )
    return RotatedResult(**msgspec.structs.asdict(merged), windows=tuple(windows))


def add_known(figures: Sequence[FigureT | None]) -> FigureT | None:
    """Return the sum; None if there is none, or if one is unknown."""
    known = [each for each in figures if each is not None]
    if not known or len(known) < len(figures):
        return None
    return sum(known[1:], known[0])
