"""The `openai` package: Chat Completions, which tell their usage in a stream only when asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from brimline.testing.fake_model import FakeModel

from .bill import LONG, LOOP, WEATHER, Beside, opened
from .connect import GPT, GPT_WINDOW, openai, openai_async

pytestmark = pytest.mark.slow

FUNCTION: dict[str, Any] = {"name": WEATHER.name, "parameters": {"type": "object"}}
CALL: dict[str, Any] = {"model": GPT, "tools": [{"type": "function", "function": FUNCTION}]}
ASKED = {"stream_options": {"include_usage": True}}
GROWING = {"stream_options": {"continuous_usage_stats": True}}


async def complete(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole completion."""
    answer = sdk.chat.completions.create(**call)
    beside.take(answer)
    return answer.choices[0].message.tool_calls


async def acomplete(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole completion, asynchronously."""
    answer = await sdk.chat.completions.create(**call)
    beside.take(answer)
    return answer.choices[0].message.tool_calls


async def chunks(beside: Beside, sdk: Any, call: Any) -> Any:
    """The chunks of a stream; usage comes with the last."""
    seen = beside.flow(sdk.chat.completions.create(**call, **ASKED, stream=True))
    return seen[0].choices[0].delta.tool_calls


async def achunks(beside: Beside, sdk: Any, call: Any) -> Any:
    """The chunks of an asynchronous stream."""
    made = await sdk.chat.completions.create(**call, **ASKED, stream=True)
    seen = await beside.aflow(made)
    return seen[0].choices[0].delta.tool_calls


async def growing(beside: Beside, sdk: Any, call: Any) -> Any:
    """The chunks of a server that tells the usage so far with each: the prompt is known at once."""
    seen = beside.flow(sdk.chat.completions.create(**call, **GROWING, stream=True))
    assert beside.states == ["streaming", "measured"]
    return seen[0].choices[0].delta.tool_calls


async def chat_helper(beside: Beside, sdk: Any, call: Any) -> Any:
    """The stream helper, tracked from where it is entered."""
    tracked = beside.tracker.track
    with tracked(sdk.chat.completions.stream(**call, **ASKED)) as made:
        for event in made:
            beside.see(event)
        final = made.get_final_completion()
    beside.check()
    beside.take_again(final)
    return final.choices[0].message.tool_calls


async def chat_final(beside: Beside, sdk: Any, call: Any) -> Any:
    """Only the end of the stream helper is asked for."""
    with beside.tracker.track(sdk.chat.completions.stream(**call, **ASKED)) as events:
        final = events.get_final_completion()
    beside.check()
    return final.choices[0].message.tool_calls


Way = tuple[Callable[[Beside, Any, Any], Awaitable[Any]], Callable[[FakeModel], Any]]
WAYS: dict[str, Way] = {
    "create": (complete, openai),
    "create-async": (acomplete, openai_async),
    "stream": (chunks, openai),
    "stream-async": (achunks, openai_async),
    "growing": (growing, openai),
    "helper": (chat_helper, openai),
    "final": (chat_final, openai),
}


async def chat(way: Way, beside: Beside) -> None:
    """The same loop over Chat Completions."""
    ask, make = way
    said: list[Any] = [{"role": role, "content": LONG} for role in ("system", "user")]
    async with opened(make(beside.fake)) as sdk:
        while called := await ask(beside, sdk, {**CALL, "messages": said}):
            calls = [one.to_dict() for one in called]
            said.append({"role": "assistant", "tool_calls": calls})
            said += [{"role": "tool", "tool_call_id": one.id, "content": "rain"} for one in called]


@pytest.mark.parametrize("way", WAYS)
def test_chat(way: str) -> None:
    """Whichever way it is read, each step of a tool loop is what was billed."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        asyncio.run(chat(WAYS[way], beside))
        beside.check_loop(GPT_WINDOW)


def test_stream_without_usage() -> None:
    """A stream that tells no usage leaves the reading unknown; it is never taken for empty."""
    with FakeModel() as fake, openai(fake) as sdk:
        beside = Beside(fake)
        call = {**CALL, "messages": [{"role": "user", "content": "Hi."}]}
        for _ in beside.tracker.track(sdk.chat.completions.create(**call, stream=True)):
            assert (beside.reading().sent, beside.reading().state) == (None, "unknown")
