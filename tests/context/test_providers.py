"""Usage from answers of providers: dicts, objects, events; disjoint or subset."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.providers.anthropic import (
    MESSAGES,
    ApiCompaction,
    CallPass,
    MessageStream,
    MessageUsage,
    find_api_compaction,
    other_passes,
    usage_of,
)
from brimline.context.providers.gemini import GENERATE, generate_usage
from brimline.context.providers.opentelemetry import SPAN
from brimline.context.providers.rows import UsageShape, get_path
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage
from brimline.sdk.frameworks import REQUEST, USAGE_METADATA
from brimline.sdk.openai import CHAT, RESPONSES
from brimline.sdk.other_providers import ANSWER, CHAT_V2, CONVERSE, INTERACTION, collapse_requests
from brimline.sdk.shapes import GENERATED

Json = dict[str, Any]

SHAPES = {
    "anthropic-messages": MESSAGES,
    "openai-responses": RESPONSES,
    "openai-chat": CHAT,
    "gemini-generate-content": GENERATE,
    "gemini-interaction": INTERACTION,
    "bedrock-converse": CONVERSE,
    "cohere-chat": CHAT_V2,
    "ollama": ANSWER,
    "pydantic-ai-request": REQUEST,
    "langchain-usage-metadata": USAGE_METADATA,
    "vercel-ai-sdk": GENERATED,
    "opentelemetry-gen-ai": SPAN,
}

MESSAGE: Json = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 1_200,
    "cache_read_input_tokens": 30_000,
    "output_tokens": 250,
    "service_tier": "standard",
    "iterations": None,
}


@dataclass
class SdkUsage:
    """Usage as an SDK hands it out: attributes, unknown ones None."""

    input_tokens: Any = 4
    cache_creation_input_tokens: Any = 1_200
    cache_read_input_tokens: Any = 30_000
    output_tokens: Any = 250
    iterations: Any = None


def test_cache_is_added_to_the_prompt_or_is_a_part_of_it() -> None:
    assert {name: shape.cached for name, shape in SHAPES.items()} == {
        "anthropic-messages": "disjoint",
        "openai-responses": "subset",
        "openai-chat": "subset",
        "gemini-generate-content": "subset",
        "gemini-interaction": "subset",
        "bedrock-converse": "disjoint",
        "cohere-chat": "subset",
        "ollama": "disjoint",
        "pydantic-ai-request": "subset",
        "langchain-usage-metadata": "subset",
        "vercel-ai-sdk": "subset",
        "opentelemetry-gen-ai": "subset",
    }


def test_anthropic_input_excludes_the_cache() -> None:
    usage = usage_of(MESSAGE)
    assert usage == Usage(4, 30_000, 1_200, 250)
    assert usage is not None
    assert usage.sent == 31_204


def test_anthropic_object_is_read_like_its_dict() -> None:
    assert usage_of(SdkUsage()) == usage_of(MESSAGE)


def test_missing_or_null_cache_counts_mean_no_cache() -> None:
    assert usage_of({"input_tokens": 9, "output_tokens": 1}) == Usage(9, 0, 0, 1)
    nulls = SdkUsage(9, None, None, 1)
    assert usage_of(nulls) == Usage(9, 0, 0, 1)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_missing_required_count_is_an_error_with_its_name(shape: UsageShape) -> None:
    required = [row.paths[0] for row in shape.rows if row.required]
    assert required
    for name in required:
        answer: Json = {}
        for other in required:
            _put(answer, other, None if other == name else 5)
        with pytest.raises(InvalidUsage, match="it is missing") as caught:
            shape.usage(answer)
        assert caught.value.field == name


@pytest.mark.parametrize("value", [-1, "5", 5.0, math.nan, True, [], {}], ids=repr)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_invalid_count_is_refused_with_its_path(shape: UsageShape, value: object) -> None:
    for row in shape.rows:
        answer: Json = {}
        for other in shape.rows:
            _put(answer, other.paths[0], 9)
        _put(answer, row.paths[0], value)
        with pytest.raises(InvalidUsage) as caught:
            shape.usage(answer)
        assert caught.value.field == row.paths[0]


def _put(answer: Json, path: str, value: object) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        answer = answer.setdefault(parent, {})
    answer[name] = value


NONSENSE: tuple[Any, ...] = (None, "usage", 7, [], {})


def test_something_that_is_no_usage_is_an_error() -> None:
    for nonsense in NONSENSE:
        with pytest.raises(InvalidUsage):
            usage_of(nonsense)


def test_all_zero_message_is_no_call() -> None:
    assert usage_of({"input_tokens": 0, "output_tokens": 0}) is None
    assert usage_of(MessageUsage(0, 0)) is None
    assert usage_of(MessageUsage(None, 5)) is None


def test_all_zero_message_over_its_passes_is_no_call() -> None:
    passes = [{"type": "message", "input_tokens": 3, "output_tokens": 9}] * 2
    zero = {"input_tokens": 0, "output_tokens": 0, "iterations": passes}
    assert usage_of(zero) is None
    assert usage_of(MessageUsage(0, 0, iterations=(CallPass(3, 9), CallPass(3, 9)))) is None


HOUR = {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 1_000}


def test_anthropic_writes_for_an_hour_are_a_part_of_the_writes() -> None:
    expected = Usage(4, 30_000, 1_200, 250, cache_write_1h=1_000)
    answer = {**MESSAGE, "cache_creation": HOUR}
    assert MESSAGES.usage(answer) == usage_of(answer) == expected
    assert usage_of(msgspec.convert(answer, MessageUsage)) == expected


@pytest.mark.parametrize("creation", [None, {}, HOUR])
def test_writes_by_lifetime_beyond_the_sum_do_not_count(creation: object) -> None:
    answer = {"input_tokens": 4, "output_tokens": 5, "cache_creation": creation}
    assert usage_of(answer) == usage_of(msgspec.convert(answer, MessageUsage)) == Usage(4, 0, 0, 5)


def test_streamed_message_keeps_the_writes_for_an_hour() -> None:
    stream = MessageStream()
    stream.feed(start({**MESSAGE, "cache_creation": HOUR}))
    done = stream.feed(delta(output_tokens=70))
    assert done is not None
    assert done.usage == Usage(4, 30_000, 1_200, 70, cache_write_1h=1_000)


ADVISED: Json = {
    "input_tokens": 10,
    "cache_read_input_tokens": 90_000,
    "cache_creation_input_tokens": 2_000,
    "output_tokens": 700,
    "iterations": [
        {"type": "message", "input_tokens": 5, "output_tokens": 300,
         "cache_read_input_tokens": 44_000, "cache_creation_input_tokens": 1_000},
        {"type": "advisor_message", "input_tokens": 60_000, "output_tokens": 900},
        {"type": "message", "input_tokens": 5, "output_tokens": 400,
         "cache_read_input_tokens": 46_000, "cache_creation_input_tokens": 1_000},
    ],
}  # fmt: skip


def test_last_pass_that_is_no_advisors_counts() -> None:
    expected = Usage(5, 46_000, 1_000, 400)
    assert usage_of(ADVISED) == expected
    assert usage_of(msgspec.convert(ADVISED, MessageUsage)) == expected


@pytest.mark.parametrize("tier", [None, "fast"])
@pytest.mark.parametrize("advisor", [None, "claude-fable-5"])
def test_other_passes_are_billed_by_their_models_and_tiers(
    advisor: str | None, tier: str | None
) -> None:
    """Fast mode is a price of the message's own passes; its advisor has its usual one."""
    passes = [each | ({"model": advisor} if "adv" in each["type"] else {})
              for each in ADVISED["iterations"]]  # fmt: skip
    own, advice = Usage(5, 44_000, 1_000, 300), Usage(60_000, 0, 0, 900)
    expected = {("m", tier): own, (advisor or "m", None): advice}
    if advisor is None and tier is None:
        expected = {("m", None): own + advice}
    answer = {**ADVISED, "iterations": passes}
    assert other_passes(answer, "m", tier) == expected
    assert other_passes(msgspec.convert(answer, MessageUsage), "m", tier) == expected
    stream = MessageStream()
    stream.feed(start({**MESSAGE, "speed": tier}, model="m"))
    done = stream.feed(delta(output_tokens=700, iterations=passes))
    assert done is not None
    assert done.others == expected


@pytest.mark.parametrize("passes", [None, [], ADVISED["iterations"][:1]])
def test_message_of_one_pass_has_no_others(passes: object) -> None:
    assert other_passes({**MESSAGE, "iterations": passes}, "m") == {}
    assert other_passes({"input_tokens": 0, "output_tokens": 0, **ADVISED} | {
        name: 0 for name in ADVISED if name != "iterations"}, "m") == {}  # fmt: skip


def test_advisor_pass_at_the_end_is_skipped() -> None:
    passes = [ADVISED["iterations"][0], ADVISED["iterations"][1]]
    assert usage_of({**ADVISED, "iterations": passes}) == Usage(5, 44_000, 1_000, 300)


def test_top_level_counts_if_every_pass_is_an_advisors() -> None:
    passes = [ADVISED["iterations"][1]] * 2
    assert usage_of({**ADVISED, "iterations": passes}) == Usage(10, 90_000, 2_000, 700)


@pytest.mark.parametrize("passes", [None, [], [{"type": "message", "input_tokens": 1}]], ids=repr)
def test_top_level_counts_with_one_pass_or_none(passes: object) -> None:
    assert usage_of({**MESSAGE, "iterations": passes}) == usage_of(MESSAGE)


def test_last_pass_without_counts_is_an_error() -> None:
    with pytest.raises(InvalidUsage, match="input_tokens"):
        usage_of({**MESSAGE, "iterations": [{"type": "message"}, {"type": "message"}]})


def start(usage: object, name: object = "msg_1", model: object = "claude-opus-5-5") -> Json:
    message = {"id": name, "model": model, "usage": usage}
    return {"type": "message_start", "message": message}


def delta(**usage: object) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


def test_stream_has_input_at_the_start_and_output_at_the_delta() -> None:
    stream = MessageStream()
    assert not stream.is_current("msg_1")
    begun = stream.feed(start({**MESSAGE, "output_tokens": 1}))
    assert begun is not None
    assert (begun.id, begun.model, begun.final) == ("msg_1", "claude-opus-5-5", False)
    assert begun.usage == Usage(4, 30_000, 1_200, 1)
    assert stream.is_current("msg_1")
    assert not stream.is_current("msg_2")
    assert stream.feed({"type": "content_block_delta"}) is None
    assert stream.feed({"type": "ping"}) is None
    ended = stream.feed(delta(output_tokens=250))
    assert ended is not None
    assert ended.final
    assert ended.usage == usage_of(MESSAGE)
    assert stream.feed({"type": "message_stop"}) is None


def test_event_objects_are_read_like_dicts() -> None:
    message = SimpleNamespace(id="msg_1", model=None, usage=SdkUsage(output_tokens=1))
    stream = MessageStream()
    begun = stream.feed(SimpleNamespace(type="message_start", message=message))
    assert begun is not None
    assert begun.model is None
    ended = stream.feed(
        SimpleNamespace(type="message_delta", usage=SimpleNamespace(output_tokens=250))
    )
    assert ended is not None
    assert ended.usage == usage_of(MESSAGE)


def test_prompt_in_a_delta_counts_unless_it_is_zero() -> None:
    stream = MessageStream()
    stream.feed(start({"input_tokens": 10, "output_tokens": 1}))
    update = stream.feed(delta(input_tokens=12, cache_read_input_tokens=7, output_tokens=3))
    assert update is not None
    assert update.usage == Usage(12, 7, 0, 3)
    zeros = stream.feed(delta(input_tokens=0, cache_read_input_tokens=0, output_tokens=4))
    assert zeros is not None
    assert zeros.usage == Usage(12, 7, 0, 4)


def test_passes_in_a_delta_are_read_like_those_of_an_answer() -> None:
    stream = MessageStream()
    stream.feed(start({"input_tokens": 5, "output_tokens": 1}))
    update = stream.feed(delta(**ADVISED))
    assert update is not None
    assert update.usage == Usage(5, 46_000, 1_000, 400)


def test_delta_without_usage_or_start_gives_nothing() -> None:
    stream = MessageStream()
    assert stream.feed(delta(output_tokens=3)) is None
    stream.feed(start(MESSAGE))
    assert stream.feed({"type": "message_delta"}) is None


def test_delta_usage_without_output_is_an_error() -> None:
    stream = MessageStream()
    stream.feed(start(MESSAGE))
    with pytest.raises(InvalidUsage, match="output_tokens"):
        stream.feed(delta(input_tokens=3))


@pytest.mark.parametrize("name", [None, 7])
def test_message_without_an_id_is_not_counted(name: object) -> None:
    assert MessageStream().feed(start(MESSAGE, name=name)) is None


def test_all_zero_start_replaces_the_message_before_it() -> None:
    stream = MessageStream()
    stream.feed(start(MESSAGE, name="msg_1"))
    stream.feed(start({"input_tokens": 0, "output_tokens": 0}, name="msg_2"))
    update = stream.feed(delta(input_tokens=20, output_tokens=5))
    assert update is None or update.id == "msg_2"


def test_counts_that_come_only_in_the_delta_are_counted() -> None:
    stream = MessageStream()
    stream.feed(start({"input_tokens": 0, "output_tokens": 0}))
    update = stream.feed(delta(input_tokens=20, output_tokens=5))
    assert update is not None
    assert (update.id, update.usage) == ("msg_1", Usage(20, 0, 0, 5))


def test_stream_of_zeros_is_no_call() -> None:
    stream = MessageStream()
    stream.feed(start({"input_tokens": 0, "output_tokens": 0}))
    assert stream.feed(delta(output_tokens=0)) is None
    stream.feed(start({"input_tokens": 0, "output_tokens": 1}))
    assert stream.feed(delta(output_tokens=0)) is None


RESPONSE: Json = {
    "input_tokens": 1_000,
    "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 50},
    "output_tokens": 90,
    "output_tokens_details": {"reasoning_tokens": 60},
}
COMPLETION: Json = {
    "prompt_tokens": 1_000,
    "prompt_tokens_details": {"cached_tokens": 800},
    "completion_tokens": 90,
    "completion_tokens_details": {"reasoning_tokens": 60},
}


def test_openai_cached_tokens_are_part_of_the_prompt() -> None:
    expected = Usage(150, 800, 50, 90, 60)
    assert RESPONSES.usage(RESPONSE) == expected
    assert expected.sent == 1_000


def test_openai_objects_are_read_like_dicts() -> None:
    usage = SimpleNamespace(
        input_tokens=1_000,
        input_tokens_details=SimpleNamespace(cached_tokens=800),
        output_tokens=90,
        output_tokens_details=SimpleNamespace(reasoning_tokens=60),
    )
    assert RESPONSES.usage(usage) == Usage(200, 800, 0, 90, 60)


def test_chat_completion_cached_tokens_are_part_of_the_prompt() -> None:
    assert CHAT.usage(COMPLETION) == Usage(200, 800, 0, 90, 60)
    assert CHAT.usage({"prompt_tokens": 7, "completion_tokens": 1}) == Usage(7, 0, 0, 1)


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_gemini_cache_is_in_the_prompt_and_thoughts_and_tools_beside(spelling: str) -> None:
    camel = {
        "promptTokenCount": 1_000,
        "toolUsePromptTokenCount": 40,
        "cachedContentTokenCount": 700,
        "candidatesTokenCount": 60,
        "thoughtsTokenCount": 25,
        "totalTokenCount": 1_125,
    }
    snake = SimpleNamespace(
        usage_metadata=SimpleNamespace(
            prompt_token_count=1_000,
            tool_use_prompt_token_count=40,
            cached_content_token_count=700,
            candidates_token_count=60,
            thoughts_token_count=25,
        )
    )
    usage = generate_usage({"usageMetadata": camel} if spelling == "camel" else snake)
    assert usage == Usage(340, 700, 0, 85, 25)
    assert usage is not None
    assert usage.held == camel["totalTokenCount"]


def test_gemini_chunk_without_candidates_has_no_reply() -> None:
    assert generate_usage({"usageMetadata": {"promptTokenCount": 5}}) == Usage(5, 0, 0, 0)
    assert generate_usage({"candidates": []}) is None


@pytest.mark.parametrize("shape", [RESPONSES, CHAT], ids=["responses", "chat"])
def test_empty_usage_is_an_error(shape: UsageShape) -> None:
    with pytest.raises(InvalidUsage):
        shape.usage({})


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        (RESPONSES, {**RESPONSE, "input_tokens": 849}),
        (CHAT, {**COMPLETION, "prompt_tokens": 799}),
        (GENERATE, {"promptTokenCount": 5, "cachedContentTokenCount": 6}),
    ],
    ids=["responses", "chat", "generate"],
)
def test_more_cached_than_sent_is_an_error(shape: UsageShape, answer: Json) -> None:
    with pytest.raises(InvalidUsage, match="at most the prompt"):
        shape.usage(answer)


def test_more_reasoning_than_output_is_an_error() -> None:
    with pytest.raises(InvalidUsage, match="reasoning"):
        CHAT.usage({**COMPLETION, "completion_tokens": 5})


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a", {"b": {"c": 3}}), ("a.b.c", 3), ("a.x", None), ("x.b.c", None), ("a.b.c.d", None)],
)
def test_missing_path_gives_none(path: str, expected: object) -> None:
    assert get_path({"a": {"b": {"c": 3}}}, path) == expected


COUNTS = st.integers(0, 1 << 40)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_typed_records_give_the_same_as_the_rows(
    uncached: int, read: int, write: int, output: int
) -> None:
    record = MessageUsage(uncached, output, read, write)
    expected = MESSAGES.usage(record)
    assert MESSAGES.usage(msgspec.to_builtins(record)) == expected
    assert usage_of(record) == (expected if expected.held else None)


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["input_tokens", "output_tokens", "cache_read_input_tokens", "iterations", "type"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSONISH)
def test_garbage_gives_usage_none_or_invalid_usage(answer: object) -> None:
    try:
        usage = usage_of(answer)
    except InvalidUsage:
        return
    assert usage is None or isinstance(usage, Usage)


def one_pass(kind: str, sent: int, output: int) -> Json:
    return {"type": kind, "input_tokens": sent, "output_tokens": output}


def test_pass_after_a_compaction_counts() -> None:
    passes = [one_pass("compaction", 180_000, 3_500), one_pass("message", 23_000, 1_000)]
    usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": passes}
    assert usage_of(usage) == Usage(23_000, 0, 0, 1_000)
    assert find_api_compaction(usage) == ApiCompaction(
        Usage(180_000, 0, 0, 3_500), has_call_after=True
    )


def test_pass_before_a_final_compaction_counts() -> None:
    passes = [one_pass("message", 150_000, 20), one_pass("compaction", 3_000, 900)]
    usage = {"input_tokens": 150_000, "output_tokens": 20, "iterations": passes}
    assert usage_of(usage) == Usage(150_000, 0, 0, 20)
    assert find_api_compaction(usage) == ApiCompaction(
        Usage(3_000, 0, 0, 900), has_call_after=False
    )


def test_separate_compaction_is_no_call() -> None:
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [one_pass("compaction", 9, 1)]}
    assert usage_of(usage) is None
    assert find_api_compaction(usage) == ApiCompaction(Usage(9, 0, 0, 1), has_call_after=False)
    assert find_api_compaction(MESSAGE) is None


def test_unreadable_start_does_not_end_the_current_message() -> None:
    stream = MessageStream()
    stream.feed({"type": "message_start", "message": {"id": "a", "usage": MESSAGE}})
    bad = {"id": "b", "usage": {**MESSAGE, "input_tokens": -1}}
    with pytest.raises(InvalidUsage):
        stream.feed({"type": "message_start", "message": bad})
    assert stream.is_current("a")


@pytest.mark.parametrize(
    ("usage", "initial", "expected"),
    [
        (Usage(4_500, 0, 0, 1_010), 1_000, Usage(1_000, 0, 0, 1_010)),
        (Usage(1_500, 3_000, 0, 1_010, 7), 1_000, Usage(0, 1_000, 0, 1_010, 7)),
        (Usage(1_000, 0, 0, 5), 1_000, Usage(1_000, 0, 0, 5)),
        (Usage(1_000, 0, 0, 5), None, Usage(1_000, 0, 0, 5)),
        (Usage(1_000, 0, 0, 5), 0, Usage(1_000, 0, 0, 5)),
    ],
)
def test_prompts_summed_over_requests_are_not_one_prompt(
    usage: Usage, initial: object, expected: Usage
) -> None:
    assert collapse_requests(usage, initial) == expected
