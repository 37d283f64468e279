"""The usage of a whole run is refused; the usage of one call in it is found."""

from types import SimpleNamespace
from typing import Any

import pytest

from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, SummedUsage, UnrecognisedObject
from brimline.sdk import Tracker

from .answers import Json, message
from .test_shapes import as_object, events, only


def of_package(package: str, name: str, **fields: Any) -> Any:
    """An object of a class with this name in a module of this package."""
    return type(name, (SimpleNamespace,), {"__module__": f"{package}.metrics"})(**fields)


CREW: Json = {
    "total_tokens": 6_700,
    "prompt_tokens": 6_638,
    "cached_prompt_tokens": 0,
    "completion_tokens": 62,
    "successful_requests": 4,
}
STRANDS: Json = {"inputTokens": 9_000, "outputTokens": 90, "totalTokens": 9_090}
AGNO: Json = {"input_tokens": 9_000, "output_tokens": 90, "total_tokens": 9_090}

SUMS: list[tuple[Any, str]] = [
    (CREW, "LLMCallCompletedEvent"),
    (as_object(CREW), "LLMCallCompletedEvent"),
    (of_package("crewai", "UsageMetrics", **(CREW | {"successful_requests": 1})), "crewai"),
    (of_package("crewai", "CrewOutput", raw="Done.", token_usage=as_object(CREW)), "crewai"),
    ({"raw": "Done.", "token_usage": CREW}, "crewai"),
    (of_package("strands", "EventLoopMetrics", accumulated_usage=STRANDS), r"cycles\[-1\].usage"),
    (SimpleNamespace(metrics=SimpleNamespace(accumulated_usage=STRANDS)), r"cycles\[-1\].usage"),
    (of_package("strands", "AgentInvocation", cycles=[], usage=STRANDS), r"cycles\[-1\].usage"),
    ({"accumulated_usage": STRANDS, "total_cycles": 3}, r"cycles\[-1\].usage"),
    (of_package("agno", "RunMetrics", **AGNO), r"messages\[-1\].metrics"),
    (of_package("agno", "RunOutput", metrics=as_object(AGNO)), r"messages\[-1\].metrics"),
    (AGNO | {"details": {"model": [AGNO]}}, r"messages\[-1\].metrics"),
    ({"type": "result", "num_turns": 3, "usage": message("x", 9_000)["usage"]}, "each message"),
]


@pytest.mark.parametrize(("seen", "hint"), SUMS)
def test_sum_of_a_run_is_refused_with_where_the_last_call_is(seen: Any, hint: str) -> None:
    tracker = Tracker()
    with pytest.raises(SummedUsage, match=hint):
        tracker.observe(seen)
    assert tracker.reading.sent is None


def test_sum_in_a_stream_does_not_make_the_context_unknown() -> None:
    tracker = Tracker()
    list(tracker.track([message("m1", 5_000), {"accumulated_usage": STRANDS}]))
    assert (tracker.reading.sent, tracker.unread_streams) == (5_000, {})


def test_metrics_of_one_message_of_agno_are_a_call() -> None:
    metrics = of_package("agno", "MessageMetrics", **AGNO, cache_read_tokens=0)
    assert only(metrics).usage == Usage(9_000, 0, 0, 90)


def test_metrics_of_agno_with_a_cache_are_refused() -> None:
    """Agno reports Anthropic's input without the cache, and OpenAI's with it."""
    metrics = of_package("agno", "MessageMetrics", **AGNO, cache_read_tokens=800)
    with pytest.raises(InvalidUsage, match="does not say whether the input includes the cache"):
        events(metrics)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 900, "cached_prompt_tokens": 700, "cache_creation_tokens": 100},
         Usage(100, 700, 100, 10)),
        ({"prompt_tokens": 900, "cached_prompt_tokens": 700}, Usage(200, 700, 0, 10)),
    ],
)  # fmt: skip
def test_cache_in_the_usage_of_a_call_of_crewai_is_a_part_of_the_prompt(
    usage: Json, expected: Usage
) -> None:
    output = "output_tokens" if "input_tokens" in usage else "completion_tokens"
    event = SimpleNamespace(usage={**usage, output: 10, "total_tokens": 910}, response_id="r1")
    call = only(event)
    assert (call.id, call.usage) == ("r1", expected)


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (1_010, Usage(300, 700, 0, 10)),
        (1_710, Usage(1_000, 700, 0, 10)),
        (None, Usage(1_000, 700, 0, 10)),
    ],
    ids=["OpenAI by Strands", "Bedrock", "no total"],
)
def test_total_of_converse_shows_whether_the_prompt_includes_the_cache(
    total: int | None, expected: Usage
) -> None:
    usage = {"inputTokens": 1_000, "outputTokens": 10, "cacheReadInputTokens": 700}
    assert only({"usage": {**usage, "totalTokens": total}}).usage == expected
    assert only({**usage, "totalTokens": total}).usage == expected


@pytest.mark.parametrize("name", ["raw", "inner_content"])
def test_answer_of_the_provider_in_an_object_of_a_framework_is_found(name: str) -> None:
    """As in LlamaIndex and Semantic Kernel."""
    assert only(SimpleNamespace(**{name: message("m1", 50_000)})).id == "m1"
    assert only({name: as_object(message("m1", 50_000))}).id == "m1"


def test_usage_one_level_down_counts_once_if_its_object_has_an_id() -> None:
    tracker = Tracker()
    answer = SimpleNamespace(id="a1", usage={"prompt_tokens": 500, "completion_tokens": 5})
    assert tracker.observe(answer)
    assert not tracker.observe(answer)
    nameless = SimpleNamespace(usage={"prompt_tokens": 600, "completion_tokens": 5})
    tracker.observe(nameless)
    assert tracker.session.threads["main"].call_count == 2


@pytest.mark.parametrize(
    "seen",
    [
        {"object": "batch", "id": "b", "usage": {"input_tokens": 9_000, "output_tokens": 9}},
        SimpleNamespace(raw="text", usage=lambda: None),
        SimpleNamespace(raw=SimpleNamespace(raw=message("m1", 5))),
    ],
    ids=["batch", "method", "two levels"],
)
def test_object_without_usage_one_level_down_is_refused_with_what_to_pass(seen: Any) -> None:
    with pytest.raises(UnrecognisedObject, match="Pass the answer of the provider's own client"):
        events(seen)
