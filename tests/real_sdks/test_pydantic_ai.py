"""The `pydantic-ai` package: the responses of a run, whole and while they stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from brimline import InvalidUsage
from brimline.testing.fake_model import Compaction, FakeModel, Pass, Ramp, Reply, Scenario

from .bill import LONG, LOOP, Beside, opened, sent
from .connect import (
    CLAUDE,
    CLAUDE_WINDOW,
    GPT,
    GPT_WINDOW,
    anthropic_async,
    openai_async,
)

pytestmark = pytest.mark.slow


def claude(sdk: Any) -> Agent:
    """An agent on Claude, which writes and reads the cache."""
    settings = AnthropicModelSettings(
        max_tokens=1_000, anthropic_cache_instructions=True, anthropic_cache_messages=True
    )
    model = AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=sdk))
    return Agent(model, instructions=LONG, model_settings=settings)


def responses(sdk: Any) -> Agent:
    """An agent on OpenAI's Responses."""
    model = OpenAIResponsesModel(GPT, provider=OpenAIProvider(openai_client=sdk))
    return Agent(model, instructions=LONG)


def chat(sdk: Any) -> Agent:
    """An agent on Chat Completions."""
    model = OpenAIChatModel(GPT, provider=OpenAIProvider(openai_client=sdk))
    return Agent(model, instructions=LONG)


Make = tuple[Callable[[FakeModel], Any], Callable[[Any], Agent], int]
AGENTS: dict[str, Make] = {
    "anthropic": (anthropic_async, claude, CLAUDE_WINDOW),
    "responses": (openai_async, responses, GPT_WINDOW),
    "chat": (openai_async, chat, GPT_WINDOW),
}
ALL = pytest.mark.parametrize("name", AGENTS)


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "rain"


async def run(make: Make, beside: Beside) -> Any:
    """A whole run; its responses are those that were billed, its own usage is their sum."""
    connect, agent, _ = make
    async with opened(connect(beside.fake)) as sdk:
        made = agent(sdk)
        made.tool_plain(get_weather)
        result = await made.run("Weather in Paris?")
    for message in result.all_messages():
        assert beside.tracker.observe(message) is (message.kind == "response")
        beside.take_again(message)
    return result


@ALL
def test_run(name: str) -> None:
    """Each response of a tool loop is what was billed; the sum of the run is refused."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        result = asyncio.run(run(AGENTS[name], beside))
        beside.check_loop(AGENTS[name][2])
        with pytest.raises(InvalidUsage, match="sum of several requests"):
            beside.tracker.observe(result.usage)


async def follow(make: Make, beside: Beside) -> set[str]:
    """A run read node by node, its response observed after each event."""
    connect, agent, _ = make
    states: set[str] = set()
    async with opened(connect(beside.fake)) as sdk:
        made = agent(sdk)
        made.tool_plain(get_weather)
        async with made.iter("Weather in Paris?") as nodes:
            async for node in nodes:
                if Agent.is_model_request_node(node):
                    async with node.stream(nodes.ctx) as stream:
                        async for _ in stream:
                            beside.tracker.observe(stream.response)
                            states.add(beside.see(stream.response))
                    beside.take(stream.response)
    return states


@ALL
def test_stream(name: str) -> None:
    """While a response streams it says so; where the prompt is told at once it is exact."""
    with FakeModel(LOOP) as fake:
        beside = Beside(fake)
        states = asyncio.run(follow(AGENTS[name], beside))
        beside.check_loop(AGENTS[name][2])
        assert "streaming" in states
        assert ("unknown" in states) is (name != "anthropic")


SHRINKING = Scenario(
    main=(
        Reply(text="It rains.", added=180_000),
        Reply(text="Still.", compaction=Compaction(input=3_000, output=900)),
    ),
    ramp=Ramp(start=180_000, after_compaction=9_000),
)
LOOPING = Scenario(main=(Reply(text="x", passes=(Pass(input=90_000, output=10),)),))


async def ask(make: Make, beside: Beside, times: int) -> None:
    """Runs of one answer each."""
    connect, agent, _ = make
    async with opened(connect(beside.fake)) as sdk:
        for _ in range(times):
            result = await agent(sdk).run("Weather in Paris?")
            beside.tracker.observe(result.all_messages()[-1])
            assert beside.reading().sent == sent(beside.billed()[-1])


@pytest.mark.parametrize("name", ["anthropic", "responses"])
def test_compaction_on_the_way(name: str) -> None:
    """The usage of a response with a compaction is the cost; what was sent is told beside it."""
    with FakeModel(SHRINKING) as fake:
        asyncio.run(ask(AGENTS[name], Beside(fake), 3))


@pytest.mark.parametrize("name", ["anthropic", "responses"])
def test_compaction_on_the_way_begins_a_cycle(name: str) -> None:
    """A response with a compaction in it is a compaction of the API."""
    with FakeModel(SHRINKING) as fake:
        beside = Beside(fake)
        asyncio.run(ask(AGENTS[name], beside, 3))
        thread = beside.tracker.session.threads["main"]
        assert [each.inferred for each in thread.compactions] == [False]
        assert (thread.cycle, thread.edits) == (1, 1)


def test_loop_on_the_server() -> None:
    """Of several passes the last is what was sent."""
    with FakeModel(LOOPING) as fake:
        asyncio.run(ask(AGENTS["anthropic"], Beside(fake), 1))
