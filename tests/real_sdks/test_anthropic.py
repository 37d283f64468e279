"""The `anthropic` package: answers, raw streams and stream helpers, synchronous and not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from anthropic import beta_tool

from brimline import Tracker
from brimline.testing.fake_model import FakeModel, Ramp, Reply, Scenario

from .bill import LONG, LOOP, WEATHER, Beside, buckets, opened, sent
from .connect import CLAUDE, CLAUDE_WINDOW, anthropic, anthropic_async

pytestmark = pytest.mark.slow

CACHED = {"type": "ephemeral"}
CALL: dict[str, Any] = {
    "model": CLAUDE,
    "max_tokens": 1_000,
    "system": [{"type": "text", "text": LONG, "cache_control": CACHED}],
    "tools": [{"name": WEATHER.name, "description": "", "input_schema": {"type": "object"}}],
}
QUESTION = {"type": "text", "text": "Weather in Paris?", "cache_control": CACHED}


async def create(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole answer."""
    answer = sdk.messages.create(**call)
    beside.take(answer)
    return answer.content


async def acreate(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole answer, asynchronously."""
    answer = await sdk.messages.create(**call)
    beside.take(answer)
    return answer.content


async def raw(beside: Beside, sdk: Any, call: Any) -> Any:
    """The raw events of a stream."""
    events = beside.flow(sdk.messages.create(**call, stream=True))
    assert beside.states == ["streaming", "measured"]
    return [event.content_block for event in events if event.type == "content_block_start"]


async def araw(beside: Beside, sdk: Any, call: Any) -> Any:
    """The raw events of an asynchronous stream."""
    events = await beside.aflow(await sdk.messages.create(**call, stream=True))
    assert beside.states == ["streaming", "measured"]
    return [event.content_block for event in events if event.type == "content_block_start"]


async def helper(beside: Beside, sdk: Any, call: Any) -> Any:
    """The events of the stream helper, tracked from where it is entered."""
    tracked = beside.tracker.track
    with tracked(sdk.messages.stream(**call)) as stream:
        states = {beside.see(event) for event in stream}
        final = stream.get_final_message()
    assert states == {"streaming", "measured"}
    beside.check()
    beside.take_again(final)
    return final.content


async def ahelper(beside: Beside, sdk: Any, call: Any) -> Any:
    """The same asynchronously."""
    tracked = beside.tracker.track
    async with tracked(sdk.messages.stream(**call)) as stream:
        states = {beside.see(event) async for event in stream}
        final = await stream.get_final_message()
    assert states == {"streaming", "measured"}
    beside.check()
    beside.take_again(final)
    return final.content


async def text(beside: Beside, sdk: Any, call: Any) -> Any:
    """The text of the stream helper alone, no event is seen."""
    tracked = beside.tracker.track
    with tracked(sdk.messages.stream(**call)) as stream:
        for words in stream.text_stream:
            assert isinstance(words, str)
            assert beside.reading().sent == sent(beside.billed()[-1])
        final = stream.get_final_message()
    beside.check()
    return final.content


async def final_text(beside: Beside, sdk: Any, call: Any) -> Any:
    """Only the end of the stream helper is asked for, asynchronously."""
    tracked = beside.tracker.track
    async with tracked(sdk.messages.stream(**call)) as stream:
        final = await stream.get_final_message()
    beside.check()
    return final.content


Way = tuple[Callable[[Beside, Any, Any], Awaitable[Any]], Callable[[FakeModel], Any]]
WAYS: dict[str, Way] = {
    "create": (create, anthropic),
    "create-async": (acreate, anthropic_async),
    "raw": (raw, anthropic),
    "raw-async": (araw, anthropic_async),
    "helper": (helper, anthropic),
    "helper-async": (ahelper, anthropic_async),
    "text": (text, anthropic),
    "final-async": (final_text, anthropic_async),
}


async def loop(way: Way, beside: Beside) -> None:
    """Ask, run the tools that are asked for, and ask again until none is."""
    ask, make = way
    said: list[Any] = [{"role": "user", "content": [QUESTION]}]
    async with opened(make(beside.fake)) as sdk:
        while called := _called(await ask(beside, sdk, {**CALL, "messages": said})):
            results = [_result(one["id"]) for one in called]
            said += [{"role": "assistant", "content": called}, {"role": "user", "content": results}]


def _called(content: Any) -> list[dict[str, Any]]:
    """The tools that are asked for, as they are sent back; a raw stream's have no input yet."""
    tools = [block for block in content if block.type == "tool_use"]
    return [{"type": "tool_use", "id": one.id, "name": one.name, "input": {}} for one in tools]


def _result(name: str) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": name,
        "content": "rain",
        "cache_control": CACHED,
    }


@pytest.mark.parametrize("way", WAYS)
def test_tool_loop(way: str) -> None:
    """Whichever way it is read, each step of a tool loop is what was billed."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        asyncio.run(loop(WAYS[way], beside))
        beside.check_loop(CLAUDE_WINDOW)


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_runner(streamed: bool) -> None:
    """The SDK's own loop hands out each message or stream of it."""

    def get_weather(city: str) -> str:
        """The weather of a city."""
        return "rain"

    tool = beta_tool(get_weather)
    with FakeModel(LOOP) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        call = {"model": CLAUDE, "max_tokens": 500, "tools": [tool]}
        runner = sdk.beta.messages.tool_runner(
            **call, messages=[{"role": "user", "content": "Weather in Paris?"}], stream=streamed
        )
        for turn in runner:
            if streamed:
                beside.flow(turn)
            else:
                beside.take(turn)
        beside.check_loop(CLAUDE_WINDOW)


def test_stream_observed_again() -> None:
    """No event of a stream that has ended changes anything when it is observed once more."""
    with FakeModel(LOOP) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        for event in beside.flow(sdk.messages.create(**_plain(), stream=True)):
            beside.take_again(event)


def test_subagent() -> None:
    """Two streams at once are two threads, each with what it was billed."""
    scenario = Scenario(main=(Reply(text="Main."),), subagent=(Reply(text="Sub."),))
    with FakeModel(scenario) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        main, sub = (
            sdk.messages.create(**_plain(), stream=True, extra_headers=headers)
            for headers in ({}, {"x-claude-code-agent-id": "reviewer"})
        )
        track = beside.tracker.track
        for _ in zip(track(main), track(sub, "reviewer"), strict=True):
            assert len({reading.state for reading in beside.tracker.threads.values()}) == 1
        beside.check()
        beside.check("reviewer")


def test_streams_at_once_in_one_thread() -> None:
    """Each call has what it was billed, although the events of all arrive mixed."""

    async def ask(sdk: Any, tracker: Tracker) -> None:
        async with tracker.track(sdk.messages.stream(**_plain())) as stream:
            async for _ in stream:
                await asyncio.sleep(0)

    async def ask_three(fake: FakeModel, tracker: Tracker) -> None:
        async with opened(anthropic_async(fake)) as sdk:
            await asyncio.gather(*(ask(sdk, tracker) for _ in range(3)))

    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        asyncio.run(ask_three(fake, beside.tracker))
        calls = beside.tracker.session.threads["main"].calls
        expected = {one.id: buckets(one.usage) for one in beside.billed()}
        assert {name: buckets(call.usage) for name, call in calls.items()} == expected
        assert len({sent(one) for one in beside.billed()}) == 3


def test_stream_left_early_is_no_longer_streaming() -> None:
    with FakeModel(LOOP) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        with beside.tracker.track(sdk.messages.stream(**_plain())) as stream:
            next(iter(stream))
            assert beside.reading().state == "streaming"
        reading = beside.reading()
        assert (reading.state, reading.sent) == ("measured", sent(beside.billed()[-1]))


def test_client_compaction() -> None:
    """What the author says of a compaction begins a new cycle, in which levels are told again."""
    with FakeModel(Scenario(ramp=Ramp(start=700_000))) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        beside.take(sdk.messages.create(**_plain()))
        beside.tracker.compacted()
        assert (beside.reading().sent, beside.reading().state) == (None, "unknown")
        beside.take(sdk.messages.create(**_plain()))
        assert [(one.level, one.reading.cycle) for one in beside.levels] == [(65, 0), (65, 1)]


def test_going_on_from_a_kept_state() -> None:
    """A tracker made from another's state knows its calls, and goes on."""
    with FakeModel(LOOP) as fake, anthropic(fake) as sdk:
        beside = Beside(fake)
        for answer in _answers(sdk, 3):
            beside.take(answer)
        kept = Beside(fake, Tracker.from_state(beside.tracker.state()))
        for answer in _answers(sdk, 1):
            kept.take(answer)
        assert [one.level for one in (*beside.levels, *kept.levels)] == [50, 65]


def _answers(sdk: Any, count: int) -> Iterator[Any]:
    return (sdk.messages.create(**_plain()) for _ in range(count))


def _plain() -> dict[str, Any]:
    return {**CALL, "messages": [{"role": "user", "content": [QUESTION]}]}
