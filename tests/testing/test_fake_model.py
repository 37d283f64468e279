"""The fake model over HTTP: what each API answers, and that it is what was billed."""

from __future__ import annotations

import http.client
import json
import time
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from brimline.testing.fake_model import FakeModel, Ramp, Reply, Scenario, ToolCall

Json = dict[str, Any]

BODIES: dict[str, Json] = {
    "/v1/messages": {"model": "m", "messages": [{"role": "user", "content": "Hello"}]},
    "/v1/responses": {"model": "m", "input": "Hello"},
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "Hello"}]},
    "/v1beta/models/m:generateContent": {"contents": [{"parts": [{"text": "Hello"}]}]},
}
USAGE = ("usage", "usage", "usage", "usageMetadata")
PATHS = list(BODIES)


def post(
    model: FakeModel, path: str, body: Json, headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Send one request and read the whole answer."""
    connection = http.client.HTTPConnection(urlsplit(model.base_url).netloc, timeout=10)
    connection.request("POST", path, json.dumps(body), dict(headers or {}))
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def events(text: str) -> list[Json]:
    """The JSON of every server-sent event."""
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


@pytest.mark.parametrize(("path", "place"), list(zip(PATHS, USAGE, strict=True)))
def test_answer_has_the_billed_usage(path: str, place: str) -> None:
    """The usage in an answer is the raw usage of its billing record."""
    with FakeModel() as model:
        status, text = post(model, path, BODIES[path])
        (billed,) = model.billed
    assert status == 200
    assert json.loads(text)[place] == billed.raw
    assert json.loads(text).get("id", json.loads(text).get("responseId")) == billed.id


def test_answers_have_the_headers_of_the_scenario() -> None:
    headers = {"anthropic-ratelimit-unified-5h-utilization": "0.62"}
    with FakeModel(Scenario(headers=headers)) as model:
        for stream in (False, True):
            request = urllib.request.Request(
                f"{model.base_url}/v1/messages",
                json.dumps({**BODIES["/v1/messages"], "stream": stream}).encode(),
            )
            with urllib.request.urlopen(request, timeout=10) as answer:
                assert headers.items() <= dict(answer.headers).items()


def test_anthropic_stream() -> None:
    """A stream opens with one output token and has the final usage in message_delta."""
    reply = Reply(text="Hi.", reasoning="Hm.", tools=(ToolCall("Bash", {"command": "ls"}),))
    with FakeModel(Scenario(main=(reply,))) as model:
        _, text = post(model, "/v1/messages", BODIES["/v1/messages"] | {"stream": True})
        (billed,) = model.billed
    first, *_, delta, last = events(text)
    assert first["message"]["usage"]["output_tokens"] == 1
    assert delta["usage"] == billed.raw
    assert delta["delta"]["stop_reason"] == "tool_use"
    assert last == {"type": "message_stop"}
    kinds = [one["content_block"]["type"] for one in events(text) if "content_block" in one]
    assert kinds == ["thinking", "text", "tool_use"]


def test_responses_stream() -> None:
    """A stream ends with the whole response and its usage."""
    tool = ToolCall("spawn", {"a": 1}, namespace="agents")
    reply = Reply(text="Hi.", reasoning="Hm.", tools=(tool,))
    with FakeModel(Scenario(main=(reply,))) as model:
        _, text = post(model, "/v1/responses", BODIES["/v1/responses"] | {"stream": True})
        (billed,) = model.billed
    last = events(text)[-1]
    assert last["type"] == "response.completed"
    assert last["response"]["usage"] == billed.raw
    output = last["response"]["output"]
    assert [one["type"] for one in output] == ["reasoning", "message", "function_call"]
    assert output[-1]["namespace"] == "agents"


def test_responses_stream_opens_fills_and_closes_each_item() -> None:
    """An item is opened empty, its deltas are what it has at its end, and events are numbered."""
    reply = Reply(text="Hi.", reasoning="Hm.", tools=(ToolCall("ls", {"a": 1}),))
    with FakeModel(Scenario(main=(reply,))) as model:
        _, text = post(model, "/v1/responses", BODIES["/v1/responses"] | {"stream": True})
    stream_events = events(text)
    assert [one["sequence_number"] for one in stream_events] == list(range(len(stream_events)))
    assert [one["response"]["status"] for one in stream_events[:2]] == ["in_progress"] * 2
    assert [one["delta"] for one in stream_events if "delta" in one] == ["Hm.", "Hi.", '{"a":1}']
    kinds = [one["type"].removeprefix("response.") for one in stream_events]
    assert kinds[8:14] == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert [
        stream_events[8]["item"]["content"],
        stream_events[13]["item"]["content"][0]["text"],
    ] == [[], "Hi."]


@pytest.mark.parametrize("asked", [True, False])
def test_chat_stream_has_usage_only_if_requested(asked: bool) -> None:
    """Chat Completions report usage in a stream only with include_usage; it is billed anyway."""
    body = BODIES["/v1/chat/completions"] | {"stream": True}
    body |= {"stream_options": {"include_usage": asked}}
    reply = Reply(text="Hi.", tools=(ToolCall("ls"),))
    with FakeModel(Scenario(main=(reply,))) as model:
        _, text = post(model, "/v1/chat/completions", body)
        (billed,) = model.billed
    usages = [one["usage"] for one in events(text) if "usage" in one]
    assert usages == ([None, None, billed.raw] if asked else [])
    assert events(text)[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "ls"


def test_chat_stream_with_growing_usage() -> None:
    """Where it is asked for, each chunk has the usage so far, as other servers' have."""
    body = BODIES["/v1/chat/completions"] | {"stream": True}
    body |= {"stream_options": {"continuous_usage_stats": True}}
    with FakeModel(Scenario(main=(Reply(text="Hi.", output=40),))) as model:
        _, text = post(model, "/v1/chat/completions", body)
    assert [one["usage"]["completion_tokens"] for one in events(text)] == [1, 40]


def test_gemini_stream() -> None:
    """Every chunk has the usage so far; thoughts come first and are counted separately."""
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    reply = Reply(text="Hi there, you.", reasoning="Hm, hm, hm, hm.", tools=(ToolCall("ls"),))
    with FakeModel(Scenario(main=(reply,))) as model:
        _, text = post(model, path, BODIES["/v1beta/models/m:generateContent"])
        (billed,) = model.billed
    first, second, last = (one["usageMetadata"] for one in events(text))
    assert last == billed.raw
    assert billed.raw["thoughtsTokenCount"] == billed.usage.reasoning
    assert billed.raw["candidatesTokenCount"] == billed.usage.output - billed.usage.reasoning
    assert {one["promptTokenCount"] for one in (first, second, last)} == {billed.usage.input}
    assert "candidatesTokenCount" not in first
    assert second["candidatesTokenCount"] < last["candidatesTokenCount"]


def test_gemini_continuation_token() -> None:
    """An unfinished answer ends with a token with which the client asks for the rest."""
    path = "/v1beta/models/m:generateContent"
    with FakeModel(Scenario(main=(Reply(text="Hi", unfinished=True),))) as model:
        hop, end = (json.loads(post(model, path, BODIES[path])[1]) for _ in range(2))
    assert hop["candidates"][0]["finishReason"] == "CONTINUATION"
    assert hop["candidates"][0]["continuationToken"]
    assert end["candidates"][0]["finishReason"] == "STOP"


ERRORS = [("overloaded", 529), ("rate_limited", 429), ("server", 500), ("prompt_too_long", 400)]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("kind", "status"), ERRORS)
def test_errors_are_not_billed(path: str, kind: Any, status: int) -> None:
    """A refused call costs nothing and is kept apart."""
    with FakeModel(Scenario(main=(Reply(error=kind),))) as model:
        got, text = post(model, path, BODIES[path])
        assert (got, model.billed) == (status, ())
        assert [one.status for one in model.refused] == [status]
    assert "error" in json.loads(text)


def test_prompt_above_the_window_is_refused() -> None:
    """With a window the fake refuses what is larger, and says how large it was."""
    with FakeModel(Scenario(window=100, ramp=Ramp(start=500))) as model:
        status, text = post(model, "/v1/messages", BODIES["/v1/messages"])
    assert status == 400
    assert "tokens > 100 maximum" in json.loads(text)["error"]["message"]


COUNTS = [
    ("/v1/messages/count_tokens", "/v1/messages", "input_tokens"),
    ("/v1beta/models/m:countTokens", "/v1beta/models/m:generateContent", "totalTokens"),
]


@pytest.mark.parametrize(("path", "like", "name"), COUNTS)
def test_counting_is_not_billed(path: str, like: str, name: str) -> None:
    """Counting tokens is no call."""
    with FakeModel() as model:
        status, text = post(model, path, BODIES[like])
        assert (status, model.billed) == (200, ())
    assert json.loads(text)[name] > 0


def test_unknown_paths_and_bodies_are_refused_clearly() -> None:
    """A path that is not there is 404, a body that cannot be read is 400 with its place."""
    with FakeModel() as model:
        assert post(model, "/v1/nothing", {})[0] == 404
        status, text = post(model, "/v1/messages", {"model": "m"})
    assert status == 400
    assert "messages" in text


def test_small_endpoints_answer() -> None:
    """Clients that look for the server or its models find them."""
    with FakeModel() as model:
        connection = http.client.HTTPConnection(urlsplit(model.base_url).netloc, timeout=10)
        for method, path, status in (
            ("HEAD", "/", 200),
            ("GET", "/v1/models?limit=5", 200),
            ("GET", "/v1/nothing", 404),
        ):
            connection.request(method, path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
        connection.close()


def test_body_in_chunks() -> None:
    """A client may send its request without telling its length."""
    body = json.dumps(BODIES["/v1/messages"]).encode()
    with FakeModel() as model:
        connection = http.client.HTTPConnection(urlsplit(model.base_url).netloc, timeout=10)
        chunks = iter([body[:20], body[20:]])
        connection.request("POST", "/v1/messages", chunks, encode_chunked=True)
        assert connection.getresponse().status == 200
        connection.close()
        assert len(model.billed) == 1


def test_delay_and_pace_slow_the_answer() -> None:
    """A reply can come late and event by event."""
    reply = Reply(text="Hi.", delay=0.1, pace=0.02)
    with FakeModel(Scenario(main=(reply,))) as model:
        started = time.monotonic()
        _, text = post(model, "/v1/messages", BODIES["/v1/messages"] | {"stream": True})
        assert time.monotonic() - started >= 0.1 + 0.02 * len(events(text))
