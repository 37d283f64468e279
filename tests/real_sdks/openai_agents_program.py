"""Runs of the OpenAI Agents SDK with the hooks: `python -m real_sdks.openai_agents_program`.

It is a process of its own: its package `agents` has the name of a folder of tests, which
`framework_program` moves to the end of the path.
"""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import Any

from openai import AsyncOpenAI

from brimline.testing.fake_model import FakeModel

from .bill import LONG
from .connect import GPT, KEY
from .framework_program import get_weather
from .integration_cases import Question, Way, play_all, play_stopped, play_unmeasured

agents: Any = import_module("agents")
BrimlineHooks = import_module("brimline.integrations.openai_agents").BrimlineHooks
agents.set_tracing_disabled(True)


def agent(api: Any, fake: FakeModel, usage: bool = True) -> Any:
    return agents.Agent(
        name="weather",
        instructions=LONG,
        model=api(GPT, AsyncOpenAI(base_url=f"{fake.base_url}/v1", api_key=KEY)),
        model_settings=agents.ModelSettings(include_usage=usage),
        tools=[agents.function_tool(get_weather)],
    )


def start(run: Any, api: Any, question: Question) -> Any:
    hooks = BrimlineHooks(question.tracker, question.thread)
    return run(agent(api, question.fake), question.prompt, hooks=hooks)


async def run(api: Any, question: Question) -> None:
    await start(agents.Runner.run, api, question)


async def run_sync(api: Any, question: Question) -> None:
    await asyncio.to_thread(start, agents.Runner.run_sync, api, question)


async def run_streamed(api: Any, question: Question, is_left: bool = False) -> None:
    result = start(agents.Runner.run_streamed, api, question)
    async for event in result.stream_events():
        if is_left and event.type == "raw_response_event":
            result.cancel()


async def stream_without_usage(question: Question) -> None:
    """A run of four calls that nobody asked for their usage."""
    silent = agent(agents.OpenAIChatCompletionsModel, question.fake, usage=False)
    hooks = BrimlineHooks(question.tracker)
    async for _ in agents.Runner.run_streamed(silent, "Go.", hooks=hooks).stream_events():
        pass


def ways() -> dict[str, Way]:
    """Every way, not with every API; neither reports the prompt before the end."""
    chat, respond = agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel
    leave = partial(run_streamed, is_left=True)
    return {
        "chat run": Way(partial(run, chat)),
        "chat run_streamed": Way(partial(run_streamed, chat), partial(leave, chat)),
        "responses run_sync": Way(partial(run_sync, respond)),
        "responses run_streamed": Way(partial(run_streamed, respond), partial(leave, respond)),
    }


async def main() -> None:
    """Play every case and print what was read."""
    await play_all(ways())
    await play_stopped(partial(run, agents.OpenAIResponsesModel))
    await play_unmeasured("without usage", stream_without_usage)


if __name__ == "__main__":
    asyncio.run(main())
