"""The `google-genai` package: answers, chunks and chats, synchronous and not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.genai import types

from brimline.testing.fake_model import FakeModel, Reply, Scenario

from .bill import LONG, LOOP, WEATHER, Beside, held
from .connect import GEMINI, GEMINI_WINDOW, google

pytestmark = pytest.mark.slow

DECLARED = types.FunctionDeclaration(name=WEATHER.name, parameters_json_schema={"type": "object"})
CONFIG = types.GenerateContentConfig(
    system_instruction=LONG, tools=[types.Tool(function_declarations=[DECLARED])]
)
CALL: dict[str, Any] = {"model": GEMINI, "config": CONFIG}


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "rain"


AUTOMATIC = types.GenerateContentConfig(tools=[get_weather])


async def whole(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole answer."""
    answer = sdk.models.generate_content(**call)
    beside.take(answer)
    return answer.candidates[0].content


async def awhole(beside: Beside, sdk: Any, call: Any) -> Any:
    """A whole answer, asynchronously."""
    answer = await sdk.aio.models.generate_content(**call)
    beside.take(answer)
    return answer.candidates[0].content


async def chunks(beside: Beside, sdk: Any, call: Any) -> Any:
    """The chunks of a stream: the prompt is told by each, the output grows."""
    return _content(beside.flow(sdk.models.generate_content_stream(**call)))


async def achunks(beside: Beside, sdk: Any, call: Any) -> Any:
    """The chunks of an asynchronous stream."""
    return _content(await beside.aflow(await sdk.aio.models.generate_content_stream(**call)))


def _content(seen: list[Any]) -> Any:
    parts = [part for chunk in seen for part in chunk.candidates[0].content.parts]
    return types.Content(role="model", parts=parts)


Way = Callable[[Beside, Any, Any], Awaitable[Any]]


async def loop(way: Way, beside: Beside) -> None:
    """Ask, run the tools that are asked for, and ask again until none is."""
    said: list[Any] = [types.Content(role="user", parts=[types.Part(text="Weather in Paris?")])]
    sdk = google(beside.fake)
    while called := _called(content := await way(beside, sdk, {**CALL, "contents": said})):
        results = [types.Part(function_response=_result(one)) for one in called]
        said += [content, types.Content(role="user", parts=results)]
    await sdk.aio.aclose()
    sdk.close()


def _called(content: Any) -> list[Any]:
    return [part.function_call for part in content.parts if part.function_call]


def _result(call: Any) -> types.FunctionResponse:
    return types.FunctionResponse(id=call.id, name=call.name, response={"weather": "rain"})


@pytest.mark.parametrize("way", [whole, awhole, chunks, achunks])
def test_tool_loop(way: Way) -> None:
    """Whichever way it is read, each step of a tool loop is what was billed."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        asyncio.run(loop(way, beside))
        beside.check_loop(GEMINI_WINDOW)


def test_stream_is_live() -> None:
    """While it thinks and speaks the prompt is exact, and the output is never above its last."""
    with FakeModel(LOOP) as fake:
        beside, sdk = Beside(fake), google(fake)
        beside.flow(sdk.models.generate_content_stream(**CALL, contents="Weather?"))
        assert beside.states == ["streaming", "measured"]
        sdk.close()


def test_functions_called_by_the_sdk() -> None:
    """Where the SDK calls the functions itself, every call of its stream is seen."""
    with FakeModel(LOOP) as fake:
        beside, sdk = Beside(fake), google(fake)
        made = sdk.models.generate_content_stream(
            model=GEMINI, contents="Weather?", config=AUTOMATIC
        )
        for chunk in beside.tracker.track(made):
            beside.see(chunk)
            beside.take_again(chunk)
        beside.check_loop(GEMINI_WINDOW)
        sdk.close()


def test_last_of_the_functions_called_by_the_sdk() -> None:
    """A whole answer is that of the last call alone; the reading is right all the same."""
    with FakeModel(LOOP) as fake:
        beside, sdk = Beside(fake), google(fake)
        answer = sdk.models.generate_content(model=GEMINI, contents="Weather?", config=AUTOMATIC)
        assert beside.tracker.observe(answer)
        assert beside.reading().held == held(beside.billed()[-1])
        sdk.close()


def test_chat() -> None:
    """A chat's answers and chunks are those of the models."""
    with FakeModel() as fake:
        beside, sdk = Beside(fake), google(fake)
        chat = sdk.chats.create(model=GEMINI)
        beside.take(chat.send_message("Hi."))
        beside.flow(chat.send_message_stream("Hi again."))
        sdk.close()


HOPS = Scenario(
    main=(
        Reply(text="It ", added=1_000, output=500, unfinished=True),
        Reply(text="rains ", added=1_500, output=500, unfinished=True),
        Reply(text="in Paris.", added=2_000, output=10),
    )
)
"""An answer that takes three requests, each of which sends all that was said before."""


@pytest.mark.parametrize("streamed", [False, True])
def test_answer_over_several_requests(streamed: bool) -> None:
    """The SDK adds the prompts of its requests up; what is held is that of the last."""
    with FakeModel(HOPS) as fake:
        beside, sdk = Beside(fake), google(fake)
        if streamed:
            for chunk in sdk.models.generate_content_stream(model=GEMINI, contents="Weather?"):
                assert beside.tracker.observe(chunk)
                beside.take_again(chunk)
                assert beside.reading().held == held(beside.billed()[-1])
        else:
            answer = sdk.models.generate_content(model=GEMINI, contents="Weather?")
            beside.tracker.observe(answer)
            beside.take_again(answer)
        assert len(beside.billed()) == len(HOPS.main)
        assert beside.reading().held == held(beside.billed()[-1])
        sdk.close()
