"""Every SDK in situations that go wrong easily: `python -m real_sdks.situation_program`.

Two streams at once on one tracker, a stream that is left early, and calls that the SDK itself
repeats after 429 and 529, each synchronous and not. One line for a case: what was read and what was
billed. It plays the SDKs of the environment that it runs in.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from brimline import Tracker
from brimline.testing.fake_model import FakeModel, Reply, Scenario

from .bill import buckets
from .connect import CLAUDE, GEMINI, GPT, KEY

# Searched last: the package of the OpenAI Agents SDK has the name of a folder of tests.
TESTS = str(Path(__file__).parents[1])
sys.path = [*(path for path in sys.path if path != TESTS), TESTS]

# Imported before all threads: openai 2.54 fails if another thread is just importing httpx2.
MODULES = (
    "httpx2",
    "anthropic",
    "openai",
    "google.genai",
    "langchain_anthropic",
    "langchain_openai",
    "agents",
    "pydantic_ai.models.anthropic",
    "litellm",
    "google.adk.runners",
    "google.adk.models.google_llm",
)
RETRIES = 2
PROMPT = "What is the weather?"
MESSAGES: list[Any] = [{"role": "user", "content": PROMPT}]
WITH_USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
CLIENTS: list[object] = []
"""A client of google-genai closes when it is collected, also under a stream."""

PACED = Reply(text="It rains. " * 20, pace=0.01)
AT_ONCE = Scenario(main=(msgspec.structs.replace(PACED, added=100_000), PACED))
LEFT = Scenario(main=(PACED, Reply(text="Done.", added=50_000)))
REFUSED = Scenario(main=(Reply(error="rate_limited"), Reply(error="overloaded"), Reply(text="Ok.")))

Call = tuple[int, int, int, int]
Ask = Callable[[FakeModel], Any]
"""Asks for an answer, or a stream of one, or returns an awaitable of either."""


class Case(msgspec.Struct, frozen=True):
    """What was read and billed in a case, in any order; `unread` counts streams without usage."""

    name: str
    read: list[Call]
    billed: list[Call]
    states: list[str]
    refused: list[int]
    unread: int


class Sdk(msgspec.Struct, frozen=True):
    """How an SDK is asked for an answer and for a stream; `is_async`: both must be awaited.

    Without `stream` it has none: the situations of a stream are left out.
    """

    name: str
    answer: Ask
    stream: Ask | None
    is_async: bool = True


def anthropic(is_async: bool, streamed: bool, fake: FakeModel) -> Any:
    kind = "AsyncAnthropic" if is_async else "Anthropic"
    client = getattr(import_module("anthropic"), kind)(
        base_url=fake.base_url, api_key=KEY, max_retries=RETRIES
    )
    return client.messages.create(model=CLAUDE, max_tokens=500, messages=MESSAGES, stream=streamed)


def openai(api: str, is_async: bool, streamed: bool, fake: FakeModel) -> Any:
    client = getattr(import_module("openai"), "AsyncOpenAI" if is_async else "OpenAI")(
        base_url=f"{fake.base_url}/v1", api_key=KEY, max_retries=RETRIES
    )
    if api == "responses":
        return client.responses.create(model=GPT, input=PROMPT, stream=streamed)
    return client.chat.completions.create(
        model=GPT, messages=MESSAGES, **(WITH_USAGE if streamed else {})
    )


def google(is_async: bool, streamed: bool, fake: FakeModel) -> Any:
    from google import genai

    client = genai.Client(api_key=KEY, http_options=google_options(fake))
    CLIENTS.append(client)
    models: Any = client.aio.models if is_async else client.models
    ask = models.generate_content_stream if streamed else models.generate_content
    return ask(model=GEMINI, contents=PROMPT)


def google_options(fake: FakeModel) -> Any:
    from google.genai import types

    retry = types.HttpRetryOptions(
        attempts=RETRIES + 1, initial_delay=0.01, max_delay=0.02, http_status_codes=[429, 529]
    )
    return types.HttpOptions(base_url=fake.base_url, retry_options=retry)


def langchain(
    make: Callable[[FakeModel], Any], is_async: bool, streamed: bool, fake: FakeModel
) -> Any:
    name = "stream" if streamed else "invoke"
    return getattr(make(fake), f"a{name}" if is_async else name)(PROMPT)


def chat_anthropic(fake: FakeModel) -> Any:
    model = import_module("langchain_anthropic").ChatAnthropic
    return model(model=CLAUDE, base_url=fake.base_url, api_key=KEY, max_retries=RETRIES)


def chat_openai(fake: FakeModel) -> Any:
    return import_module("langchain_openai").ChatOpenAI(
        model=GPT,
        base_url=f"{fake.base_url}/v1",
        api_key=KEY,
        max_retries=RETRIES,
        stream_usage=True,
    )


async def agents_answer(api: str, fake: FakeModel) -> Any:
    result = await import_module("agents").Runner.run(agent(api, fake), PROMPT)
    return result.raw_responses[-1]


def agents_answer_sync(api: str, fake: FakeModel) -> Any:
    return import_module("agents").Runner.run_sync(agent(api, fake), PROMPT).raw_responses[-1]


async def agents_stream(api: str, fake: FakeModel) -> Any:
    return import_module("agents").Runner.run_streamed(agent(api, fake), PROMPT).stream_events()


def agent(api: str, fake: FakeModel) -> Any:
    agents = import_module("agents")
    agents.set_tracing_disabled(True)
    client = import_module("openai").AsyncOpenAI(
        base_url=f"{fake.base_url}/v1", api_key=KEY, max_retries=RETRIES
    )
    kind = agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
    settings = agents.ModelSettings(include_usage=True)
    return agents.Agent(name="weather", model=kind(GPT, client), model_settings=settings)


def pydantic_agent(fake: FakeModel) -> Any:
    client = import_module("anthropic").AsyncAnthropic(
        base_url=fake.base_url, api_key=KEY, max_retries=RETRIES
    )
    provider = import_module("pydantic_ai.providers.anthropic").AnthropicProvider
    model = import_module("pydantic_ai.models.anthropic").AnthropicModel
    agent = import_module("pydantic_ai").Agent
    return agent(model(CLAUDE, provider=provider(anthropic_client=client)))


async def pydantic_answer(fake: FakeModel) -> Any:
    return (await pydantic_agent(fake).run(PROMPT)).response


def pydantic_answer_sync(fake: FakeModel) -> Any:
    return pydantic_agent(fake).run_sync(PROMPT).response


async def pydantic_stream(fake: FakeModel) -> Any:
    """The responses of a run as they grow, which a program passes to `observe` or `track`."""

    async def responses() -> Any:
        agent = pydantic_agent(fake)
        async with agent.iter(PROMPT) as nodes:
            async for node in nodes:
                if agent.is_model_request_node(node):
                    async with node.stream(nodes.ctx) as stream:
                        async for _ in stream:
                            yield stream.response
                    yield stream.response

    return responses()


def litellm(provider: str, is_async: bool, streamed: bool, fake: FakeModel) -> Any:
    base = f"{fake.base_url}/v1" if provider == "openai" else fake.base_url
    model = GPT if provider == "openai" else CLAUDE
    return getattr(import_module("litellm"), "acompletion" if is_async else "completion")(
        model=f"{provider}/{model}",
        api_base=base,
        api_key=KEY,
        num_retries=RETRIES,
        messages=MESSAGES,
        **(WITH_USAGE if streamed else {}),
    )


async def adk_stream(streamed: bool, fake: FakeModel) -> Any:
    """The events of a run of Google ADK."""
    from google.genai import types

    models = import_module("google.adk.models.google_llm")
    options = google_options(fake)
    llm = models.Gemini(model=GEMINI, base_url=fake.base_url, retry_options=options.retry_options)
    agent = import_module("google.adk.agents").Agent(name="weather", model=llm)
    runner = import_module("google.adk.runners").InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    modes = import_module("google.adk.agents.run_config")
    mode = modes.StreamingMode.SSE if streamed else modes.StreamingMode.NONE
    return runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=types.Content(role="user", parts=[types.Part(text=PROMPT)]),
        run_config=modes.RunConfig(streaming_mode=mode),
    )


async def adk_answer(fake: FakeModel) -> Any:
    return [event async for event in await adk_stream(False, fake)][-1]


def both(name: str, ask: Callable[[bool, bool, FakeModel], Any]) -> list[Sdk]:
    """An SDK that has a synchronous and an asynchronous client."""
    return [
        Sdk(f"{name} {kind}", partial(ask, is_async, False), partial(ask, is_async, True), is_async)
        for kind, is_async in (("sync", False), ("async", True))
    ]


OPENAI_AND_GOOGLE = (
    *both("openai responses", partial(openai, "responses")),
    *both("openai chat", partial(openai, "chat")),
    *both("google-genai", google),
)
NEWEST = (
    *OPENAI_AND_GOOGLE,
    *both("anthropic", anthropic),
    *both("langchain-anthropic", partial(langchain, chat_anthropic)),
    *both("langchain-openai", partial(langchain, chat_openai)),
    *(
        Sdk(f"openai-agents {api}", partial(agents_answer, api), partial(agents_stream, api))
        for api in ("responses", "chat")
    ),
    Sdk("openai-agents sync", partial(agents_answer_sync, "responses"), None, False),
    Sdk("pydantic-ai", pydantic_answer, pydantic_stream),
    Sdk("pydantic-ai sync", pydantic_answer_sync, None, False),
)
FRAMEWORKS = (
    *OPENAI_AND_GOOGLE,
    *both("litellm anthropic", partial(litellm, "anthropic")),
    *both("litellm openai", partial(litellm, "openai")),
    Sdk("google-adk", adk_answer, partial(adk_stream, True)),
)


async def awaited(answer: Any) -> Any:
    return (await answer) if inspect.isawaitable(answer) else answer


async def at_once(sdk: Sdk, fake: FakeModel, tracker: Tracker) -> list[str]:
    """Two streams in turns, on one tracker."""
    await asyncio.gather(*(read_stream(sdk, fake, tracker) for _ in range(2)))
    return [tracker.reading.state]


async def read_stream(sdk: Sdk, fake: FakeModel, tracker: Tracker) -> None:
    assert sdk.stream is not None
    if sdk.is_async:
        async for _ in tracker.track(await awaited(sdk.stream(fake))):
            pass
    else:
        await asyncio.to_thread(read_sync, sdk.stream, fake, tracker)


def read_sync(ask: Ask, fake: FakeModel, tracker: Tracker) -> None:
    for _ in tracker.track(ask(fake)):
        pass


async def left(sdk: Sdk, fake: FakeModel, tracker: Tracker) -> list[str]:
    """A stream that is left after its first item, then a whole answer."""
    assert sdk.stream is not None
    if sdk.is_async:
        await leave_async(tracker.track(await awaited(sdk.stream(fake))))
    else:
        await asyncio.to_thread(leave, sdk.stream, fake, tracker)
    state = tracker.reading.state
    await observe_answer(sdk, fake, tracker)
    return [state, tracker.reading.state]


async def leave_async(stream: Any) -> None:
    await anext(aiter(stream))
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if close is not None:
        await awaited(close())


def leave(ask: Ask, fake: FakeModel, tracker: Tracker) -> None:
    stream = tracker.track(ask(fake))
    next(iter(stream))
    if (close := getattr(stream, "close", None)) is not None:
        close()


async def repeated_answer(sdk: Sdk, fake: FakeModel, tracker: Tracker) -> list[str]:
    """An answer at the third try of the SDK itself."""
    await observe_answer(sdk, fake, tracker)
    return [tracker.reading.state]


async def repeated_stream(sdk: Sdk, fake: FakeModel, tracker: Tracker) -> list[str]:
    """A stream at the third try."""
    await read_stream(sdk, fake, tracker)
    return [tracker.reading.state]


async def observe_answer(sdk: Sdk, fake: FakeModel, tracker: Tracker) -> None:
    ask: Awaitable[Any] = (
        awaited(sdk.answer(fake)) if sdk.is_async else asyncio.to_thread(sdk.answer, fake)
    )
    assert tracker.observe(await ask)


Situation = Callable[[Sdk, FakeModel, Tracker], Awaitable[list[str]]]
ANSWER = "repeated"
SITUATIONS: dict[str, tuple[Scenario, Situation]] = {
    "two at once": (AT_ONCE, at_once),
    "left early": (LEFT, left),
    ANSWER: (REFUSED, repeated_answer),
    "repeated stream": (REFUSED, repeated_stream),
}


def situations(sdks: Sequence[Sdk]) -> list[tuple[Sdk, str]]:
    """Every SDK in every situation that it can be in."""
    return [(sdk, name) for sdk, name in product(sdks, SITUATIONS) if sdk.stream or name == ANSWER]


async def play(sdk: Sdk, name: str) -> Case:
    """Play one situation of an SDK."""
    scenario, situation = SITUATIONS[name]
    tracker = Tracker()
    with FakeModel(scenario) as fake:
        states = await situation(sdk, fake, tracker)
        main = tracker.session.threads.get("main")
        return Case(
            name=f"{sdk.name}: {name}",
            read=sorted(buckets(call.usage) for call in main.calls.values()) if main else [],
            billed=sorted(buckets(one.usage) for one in fake.billed),
            states=states,
            refused=[one.status for one in fake.refused],
            unread=sum(tracker.unread_streams.values()),
        )


async def play_all(sdks: Sequence[Sdk]) -> None:
    """Play all at once: the SDKs wait long before they repeat a call."""
    for case in asyncio.as_completed([play(*each) for each in situations(sdks)]):
        print(msgspec.json.encode(await case).decode(), flush=True)


def main() -> None:
    for module in MODULES:
        with suppress(ModuleNotFoundError):
            import_module(module)
    asyncio.run(play_all(NEWEST if find_spec("langchain_core") else FRAMEWORKS))


if __name__ == "__main__":
    main()
