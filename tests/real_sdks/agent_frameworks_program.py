"""LangGraph, LlamaIndex, CrewAI and Strands: `python -m real_sdks.agent_frameworks_program`.

Each plays an agent with a tool and its integration, one line a case.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from typing import Any

from brimline import Tracker
from brimline.errors import SummedUsage
from brimline.testing.fake_model import FakeModel

from .bill import LONG, LOOP
from .connect import CLAUDE, GPT, KEY
from .integration_cases import Question, figures, print_case, read, wait_for_calls

KNOWN_GPT = "gpt-4o"  # some packages refuse a model that they do not know
PROMPT = f"{LONG} Weather in Paris?"


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "rain"


def module(name: str) -> Any:
    return import_module(name)


def check_sum(tracker: Tracker, result: object) -> None:
    """The usage of the run is refused."""
    try:
        tracker.observe(result)
    except SummedUsage:
        return
    raise AssertionError(f"the sum of {type(result).__name__} was read")


async def langgraph(streamed: bool, question: Question) -> None:
    """The handler of LangChain in a graph, or its stream tracked."""
    model = module("langchain_openai").ChatOpenAI(
        model=GPT, base_url=f"{question.fake.base_url}/v1", api_key=KEY, stream_usage=True
    )
    graph = module("langgraph.prebuilt").create_react_agent(model, [get_weather])
    state = {"messages": [("user", PROMPT)]}
    if streamed:
        for _ in question.tracker.track(graph.stream(state, stream_mode="updates")):
            pass
        return
    handler = module("brimline.integrations.langchain").BrimlineCallbackHandler
    await graph.ainvoke(state, config={"callbacks": [handler(question.tracker)]})


async def llama_index(api: str, streamed: bool, question: Question) -> None:
    """A function agent."""
    handler = module("brimline.integrations.llama_index").BrimlineEventHandler(question.tracker)
    dispatcher = module("llama_index.core.instrumentation").get_dispatcher()
    dispatcher.add_event_handler(handler)
    if api == "anthropic":
        llm = module("llama_index.llms.anthropic").Anthropic(
            model=CLAUDE, base_url=question.fake.base_url, api_key=KEY
        )
    else:
        llm = module("llama_index.llms.openai").OpenAI(
            model=KNOWN_GPT,
            api_base=f"{question.fake.base_url}/v1",
            api_key=KEY,
            additional_kwargs={"stream_options": {"include_usage": True}} if streamed else {},
        )
    workflow = module("llama_index.core.agent.workflow")
    agent = workflow.FunctionAgent(tools=[get_weather], llm=llm, streaming=streamed)
    await agent.run(PROMPT)
    dispatcher.event_handlers.remove(handler)


async def crewai(question: Question) -> None:
    """A crew of one agent."""
    crew = module("crewai")
    bus = module("crewai.events").crewai_event_bus
    with bus.scoped_handlers():
        module("brimline.integrations.crewai").BrimlineEventListener(question.tracker)
        llm = crew.LLM(
            model=f"openai/{KNOWN_GPT}", base_url=f"{question.fake.base_url}/v1", api_key=KEY
        )
        tool = module("crewai.tools").tool("get_weather")(get_weather)
        agent = crew.Agent(
            role="forecaster", goal="Forecast.", backstory=LONG, llm=llm, tools=[tool]
        )
        task = crew.Task(description="Weather in Paris?", expected_output="One word.", agent=agent)
        result = await asyncio.to_thread(crew.Crew(agents=[agent], tasks=[task]).kickoff)
        bus.flush()
        await wait_for_calls(question)
    check_sum(question.tracker, result)
    check_sum(question.tracker, result.token_usage)


async def strands(api: str, question: Question) -> None:
    """An agent with a hook, which streams its calls."""
    hooks = module("brimline.integrations.strands").BrimlineHookProvider(question.tracker)
    package = module("strands")
    if api == "anthropic":
        model = module("strands.models.anthropic").AnthropicModel(
            client_args={"base_url": question.fake.base_url, "api_key": KEY},
            model_id=CLAUDE,
            max_tokens=1_000,
        )
    else:
        model = module("strands.models.openai").OpenAIModel(
            client_args={"base_url": f"{question.fake.base_url}/v1", "api_key": KEY}, model_id=GPT
        )
    tools = [package.tool(get_weather)]
    agent = package.Agent(model=model, tools=tools, hooks=[hooks], callback_handler=None)
    result = await agent.invoke_async(PROMPT)
    check_sum(question.tracker, result)
    check_sum(question.tracker, result.metrics)


Run = Callable[[Question], Coroutine[Any, Any, None]]
RUNS: dict[str, Run] = {
    "LangGraph": partial(langgraph, False),
    "LangGraph streamed": partial(langgraph, True),
    "LlamaIndex with OpenAI": partial(llama_index, "openai", False),
    "LlamaIndex with OpenAI streamed": partial(llama_index, "openai", True),
    "LlamaIndex with Anthropic": partial(llama_index, "anthropic", False),
    "LlamaIndex with Anthropic streamed": partial(llama_index, "anthropic", True),
    "CrewAI": crewai,
    "Strands with OpenAI": partial(strands, "openai"),
    "Strands with Anthropic": partial(strands, "anthropic"),
}


async def play(name: str) -> None:
    """The four calls of the scenario, in as many runs as it takes."""
    tracker = Tracker()
    with FakeModel(LOOP) as fake:
        while len(fake.billed) < len(LOOP.main):
            await RUNS[name](Question(fake, tracker))
        print_case(read(name, tracker, {"main": [figures(one) for one in fake.billed]}))


if __name__ == "__main__":
    for name in sys.argv[1:] or RUNS:
        asyncio.run(play(name))
