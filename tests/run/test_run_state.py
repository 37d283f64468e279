"""The figures of a run equal the bill, for every agent and recorded scene."""

from pathlib import Path

import msgspec
import pytest

from brimline.agents import agent_names, get_agent, source
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.context.prices import compute_cost
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.context.window import Overrides
from brimline.run.result import SessionResult
from brimline.run.run_state import RunState

from .homes import billed, home_of, job_of, total, usage_of
from .lines import FIXTURES, WINDOW_TOKENS, call, init, recorded, result

SCENES = [
    (folder.parent.name, folder.name)
    for folder in sorted(FIXTURES.glob("*/*"))
    if not (folder / "stream-2.jsonl").exists()
]
UNRECORDED = ("cline", "auto-compact")  # the call of its summary is in no file
RESUMED = [("claude", "resume"), ("codex", "resume"), ("pi", "continue")]


def run(
    agent: str, scene: str, scratch: Path, number: int = 1, began: float = 0.0, **job: object
) -> RunState:
    """A recorded run, replayed."""
    home = home_of(agent, scene, scratch)
    options = msgspec.structs.replace(job_of(agent, home), **job)
    track = RunState(options, began)
    track.stream.feed(recorded(agent, scene, number))
    track.close()
    return track


def tokens(session_result: SessionResult) -> tuple[int | None, ...]:
    """The four token counts of a result."""
    return (
        session_result.input_tokens,
        session_result.cache_read_tokens,
        session_result.cache_write_tokens,
        session_result.output_tokens,
    )


def counts(usage: Usage) -> tuple[int, ...]:
    """The four token counts of a usage."""
    return usage.input, usage.cache_read, usage.cache_write, usage.output


@pytest.mark.parametrize(("agent", "scene"), [each for each in SCENES if each != UNRECORDED])
def test_billed_tokens_match_recording(agent: str, scene: str, tmp_path: Path) -> None:
    """Subagents, compactions and the router are included."""
    session_result = run(agent, scene, tmp_path).result(1.0, failed=False)
    assert tokens(session_result) == counts(total(billed(agent, scene)))


@pytest.mark.parametrize(("agent", "scene"), SCENES)
def test_context_matches_recording(agent: str, scene: str, tmp_path: Path) -> None:
    """Context is the main thread's last call, the peak its largest."""
    session_result = run(agent, scene, tmp_path).result(1.0, failed=False)
    sent = [
        usage_of(billed_call).sent
        for billed_call in billed(agent, scene)
        if billed_call.thread == "main"
    ]
    assert session_result.context_tokens == sent[-1]
    assert session_result.peak_context_tokens == max(sent)


@pytest.mark.parametrize("agent", agent_names())
def test_window_matches_recording(agent: str, tmp_path: Path) -> None:
    track = run(agent, "tool-loop", tmp_path, overrides=Overrides(windows={"*": 128_000}))
    assert track.result(1.0, failed=False).context_window == 128_000


def test_claude_result_line_is_used(tmp_path: Path) -> None:
    session_result = run("claude", "tool-loop", tmp_path).result(1.2345, failed=False)
    assert (
        session_result.duration_ms,
        session_result.total_cost_usd,
        session_result.num_turns,
    ) == (1_234, 0.1227628, 4)
    assert (session_result.is_error, session_result.context_window) == (False, 1_000_000)


def test_cost_is_estimated_by_list_prices(tmp_path: Path) -> None:
    session_result = run("codex", "tool-loop", tmp_path).result(1.0, failed=False)
    assert session_result.total_cost_usd is not None
    assert 0 < session_result.total_cost_usd < 1
    assert session_result.num_turns == 3


def test_cost_of_gemini_includes_calls_that_are_in_no_chat(tmp_path: Path) -> None:
    """The stream's total has the router's calls, by model."""
    calls = billed("gemini", "tool-loop")
    assert "router" in {call.thread for call in calls}
    prices = [compute_cost(call.model, "2026-01-02", 0, usage_of(call)) for call in calls]
    cost = run("gemini", "tool-loop", tmp_path).result(1.0, failed=False).total_cost_usd
    assert cost == pytest.approx(sum(dollars or 0 for dollars in prices))


def test_cost_of_unknown_model_is_none(tmp_path: Path) -> None:
    track = RunState(job_of("claude", tmp_path), 0.0)
    track.stream.feed(init() + call("m1", 5_000).replace(b"claude-sonnet-4-5", b"my-model"))
    assert track.result(1.0, failed=False).total_cost_usd is None


def test_zero_cost_of_client_is_replaced(tmp_path: Path) -> None:
    """A client that reports a cost of 0 does not know the price."""
    track = RunState(job_of("claude", tmp_path), 0.0)
    track.stream.feed(init() + call("m1", 5_000) + result(total_cost_usd=0))
    cost = track.result(1.0, failed=False).total_cost_usd
    assert cost is not None
    assert cost > 0


@pytest.mark.parametrize(("agent", "scene"), RESUMED)
def test_resumed_session_counts_this_run_only(agent: str, scene: str, tmp_path: Path) -> None:
    home = home_of(agent, scene, tmp_path)
    (own,) = get_agent(agent).transcripts(Places(home, {}))
    earlier_calls = list(fold(Session(), source(agent).read(own)).threads[MAIN].calls.values())
    began = earlier_calls[len(billed(agent, scene, 1))].at
    assert began is not None
    track = RunState(job_of(agent, home, agent, "resume", "--last"), began)
    track.stream.feed(recorded(agent, scene, 2))
    track.close()
    session_result, calls = track.result(1.0, failed=False), billed(agent, scene, 2)
    assert tokens(session_result) == counts(total(calls))
    assert session_result.num_turns == len(
        [billed_call for billed_call in calls if billed_call.thread == "main"]
    )


@pytest.mark.parametrize("agent", agent_names())
def test_plain_text_run_is_read_from_transcript(agent: str, tmp_path: Path) -> None:
    track = RunState(job_of(agent, home_of(agent, "tool-loop", tmp_path)), 0.0)
    track.stream.feed(b"All done.\n")
    track.read_transcript()
    track.close()
    session_result, calls = track.result(1.0, failed=False), billed(agent, "tool-loop")
    calls = [
        billed_call for billed_call in calls if billed_call.thread != "router"
    ]  # which no chat of Gemini CLI has
    reading = track.reading()
    assert tokens(session_result) == counts(total(calls))
    assert session_result.context_tokens == usage_of(calls[-1]).sent
    assert reading is not None
    assert reading.source == "transcript"
    assert track.session_id is not None


def test_run_without_agent_has_no_figures() -> None:
    track = RunState(msgspec.structs.replace(job_of("claude", Path("/none")), agent=None), 0.0)
    track.stream.feed(b"hello\n")
    track.read_transcript()
    track.close()
    assert track.result(1.0, failed=True) == SessionResult(duration_ms=1_000, is_error=True)
    assert track.reading() is None


def test_context_is_unknown_without_transcript(tmp_path: Path) -> None:
    """The stream has totals only."""
    track = RunState(job_of("codex", tmp_path), 0.0)
    track.stream.feed(recorded("codex"))
    track.close()
    session_result = track.result(1.0, failed=False)
    assert (session_result.context_tokens, session_result.num_turns) == (None, None)
    assert tokens(session_result) == counts(total(billed("codex", "tool-loop")))


def test_interrupted_stream_is_completed_from_transcript(tmp_path: Path) -> None:
    """Billed tokens come from the transcript, prompts from the stream."""
    home = home_of("claude", "tool-loop", tmp_path)
    track = RunState(job_of("claude", home), 0.0)
    track.stream.feed(b"".join(recorded("claude").splitlines(keepends=True)[:-1]))
    track.close()
    session_result = track.result(1.0, failed=True)
    assert tokens(session_result) == counts(total(billed("claude", "tool-loop")))
    assert session_result.total_cost_usd is not None


def test_reading_is_current_after_each_line(tmp_path: Path) -> None:
    track = RunState(job_of("claude", tmp_path), 0.0)
    for sent in (50_000, 90_000):
        track.stream.feed(init() + call(f"m{sent}", sent))
        reading = track.reading()
        assert reading is not None
        assert (reading.sent, reading.percent) == (sent, 100 * sent / WINDOW_TOKENS)
    assert track.call_count == 2
