"""Frameworks over their APIs, one line a case: `python -m real_sdks.framework_program`.

They run in a process of their own, the fake in it: `agents`, of the OpenAI Agents SDK, is also the
name of a folder of tests, and Google ADK does not go with the other SDKs. The program plays the
frameworks that are installed. What is wrong at a step is an AssertionError; the lines are what was
read.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from brimline.testing.fake_model import FakeModel

from .bill import LONG, LOOP, Beside, held, sent
from .connect import CLAUDE, GEMINI, GPT, KEY

# Searched last: the package of the OpenAI Agents SDK has the name of a folder of tests.
TESTS = str(Path(__file__).parents[1])
sys.path = [*(path for path in sys.path if path != TESTS), TESTS]


class Case(msgspec.Struct, frozen=True):
    """What was read in one case, and what was billed: sent and held, call by call."""

    name: str
    read: list[tuple[int, int]]
    billed: list[tuple[int, int]]


def chat_anthropic(fake: FakeModel) -> Any:
    model = import_module("langchain_anthropic").ChatAnthropic
    return model(model=CLAUDE, base_url=fake.base_url, api_key=KEY, max_retries=0)


def chat_openai(fake: FakeModel, responses: bool = False) -> Any:
    model = import_module("langchain_openai").ChatOpenAI
    base = f"{fake.base_url}/v1"
    return model(
        model=GPT,
        base_url=base,
        api_key=KEY,
        max_retries=0,
        stream_usage=True,
        use_responses_api=responses,
    )


async def langchain(make: Callable[[FakeModel], Any], beside: Beside) -> None:
    """Whole messages and streams of a chat model, synchronous and not."""
    model = make(beside.fake)
    beside.take(model.invoke(LONG))
    beside.flow(model.stream(LONG))
    beside.take(await model.ainvoke(LONG))
    await beside.aflow(model.astream(LONG))


def agents_model(api: str, fake: FakeModel) -> Any:
    agents = import_module("agents")
    agents.set_tracing_disabled(True)
    client = import_module("openai").AsyncOpenAI(
        base_url=f"{fake.base_url}/v1", api_key=KEY, max_retries=0
    )
    kind = agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
    return agents.Agent(
        name="weather",
        instructions=LONG,
        model=kind(GPT, client),
        model_settings=agents.ModelSettings(include_usage=True),
        tools=[agents.function_tool(get_weather)],
    )


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "rain"


async def agents_run(api: str, beside: Beside) -> None:
    """The responses of a run; the sum of its usage is refused."""
    runner = import_module("agents").Runner
    result = await runner.run(agents_model(api, beside.fake), "Weather in Paris?")
    for response in result.raw_responses:
        assert beside.tracker.observe(response)
    refuse(beside, result.context_wrapper.usage)


def refuse(beside: Beside, usage: object) -> None:
    import pytest  # the other environment has none

    from brimline import InvalidUsage

    with pytest.raises(InvalidUsage, match="raw_responses") as caught:
        beside.tracker.observe(usage)
    assert caught.value.field == "requests"


async def agents_stream(api: str, beside: Beside) -> None:
    """The events of a run's stream: each call has its own usage, although its id may be shared."""
    runner = import_module("agents").Runner
    result = runner.run_streamed(agents_model(api, beside.fake), "Weather in Paris?")
    async for _ in beside.tracker.track(result.stream_events()):
        pass


async def adk_run(streamed: bool, beside: Beside) -> None:
    """The events of a run of Google ADK."""
    from google.genai import types

    llm = import_module("google.adk.models.google_llm").Gemini(
        model=GEMINI, base_url=beside.fake.base_url
    )
    agent = import_module("google.adk.agents").Agent(
        name="weather", model=llm, instruction=LONG, tools=[get_weather]
    )
    runner = import_module("google.adk.runners").InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    modes = import_module("google.adk.agents.run_config")
    mode = modes.StreamingMode.SSE if streamed else modes.StreamingMode.NONE
    events = runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=types.Content(role="user", parts=[types.Part(text="Weather in Paris?")]),
        run_config=modes.RunConfig(streaming_mode=mode),
    )
    async for _ in beside.tracker.track(events):
        pass


LANGCHAIN_AND_AGENTS: dict[str, Callable[[Beside], Coroutine[Any, Any, None]]] = {
    "langchain-anthropic": partial(langchain, chat_anthropic),
    "langchain-openai chat": partial(langchain, chat_openai),
    "langchain-openai responses": partial(langchain, partial(chat_openai, responses=True)),
    "openai-agents responses": partial(agents_run, "responses"),
    "openai-agents chat": partial(agents_run, "chat"),
    "openai-agents responses streamed": partial(agents_stream, "responses"),
    "openai-agents chat streamed": partial(agents_stream, "chat"),
}
ADK: dict[str, Callable[[Beside], Coroutine[Any, Any, None]]] = {
    "google-adk": partial(adk_run, False),
    "google-adk streamed": partial(adk_run, True),
}


def play(name: str, run: Callable[[Beside], Coroutine[Any, Any, None]]) -> Case:
    """The four calls of the scenario."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake, same_ids=False)
        asyncio.run(run(beside))
        beside.check()
    calls = beside.tracker.session.threads["main"].calls.values()
    return Case(
        name=name,
        read=[(call.usage.sent, call.usage.held) for call in calls],
        billed=[(sent(one), held(one)) for one in beside.billed()],
    )


def main() -> None:
    """Play every case and print what was read."""
    for name, run in (LANGCHAIN_AND_AGENTS if find_spec("langchain_core") else ADK).items():
        print(msgspec.json.encode(play(name, run)).decode(), flush=True)


if __name__ == "__main__":
    main()
