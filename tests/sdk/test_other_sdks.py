"""LangChain, OpenAI Agents, Bedrock, Cohere, Ollama, Mistral, OpenTelemetry and bare usages."""

from types import SimpleNamespace
from typing import Any

import pytest

from brimline.context.events import Call
from brimline.context.usage import Usage
from brimline.errors import BrimlineError, InvalidUsage, UnrecognisedObject
from brimline.sdk import Tracker

from .answers import Json, chunk
from .test_shapes import as_object, events, only


def langchain(id: str | None, usage: Json | None, kind: str = "ai") -> Json:
    metadata = {"model_name": "gpt-6"}
    return {"type": kind, "id": id, "usage_metadata": usage, "response_metadata": metadata}


LANGCHAIN_USAGE = {
    "input_tokens": 1_000,
    "output_tokens": 10,
    "total_tokens": 1_010,
    "input_token_details": {"cache_read": 700, "cache_creation": 200},
    "output_token_details": {"reasoning": 4},
}


def test_langchain_message_keeps_its_cache_fields() -> None:
    call = only(langchain("x", LANGCHAIN_USAGE))
    assert (call.id, call.model, call.usage) == ("x", "gpt-6", Usage(100, 700, 200, 10, 4))


def test_langchain_cache_writes_by_lifetime_add_up() -> None:
    details = {
        "cache_creation": 0,
        "ephemeral_5m_input_tokens": 150,
        "ephemeral_1h_input_tokens": 50,
    }
    usage = {**LANGCHAIN_USAGE, "input_token_details": details, "output_token_details": {}}
    assert only(langchain("x", usage)).usage == Usage(800, 0, 200, 10, None, 50)


@pytest.mark.parametrize("kind", ["human", "tool", "ai"])
def test_langchain_message_without_usage_is_no_call(kind: str) -> None:
    assert events(langchain("x", None, kind)) == []


def test_langchain_message_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BrimlineError):
        events(langchain("x", LANGCHAIN_USAGE, "function"))


PROMPT_CHUNK = langchain("x", {"input_tokens": 1_000, "output_tokens": 0}, "AIMessageChunk")
REPLY_CHUNK = langchain("x", {"input_tokens": 0, "output_tokens": 10}, "AIMessageChunk")


def test_langchain_chunks_of_a_stream_add_up() -> None:
    tracker = Tracker()
    states = [tracker.reading.state for _ in tracker.track([PROMPT_CHUNK, REPLY_CHUNK])]
    assert states == ["streaming", "measured"]
    assert (tracker.reading.sent, tracker.reading.held) == (1_000, 1_010)


def test_langchain_chunk_outside_a_stream_is_refused_if_it_is_a_part() -> None:
    with pytest.raises(InvalidUsage, match="pass the whole stream to `track`"):
        events(PROMPT_CHUNK, REPLY_CHUNK)


def agents_usage(requests: int, sent: int) -> SimpleNamespace:
    details = {"cached_tokens": 9}
    return SimpleNamespace(
        requests=requests, input_tokens=sent, output_tokens=10, input_tokens_details=details
    )


def test_response_of_the_agents_sdk_is_a_call() -> None:
    seen = SimpleNamespace(output=[], usage=agents_usage(1, 100), response_id="x")
    call = only(seen)
    assert (call.id, call.usage) == ("x", Usage(91, 9, 0, 10))


def test_response_of_the_agents_sdk_without_usage_is_no_call() -> None:
    assert events(SimpleNamespace(output=[], usage=agents_usage(0, 0), response_id="x")) == []


def test_responses_of_the_agents_sdk_with_its_constant_id_are_two_calls() -> None:
    seen = SimpleNamespace(output=[], usage=agents_usage(1, 100), response_id="__fake_id__")
    assert len({event.id for event in events(seen, seen) if isinstance(event, Call)}) == 2


def test_object_with_a_response_id_that_is_no_response_is_not_guessed() -> None:
    with pytest.raises(UnrecognisedObject):
        events(SimpleNamespace(response_id="x"))


@pytest.mark.parametrize("usage", [agents_usage(3, 20_880), vars(agents_usage(3, 20_880))])
def test_sum_of_several_requests_is_refused_with_a_hint(usage: Any) -> None:
    with pytest.raises(InvalidUsage, match="raw_responses") as caught:
        events(usage)
    assert (caught.value.field, caught.value.value) == ("requests", 3)


def run_event(kind: str, data: Any = None) -> Json:
    return {"type": kind, "data": data}


def completed(sent: int) -> Json:
    usage = {"input_tokens": sent, "output_tokens": 10, "total_tokens": sent + 10}
    answer: Json = {"object": "response", "id": "__fake_id__", "usage": usage, "output": []}
    return {"type": "response.completed", "response": answer}


def test_calls_with_the_id_that_the_agents_sdk_shares_are_kept_apart() -> None:
    observed = events(
        run_event("agent_updated_stream_event"),
        run_event("raw_response_event", completed(100)),
        run_event("run_item_stream_event"),
        run_event("raw_response_event", {"type": "response.output_text.delta"}),
        run_event("raw_response_event", completed(200)),
    )
    calls: list[Any] = list(observed)
    assert [call.usage.sent for call in calls] == [100, 200]
    assert len({call.id for call in calls}) == 2


CONVERSE_USAGE = {
    "inputTokens": 100,
    "outputTokens": 10,
    "totalTokens": 1_010,
    "cacheReadInputTokens": 700,
    "cacheWriteInputTokens": 200,
}


@pytest.mark.parametrize(
    ("seen", "id"),
    [
        ({"usage": CONVERSE_USAGE, "ResponseMetadata": {"RequestId": "x"}}, "x"),
        ({"metadata": {"usage": CONVERSE_USAGE}}, "call-1"),
    ],
)
def test_bedrock_counts_the_cache_beside_the_prompt(seen: Json, id: str) -> None:
    call = only(seen)
    assert (call.id, call.usage) == (id, Usage(100, 700, 200, 10))


def test_other_events_of_a_bedrock_stream_are_no_call() -> None:
    assert events({"messageStart": {"role": "assistant"}}, {"messageStop": {}}) == []


@pytest.mark.parametrize(
    "seen",
    [
        {"id": "x", "usage": {"tokens": {"input_tokens": 100.0, "output_tokens": 10.0}}},
        {
            "id": "x",
            "type": "message-end",
            "delta": {"usage": {"tokens": {"input_tokens": 100, "output_tokens": 10}}},
        },
    ],
)
def test_cohere_answer_and_last_event_are_a_call(seen: Json) -> None:
    call = only(as_object(seen))
    assert (call.id, call.usage) == ("x", Usage(100, 0, 0, 10))


def test_cohere_cache_is_a_part_of_the_prompt() -> None:
    tokens = {"input_tokens": 100.0, "output_tokens": 10.0}
    assert only({"id": "x", "usage": {"tokens": tokens, "cached_tokens": 60.0}}).usage == Usage(
        40, 60, 0, 10
    )


def test_other_events_of_a_cohere_stream_are_no_call() -> None:
    assert events({"type": "content-delta"}, {"type": "message-start"}) == []


def ollama(done: bool, **counts: int) -> Json:
    return {"model": "qwen3", "created_at": "2026-11-16T10:00:00.1Z", "done": done, **counts}


def test_ollama_answer_is_a_call_and_the_same_one_again() -> None:
    tracker, answer = Tracker(), ollama(True, prompt_eval_count=100, eval_count=10)
    assert not tracker.observe(ollama(False))
    assert tracker.observe(answer)
    assert not tracker.observe(answer)
    assert (tracker.reading.sent, tracker.reading.held) == (100, 110)


def test_ollama_answer_without_its_prompt_count_is_refused() -> None:
    with pytest.raises(InvalidUsage) as caught:
        events(ollama(True, eval_count=10))
    assert caught.value.field == "prompt_eval_count"


def test_mistral_event_is_read_as_its_chunk() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    call = only(as_object({"data": chunk("x", usage, "stop")}))
    assert (call.id, call.usage) == ("x", Usage(100, 0, 0, 10))


@pytest.mark.parametrize("write", ["cache_creation", "cache_write"])
def test_span_attributes_are_a_call(write: str) -> None:
    call = only(
        {
            "gen_ai.response.id": "x",
            "gen_ai.response.model": "gpt-6",
            "gen_ai.usage.input_tokens": 1_000,
            "gen_ai.usage.cache_read.input_tokens": 700,
            f"gen_ai.usage.{write}.input_tokens": 200,
            "gen_ai.usage.output_tokens": 10,
        }
    )
    assert (call.id, call.model, call.usage) == ("x", "gpt-6", Usage(100, 700, 200, 10))


@pytest.mark.parametrize("reverse", [False, True])
def test_span_with_a_total_beside_its_parts_is_read(reverse: bool) -> None:
    attributes = {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read": 60,
        "gen_ai.usage.cache_read.input_tokens": 60,
    }
    seen = dict(reversed(attributes.items())) if reverse else attributes
    assert only(seen).usage == Usage(40, 60, 0, 10)


def test_span_without_the_answering_model_has_the_requested_one() -> None:
    usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
    assert only({**usage, "gen_ai.request.model": "gpt-6"}).model == "gpt-6"


def adk_event(partial: bool | None, usage: Json | None) -> Any:
    return SimpleNamespace(
        id="x", invocation_id="i", author="weather", partial=partial, usage_metadata=usage
    )


def test_adk_event_is_a_call_unless_it_is_partial() -> None:
    usage = {"prompt_token_count": 100, "candidates_token_count": 10}
    assert only(adk_event(None, usage)).usage == Usage(100, 0, 0, 10)
    assert events(adk_event(True, usage), adk_event(None, None)) == []


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (CONVERSE_USAGE, Usage(100, 700, 200, 10)),
        ({"inputTokens": 100, "outputTokens": 10}, Usage(100, 0, 0, 10)),
        (
            {"inputTokens": 100, "outputTokens": 10, "cachedInputTokens": 60, "reasoningTokens": 4},
            Usage(40, 60, 0, 10, 4),
        ),
        (
            {
                "inputTokens": 100,
                "outputTokens": 10,
                "inputTokenDetails": {"cacheReadTokens": 60, "cacheWriteTokens": 30},
                "outputTokenDetails": {"reasoningTokens": 4},
            },
            Usage(10, 60, 30, 10, 4),
        ),
        (LANGCHAIN_USAGE, Usage(100, 700, 200, 10, 4)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 150,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(100, 0, 0, 50, 40),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 150,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(100, 0, 0, 50, 40),
        ),
    ],
    ids=["bedrock", "camel case", "vercel 5", "vercel 6", "langchain", "xai", "openai"],
)
def test_bare_usage_is_recognised_by_its_fields(usage: Json, expected: Usage) -> None:
    assert only(usage).usage == expected


@pytest.mark.parametrize(
    "usage",
    [
        {
            "input_tokens": 100,
            "output_tokens": 10,
            "cache_read_input_tokens": 50_000,
            "total_tokens": 110,
        },
        {"inputTokens": 9, "outputTokens": 1, "cachedInputTokens": 5, "cacheReadInputTokens": 5},
        {"input_tokens": 9, "output_tokens": 1, "prompt_tokens": 9, "completion_tokens": 1},
    ],
    ids=["anthropic and openai", "vercel and bedrock", "two prompts"],
)
def test_usage_with_fields_of_two_providers_is_refused(usage: Json) -> None:
    with pytest.raises(InvalidUsage, match="fields of different APIs"):
        events(usage)
