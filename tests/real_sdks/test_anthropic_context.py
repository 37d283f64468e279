"""What the Anthropic API itself does to a context: it begins a new cycle, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brimline.testing.fake_model import Compaction, Edit, FakeModel, Pass, Ramp, Reply, Scenario

from .bill import Beside, buckets
from .connect import CLAUDE, anthropic

pytestmark = pytest.mark.slow

QUESTION = {"role": "user", "content": "Weather in Paris?"}
CALL: dict[str, Any] = {"model": CLAUDE, "max_tokens": 1_000, "messages": [QUESTION]}
FULL, LITTLE = Reply(text="It rains.", added=180_000), Ramp(start=180_000, after_compaction=9_000)
COST = Compaction(input=3_000, output=900)


def whole(beside: Beside, api: Any, **call: Any) -> Any:
    """A whole answer."""
    answer = api.create(**CALL | call)
    beside.tracker.observe(answer)
    beside.take_again(answer)
    return answer


def raw(beside: Beside, api: Any, **call: Any) -> Any:
    """The raw events of a stream; the content is not put together."""
    for event in beside.tracker.track(api.create(**CALL | call, stream=True)):
        beside.take_again(event)


def helper(beside: Beside, api: Any, **call: Any) -> Any:
    """The stream helper."""
    with beside.tracker.track(api.stream(**CALL | call)) as stream:
        for event in stream:
            beside.take_again(event)
        return stream.get_final_message()


Way = Callable[..., Any]
WAYS = pytest.mark.parametrize("way", [whole, raw, helper])
BETA = pytest.mark.parametrize("beta", [True, False], ids=["beta", "plain"])


def _messages(sdk: Any, beta: bool) -> Any:
    return sdk.beta.messages if beta else sdk.messages


def check_cycle(beside: Beside) -> None:
    """The edit began one cycle, and was not inferred from the fall."""
    thread = beside.tracker.session.threads["main"]
    assert [each.inferred for each in thread.compactions] == [False]
    assert (thread.cycle, thread.edits) == (1, 1)


@WAYS
@BETA
def test_cleared_tool_results(way: Way, beta: bool) -> None:
    """An edit that the API tells of explains the fall of what was sent."""
    edits = (
        Edit(tokens=150_000, count=8),
        Edit(kind="clear_thinking_20251015", tokens=9_000, count=3),
    )
    scenario = Scenario(main=(FULL, Reply(text="Still.", added=185_000, edits=edits)))
    with FakeModel(scenario) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        for _ in scenario.main:
            way(beside, _messages(sdk, beta))
            beside.check()
    assert beside.reading().sent in range(26_000, 26_100)
    check_cycle(beside)


@WAYS
@BETA
def test_compaction_on_the_way(way: Way, beta: bool) -> None:
    """The API sums up and answers: what is held is the answer's pass, the cost is beside it."""
    scenario = Scenario(main=(FULL, Reply(text="Still.", compaction=COST)), ramp=LITTLE)
    with FakeModel(scenario) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        for _ in range(3):
            way(beside, _messages(sdk, beta))
            beside.check()
        assert beside.reading().sent in range(9_000, 9_200)
        check_cycle(beside)
        _cost_is_beside(beside)


@WAYS
def test_compaction_that_pauses(way: Way) -> None:
    """Where the summary is the whole answer, what is held is not known before the next one."""
    pausing = Compaction(input=3_000, output=900, paused=True)
    scenario = Scenario(main=(FULL, Reply(compaction=pausing)), ramp=LITTLE)
    with FakeModel(scenario) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        for known in (True, False, True):
            way(beside, sdk.beta.messages)
            assert (beside.reading().sent is not None) is known
        assert beside.reading().sent in range(9_000, 9_200)
        check_cycle(beside)
        _cost_is_beside(beside)


@WAYS
def test_compaction_on_demand(way: Way) -> None:
    """A request for a summary is billed, and is no call of the conversation."""
    with FakeModel(Scenario(main=(FULL,), ramp=LITTLE)) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        way(beside, sdk.beta.messages)
        way(beside, sdk.beta.messages, compaction={"type": "summarize"})
        assert (beside.reading().sent, beside.reading().state) == (None, "unknown")
        _cost_is_beside(beside)
        way(beside, sdk.beta.messages)
        assert beside.reading().sent == beside.billed()[-1].usage.input
        check_cycle(beside)


@pytest.mark.parametrize("beta", [True, False])
@pytest.mark.parametrize("way", [whole, raw, helper])
def test_loop_on_the_server(way: Way, beta: bool) -> None:
    """Of several passes the last is what is held, not their sum and not another model's."""
    passes = (
        Pass(input=10_000, output=10),
        Pass(kind="advisor_message", input=70_000, output=70),
    )
    with (
        FakeModel(Scenario(main=(Reply(text="x", passes=passes),))) as fake,
        anthropic(fake) as sdk,
    ):
        beside = Beside(fake)
        way(beside, _messages(sdk, beta))
        beside.check()


def _cost_is_beside(beside: Beside) -> None:
    """What compactions took is counted in a thread of its own, whose prompt is nobody's."""
    calls = beside.tracker.session.threads["compaction"].calls.values()
    billed = [buckets(one.usage) for one in beside.billed("compaction")]
    assert [buckets(call.usage) for call in calls] == billed
    assert billed
