"""Last and peak context of a loop."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.run.ralph import EventRow, HatStats, IterationFigures, loop_stats

HATS = st.sampled_from([None, "planner", "builder"])


def row(
    hat: str | None, tokens: int | None, peak: int | None = None, window: int | None = 200
) -> EventRow:
    figures = IterationFigures(
        context_tokens=tokens, peak_context_tokens=peak, context_window=window
    )
    return EventRow(ts="t", topic="iteration.summary", hat=hat, payload=figures)


def test_last_and_peak_context_by_hat_and_overall() -> None:
    loop = loop_stats(
        [row("planner", 50), row("builder", 100, 150), row("builder", 20), row("planner", 60, 61)]
    )
    assert loop.hats == [
        HatStats("planner", 2, 60, 200, 30.0, 61, 200, 30.5),
        HatStats("builder", 2, 20, 200, 10.0, 150, 200, 75.0),
    ]
    assert loop.overall == HatStats(None, 4, 60, 200, 30.0, 150, 200, 75.0)


def test_iteration_without_figures_is_neither_last_nor_peak() -> None:
    loop = loop_stats([row("a", 50), row("a", None), row("b", None)])
    assert loop.hats == [
        HatStats("a", 2, 50, 200, 25.0, 50, 200, 25.0),
        HatStats("b", 1, None, None, None, None, None, None),
    ]
    assert loop.overall.iterations == 3


def test_percent_is_unknown_without_window() -> None:
    assert loop_stats([row(None, 50, window=None)]).overall == HatStats(
        None, 1, 50, None, None, 50, None, None
    )


def test_no_rows_give_empty_stats() -> None:
    assert loop_stats([]).hats == []
    assert loop_stats([]).overall.iterations == 0


@given(st.lists(st.tuples(HATS, st.none() | st.integers(1, 300)), max_size=12))
def test_hats_add_up_to_overall(generated: list[tuple[str | None, int | None]]) -> None:
    loop = loop_stats([row(hat, tokens) for hat, tokens in generated])
    assert sum(hat.iterations for hat in loop.hats) == loop.overall.iterations == len(generated)
    peaks = [hat.peak_context_tokens for hat in loop.hats if hat.peak_context_tokens]
    assert loop.overall.peak_context_tokens == max(peaks, default=None)
