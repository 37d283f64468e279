"""Runs of Pydantic AI with the wrapping model: `python -m real_sdks.pydantic_ai_program`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from brimline.integrations.pydantic_ai import BrimlineModel
from brimline.testing.fake_model import FakeModel

from .bill import LONG
from .connect import CLAUDE, GPT, KEY
from .framework_program import get_weather
from .integration_cases import Question, Way, play_all, play_stopped


def claude(fake: FakeModel) -> Any:
    client = AsyncAnthropic(base_url=fake.base_url, api_key=KEY)
    return AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client))


def gpt(api: Any, fake: FakeModel) -> Any:
    client = AsyncOpenAI(base_url=f"{fake.base_url}/v1", api_key=KEY)
    return api(GPT, provider=OpenAIProvider(openai_client=client))


def agent(make: Any, question: Question) -> Agent:
    model = BrimlineModel(make(question.fake), question.tracker, question.thread)
    return Agent(model, instructions=LONG, tools=[get_weather])


async def run(make: Any, question: Question) -> None:
    await agent(make, question).run(question.prompt)


async def run_sync(make: Any, question: Question) -> None:
    await asyncio.to_thread(agent(make, question).run_sync, question.prompt)


async def run_stream(make: Any, question: Question) -> None:
    async with agent(make, question).run_stream(question.prompt) as result:
        async for _ in result.stream_output():
            pass


async def iterate(make: Any, question: Question, is_left: bool = False) -> None:
    async with agent(make, question).iter(question.prompt) as nodes:
        async for node in nodes:
            if Agent.is_model_request_node(node):
                async with node.stream(nodes.ctx) as stream:
                    async for _ in stream:
                        if is_left:
                            return


def ways() -> dict[str, Way]:
    """Every way, not with every API; Anthropic's reports the prompt early."""
    chat, respond = partial(gpt, OpenAIChatModel), partial(gpt, OpenAIResponsesModel)
    leave = partial(iterate, is_left=True)
    return {
        "anthropic run": Way(partial(run, claude)),
        "anthropic run_sync": Way(partial(run_sync, claude)),
        "anthropic run_stream": Way(partial(run_stream, claude)),
        "anthropic iter": Way(partial(iterate, claude), partial(leave, claude), early=True),
        "chat run": Way(partial(run, chat)),
        "chat iter": Way(partial(iterate, chat), partial(leave, chat)),
        "responses run_stream": Way(partial(run_stream, respond)),
        "responses iter": Way(partial(iterate, respond), partial(leave, respond)),
    }


async def main() -> None:
    """Play every case and print what was read."""
    await play_all(ways())
    await play_stopped(partial(run_stream, claude))


if __name__ == "__main__":
    asyncio.run(main())
