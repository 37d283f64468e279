"""Whose object it is, told by its shape: dicts, and objects with the same attributes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from brimline.errors import InvalidUsage
from brimline.events import MAIN, AnyEvent, Call
from brimline.observe import Tracker
from brimline.observe.memory import StreamMemory
from brimline.observe.shapes import read_events
from brimline.usage import Usage

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
    """The same as it is."""
    return value


def events(*seen: Any) -> list[AnyEvent]:
    """The events of objects that come one after the other."""
    memory = StreamMemory()
    return [event for each in seen for event in read_events(each, memory, MAIN)]


def only(*seen: Any) -> Call:
    """The only call in them."""
    (call,) = events(*seen)
    assert isinstance(call, Call)
    return call


CACHED = {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 200}


@pytest.mark.parametrize(
    ("seen", "usage"),
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
def test_answers(form: Any, seen: Any, usage: Usage) -> None:
    """Disjoint or subset, each provider's answer gives the same disjoint buckets."""
    call = only(form(seen))
    assert (call.id, call.usage, call.final, call.thread) == ("x", usage, True, MAIN)
    assert call.model is not None


@pytest.mark.parametrize(
    ("seen", "usage"),
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
def test_bare_usage(form: Any, seen: Any, usage: Usage) -> None:
    """A usage without its answer is read too; it has no id, so each one is a call."""
    first, second = events(form(seen), form(seen))
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert (first.usage, second.usage) == (usage, usage)
    assert (first.id, second.id) == ("call-1", "call-2")


def test_sum_of_a_run() -> None:
    """A run's sum is no call, and says so."""
    total = {"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 0, "requests": 3}
    with pytest.raises(InvalidUsage, match="a sum of several requests is not one call"):
        events(total)


def test_message_without_an_id() -> None:
    """A message that names no call tells none, nor does one that was no call."""
    assert events({**message("x", 5), "id": None}) == []
    assert events(message("x", 0, 0)) == []


def test_snapshot_is_not_final() -> None:
    """A message that is still being written is not final."""
    assert not only({**message("x", 5), "stop_reason": None}).final


def test_anthropic_helper() -> None:
    """The stream helper's own events tell nothing; its last one has the whole message."""
    quiet = [{"type": kind} for kind in ("text", "thinking", "input_json", "signature", "ping")]
    assert events(*quiet, {"type": "message_stop"}) == []
    assert only({"type": "message_stop", "message": message("x", 5)}).id == "x"


def test_helper_that_lost_the_passes() -> None:
    """What the stream told of several passes is not replaced by a helper's sums of them."""
    passes = [
        {"type": "message", "input_tokens": 10_000, "output_tokens": 10},
        {"type": "message", "input_tokens": 20_000, "output_tokens": 20},
    ]
    usage = {"input_tokens": 30_000, "output_tokens": 30, "iterations": passes}
    told = events(
        start("x", 10_000),
        {"type": "message_delta", "delta": {}, "usage": usage},
        {"type": "message_stop", "message": message("x", 30_000, 30)},
    )
    last = told[-1]
    assert isinstance(last, Call)
    assert (last.usage.sent, last.final) == (20_000, True)


def test_delta_without_a_start() -> None:
    """The end of a message whose beginning was not seen tells nothing."""
    assert events(delta(5)) == []


def test_responses_stream() -> None:
    """Only the last event of a response has its usage; the others tell nothing."""
    begun = {**response("x", 5), "status": "in_progress", "usage": None}
    under_way = {**response("x", 5), "status": "in_progress"}
    assert events({"type": "response.created", "response": begun}) == []
    assert events({"type": "response.output_text.delta", "delta": "hi"}) == []
    assert not only({"type": "response.in_progress", "response": under_way}).final
    assert only({"type": "response.completed", "response": response("x", 5)}).final


def test_chat_stream() -> None:
    """The chunk with the usage comes last, after the one that ended the reply."""
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    last: Json = {**chunk("x", usage), "choices": []}
    assert only(chunk("x"), chunk("x", finish="stop"), last).final


def test_chat_stream_with_a_choice_at_the_end() -> None:
    """LiteLLM's last chunk has a choice that has not ended; the one before it had."""
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    assert only(chunk("x"), chunk("x", finish="stop"), chunk("x", usage)).final
    assert not only(chunk("y", finish="stop"), chunk("x", usage)).final


def test_chat_stream_with_usage_everywhere() -> None:
    """Some servers send a growing usage with each chunk: live, and final at the end."""
    first = {"prompt_tokens": 5, "completion_tokens": 1}
    second = {"prompt_tokens": 5, "completion_tokens": 2}
    told = events(chunk("x", first), chunk("x", second, finish="stop"))
    assert [(c.usage.output, c.final) for c in told if isinstance(c, Call)] == [
        (1, False),
        (2, True),
    ]


def test_chat_helper() -> None:
    """The chat helper wraps its chunks; its other events tell nothing."""
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    wrapped: Json = {"type": "chunk", "chunk": {**chunk("x", usage), "choices": []}}
    assert only({"type": "content.delta"}, wrapped, {"type": "content.done"}).id == "x"


def test_chat_without_an_id() -> None:
    """A local server that gives no id is counted call by call."""
    assert [c.id for c in events(completion("", 5), completion("", 6)) if isinstance(c, Call)] == [
        "call-1",
        "call-2",
    ]


def test_responses_without_output() -> None:
    """A response of a server that leaves its output out is read all the same."""
    bare = {key: value for key, value in response("x", 5).items() if key != "output"}
    assert only(bare).id == "x"
    assert events({**response("x", 5), "id": None}) == []


def test_compacted_response_without_usage() -> None:
    """A compaction that tells no usage makes what is held unknown all the same."""
    tracker = Tracker()
    tracker.observe(response("x", 5))
    tracker.observe({"object": "response.compaction", "id": "c"})
    assert tracker.reading.state == "unknown"


def test_gemini_stream() -> None:
    """Chunks of one answer have one id; the last one counts, and is final."""
    told = events(gemini("x", 5, 1, None), gemini("x", 5, 7, None), gemini("x", 5, 9))
    assert [(c.id, c.usage.output, c.final) for c in told if isinstance(c, Call)] == [
        ("x", 1, False),
        ("x", 7, False),
        ("x", 9, True),
    ]


def test_gemini_hops() -> None:
    """An answer that the SDK gathered over several requests is held once, not once per request."""
    told = {"prompt_token_count": 4_500, "candidates_token_count": 1_010}
    usage = SimpleNamespace(**told, initial_prompt_token_count=1_000)
    answer = SimpleNamespace(usage_metadata=usage, response_id="r3", candidates=[])
    assert only(answer).usage.held == 2_010


def test_gemini_interaction() -> None:
    """An interaction has counts of its own names."""
    usage = {"total_input_tokens": 100, "total_cached_tokens": 40, "total_output_tokens": 7,
             "total_thought_tokens": 3, "total_tokens": 110}  # fmt: skip
    call = only({"id": "int_1", "model": "gemini-3.8-flash", "status": "completed", "usage": usage})
    assert (call.id, call.usage, call.final) == ("int_1", Usage(60, 40, 0, 10, 3), True)


def test_gemini_without_usage_or_id() -> None:
    """A chunk without usage tells nothing; one without an id is a call of its own."""
    assert events({"candidates": []}) == []
    nameless: Json = {"usage_metadata": {"prompt_token_count": 5}, "candidates": []}
    call = only(nameless)
    assert (call.id, call.model, call.final) == ("call-1", None, True)


def test_pydantic_ai_conversation() -> None:
    """Requests of a conversation, and responses whose usage was left out, tell nothing."""
    empty = {"input_tokens": 0, "output_tokens": 0}
    answer: Json = {"kind": "response", "parts": [], "usage": empty}
    assert events({"kind": "request", "parts": []}, answer) == []
    assert events({**answer, "usage": {**empty, "unmeasured_requests": 1}}) == []
    nameless: Json = {**answer, "usage": {"input_tokens": 5, "output_tokens": 1}}
    assert only(nameless).id == "call-1"


def test_pydantic_ai_several_requests() -> None:
    """Where the usage is the cost of several requests, what was sent is told beside it."""
    usage = {"input_tokens": 203_000, "output_tokens": 4_500, "cache_read_tokens": 30_000}
    answer: Json = {
        "kind": "response", "parts": [], "provider_response_id": "x", "state": "complete",
        "usage": {**usage, "details": {"output_tokens": 1_000}},
        "metadata": {"__pydantic_ai__": {"context_input_tokens": 23_000}},
    }  # fmt: skip
    assert only(answer).usage == Usage(0, 23_000, 0, 1_000)
    assert only({**answer, "usage": usage}).usage.output == 4_500
    assert only({**answer, "metadata": {"own": 1}}).usage.sent == 203_000


def test_pydantic_ai_compaction() -> None:
    """A response with a compaction in it explains the fall."""
    usage = {"input_tokens": 20_000, "output_tokens": 1}
    tracker = Tracker()
    tracker.observe({"kind": "response", "parts": [], "provider_response_id": "a",
                     "usage": {"input_tokens": 150_000, "output_tokens": 1}})  # fmt: skip
    tracker.observe({"kind": "response", "parts": [{"part_kind": "compaction"}],
                     "provider_response_id": "b", "usage": usage})  # fmt: skip
    assert (tracker.reading.sent, tracker.reading.cycle) == (20_000, 0)


def test_pydantic_ai_in_flight() -> None:
    """A response that still streams is not final."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    answer: Json = {"kind": "response", "parts": [], "usage": usage, "state": "incomplete"}
    assert not only(answer).final


def test_usage_that_was_left_out() -> None:
    """A completion that says 0 of everything was not counted by its server: no call."""
    assert events(completion("x", 0, 0)) == []


# The Claude Agent SDK.


def agent_message(id: str, sent: int, parent: str | None = None) -> SimpleNamespace:
    """An AssistantMessage."""
    usage = {"input_tokens": sent, "output_tokens": 1}
    return SimpleNamespace(
        content=[], model=MODEL, parent_tool_use_id=parent, usage=usage, message_id=id,
        session_id="s1",
    )  # fmt: skip


def test_claude_agent_sdk() -> None:
    """Blocks of one message are one call, subagents have threads, the result ends the turn."""
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


def test_claude_agent_sdk_partial_messages() -> None:
    """Raw events tell the reply as it ends."""
    tracker = Tracker()
    for event in (start("m1", 60_000), delta(500)):
        tracker.observe(
            SimpleNamespace(event=event, parent_tool_use_id=None, session_id="s1", uuid="u")
        )
    assert (tracker.reading.held, tracker.reading.state) == (60_500, "measured")


def test_claude_agent_sdk_compaction() -> None:
    """A compaction of the client ends the cycle, and what is held is unknown until the reply."""
    tracker = Tracker()
    tracker.observe(agent_message("m1", 150_000))
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": "s1",
                "compact_metadata": {"trigger": "auto", "pre_tokens": 151_000}}  # fmt: skip
    tracker.observe(SimpleNamespace(subtype="compact_boundary", data=boundary))
    assert (tracker.reading.state, tracker.reading.cycle) == ("unknown", 1)
    tracker.observe(agent_message("m2", 20_000))
    assert (tracker.reading.sent, tracker.reading.cycle) == (20_000, 1)


def test_claude_agent_sdk_reset() -> None:
    """A conversation that is begun anew is a clear; the init that follows is no second one."""
    tracker = Tracker()
    init = {"type": "system", "subtype": "init", "session_id": "s1", "model": MODEL}
    tracker.observe(init)
    tracker.observe(agent_message("m1", 50_000))
    tracker.observe(SimpleNamespace(new_conversation_id="c2", session_id="s1", uuid="u"))
    tracker.observe({**init, "session_id": "s2"})
    assert (tracker.reading.cycle, tracker.reading.state) == (1, "unknown")


def test_claude_agent_sdk_told_again() -> None:
    """A compaction and a reset that are observed again are the same ones."""
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
    tracker.observe({**boundary, "uuid": None})
    assert tracker.reading.cycle == 3


def test_memory_of_lines_is_bounded() -> None:
    """Only the last few hundred lines are remembered."""
    memory = StreamMemory()
    assert not memory.is_repeated("first")
    for number in range(500):
        assert not memory.is_repeated(str(number))
    assert not memory.is_repeated("first")
    assert memory.is_repeated("499")


def test_result_without_windows() -> None:
    """A result that tells no windows is one all the same."""
    assert events(SimpleNamespace(subtype="error", num_turns=0, usage=None, model_usage=None)) == []


def test_line_of_the_stream() -> None:
    """A line of Claude Code's stream is read as it stands, one of an unknown kind passed over."""
    line = {"type": "assistant", "session_id": "s1", "message": message("m1", 50_000)}
    assert only(line).usage.sent == 50_000
    assert events({"type": "brand_new", "session_id": "s1"}) == []
