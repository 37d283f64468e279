"""The result of a run, and its summary line."""

import msgspec
import pytest

from brimline.run.result import IterationResult, SessionResult, summary_line


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (
            SessionResult(
                duration_ms=12_345,
                total_cost_usd=0.0526,
                num_turns=3,
                context_tokens=90_000,
                context_window=200_000,
            ),
            "Duration: 12345ms | Est. cost: $0.0526 | Turns: 3 | Context: 45% (90K/200K)",
        ),
        (
            SessionResult(duration_ms=1, total_cost_usd=1.5, num_turns=1, context_tokens=90_000),
            "Duration: 1ms | Est. cost: $1.5000 | Turns: 1 | Tokens: 90K",
        ),
        (
            SessionResult(duration_ms=1, num_turns=7, context_window=200_000),
            "Duration: 1ms | Turns: 7",
        ),
        (SessionResult(duration_ms=0), "Duration: 0ms"),
    ],
)
def test_summary_line_leaves_out_unknown_figures(result: SessionResult, line: str) -> None:
    assert summary_line(result) == line


def test_result_of_a_command_that_is_no_agent_has_a_duration_only() -> None:
    fields = msgspec.structs.asdict(SessionResult(duration_ms=5))
    assert {name: value for name, value in fields.items() if value is not None} == {
        "duration_ms": 5
    }
    assert list(fields) == [
        "duration_ms", "total_cost_usd", "num_turns", "is_error", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "context_tokens", "peak_context_tokens",
        "context_window",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "ended", "failed"),
    [(0, "itself", False), (3, "itself", True), (130, "signal", True), (0, "level", False)],
)
def test_stopped_iteration_has_not_failed(code: int, ended: str, failed: bool) -> None:
    iteration = IterationResult(
        duration_ms=1,
        iteration=1,
        hat=None,
        agent=None,
        session_id=None,
        exit_code=code,
        ended=ended,  # pyright: ignore[reportArgumentType]
        said_it=False,
        reading=None,
    )
    assert iteration.failed == failed
