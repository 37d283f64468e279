"""The `openai` package: Responses, whole and streamed, synchronous and not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from brimline.testing.fake_model import Compaction, FakeModel, Ramp, Reply, Scenario

from .bill import LONG, LOOP, WEATHER, Beside, awaited, buckets, opened
from .connect import GPT, GPT_WINDOW, openai, openai_async

pytestmark = pytest.mark.slow

TOOL = {"type": "function", "name": WEATHER.name, "parameters": {"type": "object"}}
RESPONSE: dict[str, Any] = {
    "model": GPT,
    "instructions": LONG,
    "tools": [TOOL],
}


async def create(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole response."""
    answer = sdk.responses.create(**call)
    beside.take(answer)
    return answer.output


async def acreate(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole response, asynchronously."""
    answer = await sdk.responses.create(**call)
    beside.take(answer)
    return answer.output


async def stream(beside: Beside, sdk: Any, call: Any) -> Any:
    """The events of a stream: usage comes with the last."""
    events = beside.flow(sdk.responses.create(**call, stream=True))
    return events[-1].response.output


async def astream(beside: Beside, sdk: Any, call: Any) -> Any:
    """The events of an asynchronous stream."""
    events = await beside.aflow(await sdk.responses.create(**call, stream=True))
    return events[-1].response.output


async def helper(beside: Beside, sdk: Any, call: Any) -> Any:
    """The stream helper, tracked from where it is entered."""
    tracked = beside.tracker.track
    with tracked(sdk.responses.stream(**call)) as events:
        for event in events:
            beside.see(event)
        final = events.get_final_response()
    beside.check()
    beside.take_again(final)
    return final.output


async def ahelper(beside: Beside, sdk: Any, call: Any) -> Any:
    """The same asynchronously."""
    tracked = beside.tracker.track
    async with tracked(sdk.responses.stream(**call)) as events:
        async for event in events:
            beside.see(event)
        final = await events.get_final_response()
    beside.check()
    beside.take_again(final)
    return final.output


async def final(beside: Beside, sdk: Any, call: Any) -> Any:
    """Only the end of the stream helper is asked for."""
    with beside.tracker.track(sdk.responses.stream(**call)) as events:
        answer = events.get_final_response()
    beside.check()
    return answer.output


async def done(beside: Beside, sdk: Any, call: Any) -> Any:
    """The stream helper is read to its end before its answer is asked for, asynchronously."""
    async with beside.tracker.track(sdk.responses.stream(**call)) as events:
        await events.until_done()
        beside.check()
        answer = await events.get_final_response()
    return answer.output


Way = tuple[Callable[[Beside, Any, Any], Awaitable[Any]], Callable[[FakeModel], Any]]
RESPONSES: dict[str, Way] = {
    "create": (create, openai),
    "create-async": (acreate, openai_async),
    "stream": (stream, openai),
    "stream-async": (astream, openai_async),
    "helper": (helper, openai),
    "helper-async": (ahelper, openai_async),
    "final": (final, openai),
    "done-async": (done, openai_async),
}


async def respond(way: Way, beside: Beside) -> None:
    """Ask, run the tools that are asked for, and ask again until none is."""
    ask, make = way
    said: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]
    async with opened(make(beside.fake)) as sdk:
        while called := _called(await ask(beside, sdk, {**RESPONSE, "input": said})):
            for one in called:
                said += [one, _result(one["call_id"])]


def _called(output: Any) -> list[dict[str, Any]]:
    return [one.to_dict() for one in output if one.type == "function_call"]


def _result(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "rain"}


@pytest.mark.parametrize("way", RESPONSES)
def test_responses(way: str) -> None:
    """Whichever way it is read, each step of a tool loop is what was billed."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        asyncio.run(respond(RESPONSES[way], beside))
        beside.check_loop(GPT_WINDOW)


@pytest.mark.parametrize("way", ["create", "stream"])
def test_responses_that_tell_cache_writes(way: str) -> None:
    """What was written to the cache is a part of the prompt too."""
    with FakeModel(msgspec.structs.replace(LOOP, cache_writes=True)) as fake:
        beside = Beside(fake)
        asyncio.run(respond(RESPONSES[way], beside))
        beside.check_loop(GPT_WINDOW)
        assert all(one.usage.cache_write for one in beside.billed())


FULL = Reply(text="It rains.", added=180_000)
SHRINKING = Scenario(
    main=(FULL, Reply(text="Still.", compaction=Compaction(input=3_000, output=900))),
    ramp=Ramp(start=180_000, after_compaction=9_000),
)


@pytest.mark.parametrize("way", RESPONSES)
def test_compaction_on_the_way(way: str) -> None:
    """An answer with a compaction item explains the fall: it is no client's compaction."""
    with FakeModel(SHRINKING) as fake:
        beside = Beside(fake)
        asyncio.run(shrink(RESPONSES[way], beside))
    _check_cycle(beside)
    assert beside.reading().sent in range(9_000, 12_000)


async def shrink(way: Way, beside: Beside) -> None:
    """Three answers, of which the second comes with a compaction."""
    ask, make = way
    async with opened(make(beside.fake)) as sdk:
        for kinds in (["message"], ["compaction", "message"], ["message"]):
            output = await ask(beside, sdk, {**RESPONSE, "input": "Weather in Paris?"})
            assert [one.type for one in output] == kinds


@pytest.mark.parametrize("make", [openai, openai_async])
def test_compaction_on_demand(make: Callable[[FakeModel], Any]) -> None:
    """`responses.compact` is billed; what is held is not known before the next answer."""
    with FakeModel(Scenario(main=(FULL,), ramp=SHRINKING.ramp)) as fake:
        beside = Beside(fake)
        asyncio.run(compact(make, beside))
    _check_cycle(beside)
    (call,) = beside.tracker.session.threads["compaction"].calls.values()
    (billed,) = beside.billed("compaction")
    assert (call.id, buckets(call.usage)) == (billed.id, buckets(billed.usage))


async def compact(make: Callable[[FakeModel], Any], beside: Beside) -> None:
    """An answer, a compaction of what was said, and an answer that goes on from it."""
    said: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]
    async with opened(make(beside.fake)) as sdk:
        beside.take(await awaited(sdk.responses.create(**RESPONSE, input=said)))
        compacted = await awaited(sdk.responses.compact(model=GPT, input=said))
        assert beside.tracker.observe(compacted)
        beside.take_again(compacted)
        assert (beside.reading().sent, beside.reading().state) == (None, "unknown")
        said += [one.to_dict() for one in compacted.output]
        beside.take(await awaited(sdk.responses.create(**RESPONSE, input=said)))


def _check_cycle(beside: Beside) -> None:
    thread = beside.tracker.session.threads["main"]
    assert [each.inferred for each in thread.compactions] == [False]
    assert (thread.cycle, thread.edits) == (1, 1)
