"""Objects are recognised by their shape: dicts, and objects with the same attributes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from brimline.context.events import MAIN, AnyEvent, Call, Spent
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage
from brimline.sdk import Tracker
from brimline.sdk.shapes import read_events
from brimline.sdk.stream import StreamMemory

from .answers import MODEL, Json, chunk, completion, delta, gemini, message, response, start


def as_object(value: Any) -> Any:
    """The same with attributes instead of keys, as the SDKs hand it out."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        return SimpleNamespace(**{name: as_object(inner) for name, inner in fields.items()})
    if isinstance(value, list):
        return [as_object(inner) for inner in cast("list[Any]", value)]
    return value


def as_dict(value: Any) -> Any:
    return value


def events(*observed: Any) -> list[AnyEvent]:
    """The events of consecutive objects."""
    memory = StreamMemory()
    return [event for each in observed for event in read_events(each, memory, MAIN)]


def only(*observed: Any) -> Call:
    """The only call in them."""
    (call,) = events(*observed)
    assert isinstance(call, Call)
    return call


CACHED = {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 200}


@pytest.mark.parametrize(
    ("answer", "usage"),
    [
        (message("x", 100, 10, usage=CACHED), Usage(100, 700, 200, 10)),
        (
            {**response("x", 1_000), "usage": {
                "input_tokens": 1_000, "output_tokens": 10,
                "input_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200},
                "output_tokens_details": {"reasoning_tokens": 4},
            }},
            Usage(100, 700, 200, 10, 4),
        ),
        (
            {**completion("x", 1_000), "usage": {
                "prompt_tokens": 1_000, "completion_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 700},
            }},
            Usage(300, 700, 0, 10),
        ),
        (gemini("x", 1_000), Usage(1_000, 0, 0, 10)),
        (
            {"kind": "response", "parts": [], "model_name": "gpt-6", "provider_response_id": "x",
             "usage": {"input_tokens": 1_000, "cache_read_tokens": 700, "cache_write_tokens": 200,
                       "output_tokens": 10, "output_reasoning_tokens": 4}},
            Usage(100, 700, 200, 10, 4),
        ),
    ],
    ids=["anthropic", "responses", "chat", "gemini", "pydantic-ai"],
)  # fmt: skip
@pytest.mark.parametrize("form", [as_dict, as_object], ids=["dict", "object"])
def test_answer_of_each_provider_gives_disjoint_buckets(
    form: Any, answer: Any, usage: Usage
) -> None:
    call = only(form(answer))
    assert (call.id, call.usage, call.final, call.thread) == ("x", usage, True, MAIN)
    assert call.model is not None


@pytest.mark.parametrize(
    ("answer", "usage"),
    [
        ({"input_tokens": 100, "output_tokens": 10, **CACHED}, Usage(100, 700, 200, 10)),
        ({"input_tokens": 100, "output_tokens": 10}, Usage(100, 0, 0, 10)),
        (
            {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 9},
             "output_tokens": 10},
            Usage(91, 9, 0, 10),
        ),
        (
            {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
            Usage(100, 0, 0, 10),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 10}, Usage(100, 0, 0, 10)),
        ({"promptTokenCount": 100, "candidatesTokenCount": 10}, Usage(100, 0, 0, 10)),
        (
            {"input_tokens": 100, "cache_read_tokens": 9, "cache_write_tokens": 0,
             "output_tokens": 10, "requests": 1},
            Usage(91, 9, 0, 10),
        ),
    ],
    ids=["anthropic", "no cache", "responses", "no details", "chat", "gemini", "pydantic-ai"],
)  # fmt: skip
@pytest.mark.parametrize("form", [as_dict, as_object], ids=["dict", "object"])
def test_usage_without_an_answer_is_a_call_of_its_own(form: Any, answer: Any, usage: Usage) -> None:
    first, second = events(form(answer), form(answer))
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert (first.usage, second.usage) == (usage, usage)
    assert (first.id, second.id) == ("call-1", "call-2")


def test_sum_of_a_run_is_refused_as_no_call() -> None:
    total = {"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 0, "requests": 3}
    with pytest.raises(InvalidUsage, match="a sum of several requests is no occupancy"):
        events(total)


def test_message_without_an_id_or_call_gives_nothing() -> None:
    assert events({**message("x", 5), "id": None}) == []
    assert events(message("x", 0, 0)) == []


def test_unfinished_message_is_not_final() -> None:
    assert not only({**message("x", 5), "stop_reason": None}).final


def test_last_event_of_the_anthropic_helper_has_the_message() -> None:
    quiet = [{"type": kind} for kind in ("text", "thinking", "input_json", "signature", "ping")]
    assert events(*quiet, {"type": "message_stop"}) == []
    assert only({"type": "message_stop", "message": message("x", 5)}).id == "x"


def test_passes_of_the_stream_are_not_replaced_by_the_helpers_sums() -> None:
    passes = [
        {"type": "message", "input_tokens": 10_000, "output_tokens": 10},
        {"type": "message", "input_tokens": 20_000, "output_tokens": 20},
    ]
    usage = {"input_tokens": 30_000, "output_tokens": 30, "iterations": passes}
    produced = events(
        start("x", 10_000),
        {"type": "message_delta", "delta": {}, "usage": usage},
        {"type": "message_stop", "message": message("x", 30_000, 30)},
    )
    last = produced[-1]
    assert isinstance(last, Call)
    assert (last.usage.sent, last.final) == (20_000, True)


def test_advice_is_spent_at_the_advisors_model() -> None:
    passes = [
        {"type": "advisor_message", "input_tokens": 60, "output_tokens": 9, "model": "adviser"},
        {"type": "message", "input_tokens": 20, "output_tokens": 5},
    ]
    usage = {"input_tokens": 20, "output_tokens": 5, "iterations": passes}
    streamed = events(start("x", 20), {"type": "message_delta", "delta": {}, "usage": usage})
    whole = events({**message("x", 20), "usage": usage})
    for produced in (streamed, whole):
        spent = [each for each in produced if isinstance(each, Spent)]
        assert spent == [Spent(usage=Usage(60, 0, 0, 9), model="adviser", id="x")]


def test_end_of_a_message_without_its_start_gives_nothing() -> None:
    assert events(delta(5)) == []


def test_only_the_last_event_of_a_response_has_usage() -> None:
    begun = {**response("x", 5), "status": "in_progress", "usage": None}
    under_way = {**response("x", 5), "status": "in_progress"}
    assert events({"type": "response.created", "response": begun}) == []
    assert events({"type": "response.output_text.delta", "delta": "hi"}) == []
    assert not only({"type": "response.in_progress", "response": under_way}).final
    assert only({"type": "response.completed", "response": response("x", 5)}).final


def test_usage_in_the_last_chunk_of_a_chat_is_final() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    last: Json = {**chunk("x", usage), "choices": []}
    assert only(chunk("x"), chunk("x", finish="stop"), last).final


def test_chat_chunk_after_the_finished_choice_is_final() -> None:
    """LiteLLM's last chunk has a choice that has not ended."""
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    assert only(chunk("x"), chunk("x", finish="stop"), chunk("x", usage)).final
    assert not only(chunk("y", finish="stop"), chunk("x", usage)).final


def test_growing_usage_of_chat_chunks_is_final_at_the_end() -> None:
    first = {"prompt_tokens": 5, "completion_tokens": 1}
    second = {"prompt_tokens": 5, "completion_tokens": 2}
    produced = events(chunk("x", first), chunk("x", second, finish="stop"))
    assert [(c.usage.output, c.final) for c in produced if isinstance(c, Call)] == [
        (1, False),
        (2, True),
    ]


def test_chunks_inside_events_of_the_chat_helper_are_read() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    wrapped: Json = {"type": "chunk", "chunk": {**chunk("x", usage), "choices": []}}
    assert only({"type": "content.delta"}, wrapped, {"type": "content.done"}).id == "x"


def test_chats_without_an_id_count_one_by_one() -> None:
    assert [c.id for c in events(completion("", 5), completion("", 6)) if isinstance(c, Call)] == [
        "call-1",
        "call-2",
    ]


def test_response_without_output_is_read() -> None:
    bare = {key: value for key, value in response("x", 5).items() if key != "output"}
    assert only(bare).id == "x"
    assert events({**response("x", 5), "id": None}) == []


def test_compaction_without_usage_makes_the_context_unknown() -> None:
    tracker = Tracker()
    tracker.observe(response("x", 5))
    tracker.observe({"object": "response.compaction", "id": "c"})
    assert tracker.reading.state == "unknown"


def test_last_gemini_chunk_of_an_id_is_final() -> None:
    produced = events(gemini("x", 5, 1, None), gemini("x", 5, 7, None), gemini("x", 5, 9))
    assert [(c.id, c.usage.output, c.final) for c in produced if isinstance(c, Call)] == [
        ("x", 1, False),
        ("x", 7, False),
        ("x", 9, True),
    ]


def test_gemini_answer_over_several_requests_counts_once() -> None:
    counts = {"prompt_token_count": 4_500, "candidates_token_count": 1_010}
    usage = SimpleNamespace(**counts, initial_prompt_token_count=1_000)
    answer = SimpleNamespace(usage_metadata=usage, response_id="r3", candidates=[])
    assert only(answer).usage.held == 2_010


def test_gemini_interaction_has_its_own_count_names() -> None:
    usage = {"total_input_tokens": 100, "total_cached_tokens": 40, "total_output_tokens": 7,
             "total_thought_tokens": 3, "total_tokens": 110}  # fmt: skip
    call = only({"id": "int_1", "model": "gemini-3.8-flash", "status": "completed", "usage": usage})
    assert (call.id, call.usage, call.final) == ("int_1", Usage(60, 40, 0, 10, 3), True)


def test_gemini_chunk_without_usage_gives_nothing_and_without_id_a_call() -> None:
    assert events({"candidates": []}) == []
    nameless: Json = {"usage_metadata": {"prompt_token_count": 5}, "candidates": []}
    call = only(nameless)
    assert (call.id, call.model, call.final) == ("call-1", None, True)


def test_pydantic_ai_requests_and_empty_usage_give_nothing() -> None:
    empty = {"input_tokens": 0, "output_tokens": 0}
    answer: Json = {"kind": "response", "parts": [], "usage": empty}
    assert events({"kind": "request", "parts": []}, answer) == []
    assert events({**answer, "usage": {**empty, "unmeasured_requests": 1}}) == []
    nameless: Json = {**answer, "usage": {"input_tokens": 5, "output_tokens": 1}}
    assert only(nameless).id == "call-1"


def test_pydantic_ai_prompt_is_read_beside_the_summed_usage() -> None:
    usage = {"input_tokens": 203_000, "output_tokens": 4_500, "cache_read_tokens": 30_000}
    answer: Json = {
        "kind": "response", "parts": [], "provider_response_id": "x", "state": "complete",
        "usage": {**usage, "details": {"output_tokens": 1_000}},
        "metadata": {"__pydantic_ai__": {"context_input_tokens": 23_000}},
    }  # fmt: skip
    assert only(answer).usage == Usage(0, 23_000, 0, 1_000)
    assert only({**answer, "usage": usage}).usage.output == 4_500
    assert only({**answer, "metadata": {"own": 1}}).usage.sent == 203_000


def test_pydantic_ai_compaction_begins_a_cycle() -> None:
    usage = {"input_tokens": 20_000, "output_tokens": 1}
    tracker = Tracker()
    tracker.observe({"kind": "response", "parts": [], "provider_response_id": "a",
                     "usage": {"input_tokens": 150_000, "output_tokens": 1}})  # fmt: skip
    tracker.observe({"kind": "response", "parts": [{"part_kind": "compaction"}],
                     "provider_response_id": "b", "usage": usage})  # fmt: skip
    assert (tracker.reading.sent, tracker.reading.cycle) == (20_000, 1)


def test_pydantic_ai_streaming_response_is_not_final() -> None:
    usage = {"input_tokens": 5, "output_tokens": 1}
    answer: Json = {"kind": "response", "parts": [], "usage": usage, "state": "incomplete"}
    assert not only(answer).final


def test_all_zero_completion_is_no_call() -> None:
    assert events(completion("x", 0, 0)) == []


# The Claude Agent SDK.


def agent_message(id: str, sent: int, parent: str | None = None) -> SimpleNamespace:
    """An AssistantMessage."""
    usage = {"input_tokens": sent, "output_tokens": 1}
    return SimpleNamespace(
        content=[], model=MODEL, parent_tool_use_id=parent, usage=usage, message_id=id,
        session_id="s1",
    )  # fmt: skip


def test_claude_agent_sdk_blocks_are_one_call_and_subagents_threads() -> None:
    tracker = Tracker()
    init = {"type": "system", "subtype": "init", "session_id": "s1", "model": MODEL}
    tracker.observe(SimpleNamespace(subtype="init", data=init))
    assert tracker.observe(agent_message("m1", 50_000))
    assert not tracker.observe(agent_message("m1", 50_000))
    tracker.observe(SimpleNamespace(content="hi", parent_tool_use_id=None, uuid=None))
    tracker.observe(agent_message("s1", 90_000, "toolu_1"))
    result = SimpleNamespace(
        subtype="success", num_turns=1, usage={"input_tokens": 140_000, "output_tokens": 77},
        model_usage={MODEL: {"contextWindow": 1_000_000}},
    )  # fmt: skip
    assert tracker.observe(result)
    reading = tracker.reading
    assert (reading.sent, reading.held, reading.state) == (50_000, 50_077, "measured")
    assert reading.window is not None
    assert (reading.window.tokens, reading.window.origin) == (1_000_000, "reported")
    assert tracker.threads["toolu_1"].sent == 90_000
    assert tracker.session.agent == "claude"


def test_claude_agent_sdk_raw_events_are_read() -> None:
    tracker = Tracker()
    for event in (start("m1", 60_000), delta(500)):
        tracker.observe(
            SimpleNamespace(event=event, parent_tool_use_id=None, session_id="s1", uuid="u")
        )
    assert (tracker.reading.held, tracker.reading.state) == (60_500, "measured")


def test_claude_agent_sdk_compaction_makes_the_context_unknown() -> None:
    tracker = Tracker()
    tracker.observe(agent_message("m1", 150_000))
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": "s1",
                "compact_metadata": {"trigger": "auto", "pre_tokens": 151_000}}  # fmt: skip
    tracker.observe(SimpleNamespace(subtype="compact_boundary", data=boundary))
    assert (tracker.reading.state, tracker.reading.cycle) == ("unknown", 1)
    tracker.observe(agent_message("m2", 20_000))
    assert (tracker.reading.sent, tracker.reading.cycle) == (20_000, 1)


def test_claude_agent_sdk_reset_is_one_clear() -> None:
    tracker = Tracker()
    init = {"type": "system", "subtype": "init", "session_id": "s1", "model": MODEL}
    tracker.observe(init)
    tracker.observe(agent_message("m1", 50_000))
    tracker.observe(SimpleNamespace(new_conversation_id="c2", session_id="s1", uuid="u"))
    tracker.observe({**init, "session_id": "s2"})
    assert (tracker.reading.cycle, tracker.reading.state) == (1, "unknown")


def test_claude_agent_sdk_repeated_compaction_and_reset_count_once() -> None:
    tracker = Tracker()
    tracker.observe(agent_message("m1", 150_000))
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": "s1", "uuid": "u1"}
    for _ in range(2):
        tracker.observe(SimpleNamespace(subtype="compact_boundary", data=boundary))
    assert tracker.reading.cycle == 1
    tracker.observe(agent_message("m2", 50_000))
    for _ in range(2):
        tracker.observe(SimpleNamespace(new_conversation_id="c2", uuid="u2"))
    assert tracker.reading.cycle == 2
    tracker.observe(agent_message("m3", 60_000))
    tracker.observe({**boundary, "uuid": None})
    assert tracker.reading.cycle == 3


def test_number_of_remembered_lines_is_bounded() -> None:
    memory = StreamMemory()
    assert not memory.is_repeated("first")
    for number in range(500):
        assert not memory.is_repeated(str(number))
    assert not memory.is_repeated("first")
    assert memory.is_repeated("499")


def test_result_without_windows_is_read() -> None:
    assert events(SimpleNamespace(subtype="error", num_turns=0, usage=None, model_usage=None)) == []


def test_line_of_claude_codes_stream_is_read_and_unknown_kinds_skipped() -> None:
    line = {"type": "assistant", "session_id": "s1", "message": message("m1", 50_000)}
    assert only(line).usage.sent == 50_000
    assert events({"type": "brand_new", "session_id": "s1"}) == []
