"""Context edits by the API: edits, passes and compactions, reported as by the real APIs."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from brimline.testing.fake_model import (
    Compaction,
    Edit,
    FakeModel,
    Pass,
    Ramp,
    Reply,
    Scenario,
)

Json = dict[str, Any]

ASKED: Json = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
COST = Compaction(input=3_000, output=900)
PAUSE = Compaction(input=3_000, output=900, paused=True)
RAMP = Ramp(start=80_000, after_compaction=5_000)


def post(model: FakeModel, path: str, body: Json) -> str:
    """Send one request and read the whole answer."""
    request = urllib.request.Request(model.base_url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def message(model: FakeModel, **more: Any) -> Json:
    """An Anthropic message."""
    return json.loads(post(model, "/v1/messages", ASKED | more))


def events(model: FakeModel, path: str, body: Json) -> list[Json]:
    """The events of a stream."""
    lines = post(model, path, body | {"stream": True}).splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def threads(model: FakeModel) -> list[str]:
    """The threads billed, in order."""
    return [one.thread for one in model.billed]


def test_edits_are_reported_and_subtracted() -> None:
    """What was cleared is in the answer, and no longer in the prompt."""
    edits = (Edit(tokens=50_000, count=8), Edit(kind="clear_thinking_20251015", tokens=9_000))
    replies = (Reply(text="x", added=80_000), Reply(text="x", added=80_000, edits=edits))
    with FakeModel(Scenario(main=replies)) as model:
        plain, edited = message(model), message(model)
    assert "context_management" not in plain
    assert edited["context_management"]["applied_edits"] == [
        {
            "type": "clear_tool_uses_20250919",
            "cleared_input_tokens": 50_000,
            "cleared_tool_uses": 8,
        },
        {
            "type": "clear_thinking_20251015",
            "cleared_input_tokens": 9_000,
            "cleared_thinking_turns": 1,
        },
    ]
    assert plain["usage"]["input_tokens"] - edited["usage"]["input_tokens"] == 59_000


def test_edits_are_reported_at_the_end_of_a_stream() -> None:
    """The message begins without them."""
    reply = Reply(text="x", added=80_000, edits=(Edit(tokens=50_000),))
    with FakeModel(Scenario(main=(reply,))) as model:
        first, *_, delta, _ = events(model, "/v1/messages", ASKED)
    assert "context_management" not in first["message"]
    assert len(delta["context_management"]["applied_edits"]) == 1


def test_passes_add_up() -> None:
    """The top level is the sum of the conversation's own passes; the last is billed."""
    passes = (Pass(input=100, output=10), Pass(kind="advisor_message", input=7_000, output=70))
    with FakeModel(Scenario(main=(Reply(text="x", passes=passes, output=5),))) as model:
        usage = message(model)["usage"]
        (billed,) = model.billed
    kinds = [one["type"] for one in usage["iterations"]]
    assert kinds == ["message", "advisor_message", "message"]
    assert usage["iterations"][-1]["input_tokens"] == billed.usage.input
    assert usage["input_tokens"] == 100 + billed.usage.input
    assert (usage["output_tokens"], billed.usage.output) == (15, 5)


def test_compaction_in_an_answer() -> None:
    """It stands before the answer, took a pass of its own, and the prompt is small after it."""
    with FakeModel(Scenario(main=(Reply(text="x", compaction=COST),), ramp=RAMP)) as model:
        answer = message(model)
        compaction, billed = model.billed
    assert [one["type"] for one in answer["content"]] == ["compaction", "text"]
    assert [one["type"] for one in answer["usage"]["iterations"]] == ["compaction", "message"]
    assert answer["usage"]["input_tokens"] == billed.usage.input
    assert billed.usage.input in range(5_000, 5_100)
    assert (compaction.thread, compaction.usage.input, compaction.usage.output) == (
        "compaction",
        3_000,
        900,
    )


def test_stream_begins_before_the_compaction() -> None:
    """The first event has the prompt as it was sent, the last the final usage."""
    with FakeModel(Scenario(main=(Reply(text="x", compaction=COST),), ramp=RAMP)) as model:
        first, *rest, delta, _ = events(model, "/v1/messages", ASKED)
    assert first["message"]["usage"]["input_tokens"] > 80_000
    assert delta["usage"]["input_tokens"] < 6_000
    (summary,) = [one for one in rest if one.get("delta", {}).get("type") == "compaction_delta"]
    assert summary["delta"]["content"].startswith("<summary>")


@pytest.mark.parametrize("asked", [{}, {"compaction": {"type": "summarize"}}])
def test_compaction_alone(asked: Json) -> None:
    """Paused or on demand, the summary is all: nothing of the conversation is billed."""
    replies = () if asked else (Reply(compaction=PAUSE),)
    with FakeModel(Scenario(main=replies, ramp=RAMP)) as model:
        answer = message(model, **asked)
        assert threads(model) == ["compaction"]
        after = message(model)
    assert [one["type"] for one in answer["content"]] == ["compaction"]
    assert (answer["stop_reason"], answer["usage"]["input_tokens"]) == ("compaction", 0)
    assert [one["type"] for one in answer["usage"]["iterations"]] == ["compaction"]
    assert after["usage"]["input_tokens"] in range(5_000, 5_100)


def test_what_came_before_a_compaction_does_not_count() -> None:
    """The prompt begins at the last compaction that the client sends back; instructions stay."""
    long, short = {"role": "user", "content": "Hello " * 500}, {"role": "user", "content": "Go on."}
    block = {"role": "assistant", "content": [{"type": "compaction", "content": "Summary."}]}
    item = {"type": "compaction", "encrypted_content": "Summary."}
    with FakeModel() as model:
        message(model, messages=[long, block, short], system="Be brief. " * 50)
        body = {"model": "m", "instructions": "Be brief. " * 50, "input": [long, item, short]}
        post(model, "/v1/responses", body)
    assert all(one.usage.input in range(125, 250) for one in model.billed)


def test_compaction_item() -> None:
    """A response has the summary as an item before the message; usage is the answer's alone."""
    body = {"model": "m", "input": "Hello"}
    scenario = Scenario(main=(Reply(text="x", compaction=COST),) * 2, ramp=RAMP)
    with FakeModel(scenario) as model:
        answer = json.loads(post(model, "/v1/responses", body))
        stream_events = events(model, "/v1/responses", body)
        assert threads(model) == ["main", "main"]
        assert answer["usage"]["input_tokens"] == model.billed[0].usage.input
    assert [one["type"] for one in answer["output"]] == ["compaction", "message"]
    kinds = [one["type"].removeprefix("response.") for one in stream_events[2:5]]
    assert kinds == ["output_item.added", "compaction.compacting", "output_item.done"]


def test_compaction_of_responses_on_demand() -> None:
    """It is an object of its own, billed to no conversation."""
    with FakeModel(Scenario(ramp=RAMP)) as model:
        answer = json.loads(post(model, "/v1/responses/compact", {"model": "m", "input": "Hello"}))
        (billed,) = model.billed
    assert (answer["object"], billed.thread) == ("response.compaction", "compaction")
    assert answer["usage"] == billed.raw
    assert [one["type"] for one in answer["output"]] == ["compaction"]
