"""Usage out of what providers answer: dicts, objects, events; disjoint or subset."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidUsage
from brimline.providers import (
    CHAT,
    GENERATE,
    INTERACTION,
    MESSAGES,
    REQUEST,
    RESPONSES,
    SHAPES,
    UsageShape,
)
from brimline.providers.anthropic import (
    ApiCompaction,
    CallPass,
    MessageStream,
    MessageUsage,
    find_api_compaction,
    usage_of,
)
from brimline.providers.gemini import collapse_requests, generate_usage
from brimline.providers.rows import get_path
from brimline.usage import Usage

Json = dict[str, Any]

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
    """The way an SDK hands usage over: attributes, unknown ones None."""

    input_tokens: Any = 4
    cache_creation_input_tokens: Any = 1_200
    cache_read_input_tokens: Any = 30_000
    output_tokens: Any = 250
    iterations: Any = None


def test_shapes_by_name() -> None:
    """Every shape is found by its name, and says whether the prompt has the cache in."""
    assert list(SHAPES.values()) == [MESSAGES, RESPONSES, CHAT, GENERATE, INTERACTION, REQUEST]
    assert all(shape.name == name for name, shape in SHAPES.items())
    assert {name: shape.cached for name, shape in SHAPES.items()} == {
        "anthropic-messages": "disjoint",
        "openai-responses": "subset",
        "openai-chat": "subset",
        "gemini-generate-content": "subset",
        "gemini-interaction": "subset",
        "pydantic-ai-request": "subset",
    }


def test_anthropic_answer() -> None:
    """Anthropic's input excludes the cache: the three add up to what was sent."""
    usage = usage_of(MESSAGE)
    assert usage == Usage(4, 30_000, 1_200, 250)
    assert usage is not None
    assert usage.sent == 31_204


def test_anthropic_object() -> None:
    """An SDK's object gives the same as its dict."""
    assert usage_of(SdkUsage()) == usage_of(MESSAGE)


def test_anthropic_cache_left_out() -> None:
    """The cache counts may be missing or null: then there was no cache."""
    assert usage_of({"input_tokens": 9, "output_tokens": 1}) == Usage(9, 0, 0, 1)
    nulls = SdkUsage(9, None, None, 1)
    assert usage_of(nulls) == Usage(9, 0, 0, 1)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_missing_required_field(shape: UsageShape) -> None:
    """A required count that is not there is an error with its name, never a zero."""
    full = {row.paths[0]: 5 for row in shape.rows if row.required}
    assert full
    for name in full:
        with pytest.raises(InvalidUsage, match="it is missing") as caught:
            shape.usage({key: value for key, value in full.items() if key != name})
        assert caught.value.field == name


@pytest.mark.parametrize("value", [-1, "5", 5.0, math.nan, True, [], {}], ids=repr)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_count_that_cannot_be(shape: UsageShape, value: object) -> None:
    """A count that is negative or no integer is refused in every row, and its path is named."""
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


def test_no_usage_at_all() -> None:
    """Something that is no usage is an error, not an empty call."""
    for nonsense in NONSENSE:
        with pytest.raises(InvalidUsage):
            usage_of(nonsense)


def test_zero_usage_is_no_call() -> None:
    """A message that the client made up itself, all zero, is no call."""
    assert usage_of({"input_tokens": 0, "output_tokens": 0}) is None
    assert usage_of(MessageUsage(0, 0)) is None


def test_zero_top_level_over_iterations() -> None:
    """A preserved message, written again with zeros over its passes, is no call either."""
    passes = [{"type": "message", "input_tokens": 3, "output_tokens": 9}] * 2
    zero = {"input_tokens": 0, "output_tokens": 0, "iterations": passes}
    assert usage_of(zero) is None
    assert usage_of(MessageUsage(0, 0, iterations=(CallPass(3, 9), CallPass(3, 9)))) is None


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


def test_advisor_pass() -> None:
    """With several passes the last that is no advisor's is what the thread sent, not the sum."""
    expected = Usage(5, 46_000, 1_000, 400)
    assert usage_of(ADVISED) == expected
    assert usage_of(msgspec.convert(ADVISED, MessageUsage)) == expected


def test_advisor_last() -> None:
    """An advisor's pass at the end is passed over."""
    passes = [ADVISED["iterations"][0], ADVISED["iterations"][1]]
    assert usage_of({**ADVISED, "iterations": passes}) == Usage(5, 44_000, 1_000, 300)


def test_only_advisors() -> None:
    """Where every pass is an advisor's, the top level is all there is."""
    passes = [ADVISED["iterations"][1]] * 2
    assert usage_of({**ADVISED, "iterations": passes}) == Usage(10, 90_000, 2_000, 700)


@pytest.mark.parametrize("passes", [None, [], [{"type": "message", "input_tokens": 1}]], ids=repr)
def test_one_pass_or_none(passes: object) -> None:
    """One pass, none or null: the top level counts."""
    assert usage_of({**MESSAGE, "iterations": passes}) == usage_of(MESSAGE)


def test_malformed_pass() -> None:
    """A last pass without its counts is an error, not a silent fall back to the sum."""
    with pytest.raises(InvalidUsage, match="input_tokens"):
        usage_of({**MESSAGE, "iterations": [{"type": "message"}, {"type": "message"}]})


def start(usage: object, name: object = "msg_1", model: object = "claude-opus-5-5") -> Json:
    """A message_start event."""
    message = {"id": name, "model": model, "usage": usage}
    return {"type": "message_start", "message": message}


def delta(**usage: object) -> Json:
    """A message_delta event."""
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


def test_stream() -> None:
    """Input comes at message_start, the final output at message_delta."""
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


def test_stream_of_objects() -> None:
    """An SDK's event objects are followed the same way."""
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


def test_delta_repeats_the_prompt() -> None:
    """A delta that tells the prompt again counts; one that says 0 does not undo the start."""
    stream = MessageStream()
    stream.feed(start({"input_tokens": 10, "output_tokens": 1}))
    told = stream.feed(delta(input_tokens=12, cache_read_input_tokens=7, output_tokens=3))
    assert told is not None
    assert told.usage == Usage(12, 7, 0, 3)
    zeros = stream.feed(delta(input_tokens=0, cache_read_input_tokens=0, output_tokens=4))
    assert zeros is not None
    assert zeros.usage == Usage(12, 7, 0, 4)


def test_delta_with_an_advisor() -> None:
    """The passes that come with the delta are read as those of an answer."""
    stream = MessageStream()
    stream.feed(start({"input_tokens": 5, "output_tokens": 1}))
    told = stream.feed(delta(**ADVISED))
    assert told is not None
    assert told.usage == Usage(5, 46_000, 1_000, 400)


def test_delta_without_usage() -> None:
    """A delta without usage, or before any start, says nothing."""
    stream = MessageStream()
    assert stream.feed(delta(output_tokens=3)) is None
    stream.feed(start(MESSAGE))
    assert stream.feed({"type": "message_delta"}) is None


def test_delta_without_output() -> None:
    """A delta's usage without the output is an error."""
    stream = MessageStream()
    stream.feed(start(MESSAGE))
    with pytest.raises(InvalidUsage, match="output_tokens"):
        stream.feed(delta(input_tokens=3))


@pytest.mark.parametrize("name", [None, 7])
def test_start_without_an_id(name: object) -> None:
    """A message without an id cannot be counted once, so it is not counted."""
    assert MessageStream().feed(start(MESSAGE, name=name)) is None


def test_a_message_is_not_the_one_before() -> None:
    """A message that begins all zero takes the place of the one before it."""
    stream = MessageStream()
    stream.feed(start(MESSAGE, name="msg_1"))
    stream.feed(start({"input_tokens": 0, "output_tokens": 0}, name="msg_2"))
    told = stream.feed(delta(input_tokens=20, output_tokens=5))
    assert told is None or told.id == "msg_2"


def test_usage_that_comes_only_at_the_end() -> None:
    """A provider that tells zeros first and the counts in the delta is counted."""
    stream = MessageStream()
    stream.feed(start({"input_tokens": 0, "output_tokens": 0}))
    told = stream.feed(delta(input_tokens=20, output_tokens=5))
    assert told is not None
    assert (told.id, told.usage) == ("msg_1", Usage(20, 0, 0, 5))


def test_stream_that_stays_empty() -> None:
    """A message that is all zero from start to end is no call."""
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


def test_responses() -> None:
    """OpenAI's cached tokens are a part of the prompt."""
    expected = Usage(150, 800, 50, 90, 60)
    assert RESPONSES.usage(RESPONSE) == expected
    assert expected.sent == 1_000


def test_responses_of_objects() -> None:
    """The SDK's nested objects are read like dicts."""
    usage = SimpleNamespace(
        input_tokens=1_000,
        input_tokens_details=SimpleNamespace(cached_tokens=800),
        output_tokens=90,
        output_tokens_details=SimpleNamespace(reasoning_tokens=60),
    )
    assert RESPONSES.usage(usage) == Usage(200, 800, 0, 90, 60)


def test_chat() -> None:
    """Chat Completions spell the same otherwise."""
    assert CHAT.usage(COMPLETION) == Usage(200, 800, 0, 90, 60)
    assert CHAT.usage({"prompt_tokens": 7, "completion_tokens": 1}) == Usage(7, 0, 0, 1)


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_gemini(spelling: str) -> None:
    """Gemini's cache is in the prompt, its thoughts are beside the answer, tools beside both."""
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


def test_gemini_before_the_answer() -> None:
    """A chunk without candidates has a prompt and no reply; without metadata it says nothing."""
    assert generate_usage({"usageMetadata": {"promptTokenCount": 5}}) == Usage(5, 0, 0, 0)
    assert generate_usage({"candidates": []}) is None


@pytest.mark.parametrize("shape", [RESPONSES, CHAT], ids=["responses", "chat"])
def test_empty_usage_is_malformed(shape: UsageShape) -> None:
    """Usage that is there and empty has lost its fields: an error, not silence."""
    with pytest.raises(InvalidUsage):
        shape.usage({})


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        (RESPONSES, {**RESPONSE, "input_tokens": 849}),
        (CHAT, {**COMPLETION, "prompt_tokens": 799}),
        (GENERATE, {"promptTokenCount": 5, "cachedContentTokenCount": 6}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_more_cached_than_sent(shape: UsageShape, answer: Json) -> None:
    """A subset that is larger than its prompt is an error."""
    with pytest.raises(InvalidUsage, match="at most the prompt"):
        shape.usage(answer)


def test_more_reasoning_than_output() -> None:
    """Reasoning beyond the output is an error."""
    with pytest.raises(InvalidUsage, match="reasoning"):
        CHAT.usage({**COMPLETION, "completion_tokens": 5})


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", {"b": {"c": 3}}), ("a.b.c", 3), ("a.x", None), ("x.b.c", None), ("a.b.c.d", None)],
)
def test_walk(path: str, found: object) -> None:
    """A path that leads nowhere ends in None, also through what is no mapping."""
    assert get_path({"a": {"b": {"c": 3}}}, path) == found


COUNTS = st.integers(0, 1 << 40)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_typed_records_have_the_shape(uncached: int, read: int, write: int, output: int) -> None:
    """The quick way on typed records gives what the rows give."""
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
def test_garbage(answer: object) -> None:
    """Whatever comes, there is a usage, nothing, or InvalidUsage."""
    try:
        usage = usage_of(answer)
    except InvalidUsage:
        return
    assert usage is None or isinstance(usage, Usage)


def one_pass(kind: str, sent: int, output: int) -> Json:
    """A pass of a call."""
    return {"type": kind, "input_tokens": sent, "output_tokens": output}


def test_compaction_before_the_call() -> None:
    """The API's compaction is not what the thread sent; the pass after it is."""
    passes = [one_pass("compaction", 180_000, 3_500), one_pass("message", 23_000, 1_000)]
    told = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": passes}
    assert usage_of(told) == Usage(23_000, 0, 0, 1_000)
    assert find_api_compaction(told) == ApiCompaction(
        Usage(180_000, 0, 0, 3_500), has_call_after=True
    )


def test_compaction_after_the_call() -> None:
    """A call that stops after its compaction sent what the pass before it did."""
    passes = [one_pass("message", 150_000, 20), one_pass("compaction", 3_000, 900)]
    told = {"input_tokens": 150_000, "output_tokens": 20, "iterations": passes}
    assert usage_of(told) == Usage(150_000, 0, 0, 20)
    assert find_api_compaction(told) == ApiCompaction(Usage(3_000, 0, 0, 900), has_call_after=False)


def test_compaction_alone() -> None:
    """A compaction that was asked for by itself is no call of the thread."""
    told = {"input_tokens": 0, "output_tokens": 0, "iterations": [one_pass("compaction", 9, 1)]}
    assert usage_of(told) is None
    assert find_api_compaction(told) == ApiCompaction(Usage(9, 0, 0, 1), has_call_after=False)
    assert find_api_compaction(MESSAGE) is None


def test_bad_start_leaves_the_stream_as_it_was() -> None:
    """A message_start that cannot be read does not end the message that is under way."""
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
def test_hops(usage: Usage, initial: object, expected: Usage) -> None:
    """Prompts that an SDK added up over its own requests are not taken for one."""
    assert collapse_requests(usage, initial) == expected
