"""LiteLLM over the APIs that it speaks, one line a case: `python -m real_sdks.litellm_program`.

It leaves loops and sockets open, and does not go with the other SDKs: it runs in a process of its
own, the fake in it. What is wrong at a step is an AssertionError; the lines are what was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import msgspec

from brimline.testing.fake_model import FakeModel

from .bill import LONG, LOOP, WEATHER, Beside, held, sent
from .connect import CLAUDE, GEMINI, GPT, KEY

PROVIDERS = {"anthropic": CLAUDE, "openai": GPT, "gemini": GEMINI}
CACHED = {"cache_control": {"type": "ephemeral"}}
FUNCTION: dict[str, Any] = {"name": WEATHER.name, "parameters": {"type": "object"}}
ASKED = {"stream": True, "stream_options": {"include_usage": True}}


class Case(msgspec.Struct, frozen=True):
    """What was read in one case, and what was billed: sent and held, call by call."""

    name: str
    read: list[tuple[int, int]]
    billed: list[tuple[int, int]]
    levels: list[float]
    window: int | None


def call(provider: str, fake: FakeModel) -> dict[str, Any]:
    """The arguments of every call to a provider."""
    base = f"{fake.base_url}/v1" if provider == "openai" else fake.base_url
    head = {"model": f"{provider}/{PROVIDERS[provider]}", "api_base": base, "api_key": KEY}
    return {**head, "tools": [{"type": "function", "function": FUNCTION}], "num_retries": 0}


async def whole(sdk: Any, beside: Beside, asked: Any) -> Any:
    """A whole answer."""
    answer = sdk.completion(**asked)
    beside.take(answer)
    return answer


async def awhole(sdk: Any, beside: Beside, asked: Any) -> Any:
    """A whole answer, asynchronously."""
    answer = await sdk.acompletion(**asked)
    beside.take(answer)
    return answer


async def chunks(sdk: Any, beside: Beside, asked: Any) -> Any:
    """The chunks of a stream, the last of which has the usage."""
    return sdk.stream_chunk_builder(beside.flow(sdk.completion(**asked, **ASKED)))


async def achunks(sdk: Any, beside: Beside, asked: Any) -> Any:
    """The chunks of an asynchronous stream."""
    made = await sdk.acompletion(**asked, **ASKED)
    return sdk.stream_chunk_builder(await beside.aflow(made))


Way = Callable[[Any, Beside, Any], Awaitable[Any]]
WAYS: dict[str, Way] = {
    "whole": whole,
    "whole-async": awhole,
    "stream": chunks,
    "stream-async": achunks,
}


async def loop(sdk: Any, way: Way, provider: str, beside: Beside) -> None:
    """Ask, run the tools that are asked for, and ask again until none is."""
    said: list[Any] = [{"role": role, "content": [_text(LONG)]} for role in ("system", "user")]
    asked = {**call(provider, beside.fake), "messages": said}
    while called := (await way(sdk, beside, asked)).choices[0].message.tool_calls:
        said.append({"role": "assistant", "tool_calls": [one.model_dump() for one in called]})
        said += [
            {"role": "tool", "tool_call_id": one.id, "content": [_text("rain")]} for one in called
        ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, **CACHED}


async def responses(sdk: Any, beside: Beside) -> None:
    """Its Responses, whole and streamed."""
    asked: dict[str, Any] = {**call("openai", beside.fake), "tools": [], "input": LONG}
    beside.take(sdk.responses(**asked))
    beside.flow(sdk.responses(**asked, stream=True))
    beside.take(await sdk.aresponses(**asked))
    await beside.aflow(await sdk.aresponses(**asked, stream=True))


async def messages(sdk: Any, beside: Beside) -> None:
    """Its Anthropic messages, which are dicts."""
    said = [{"role": "user", "content": [_text(LONG)]}]
    asked = {**call("anthropic", beside.fake), "tools": [], "messages": said, "max_tokens": 500}
    for _ in LOOP.main:
        beside.take(await sdk.anthropic_messages(**asked))


def play(name: str, run: Callable[[Beside], Coroutine[Any, Any, None]]) -> Case:
    """Four calls, each of which is compared with what was billed."""
    with FakeModel(LOOP) as fake:
        # LiteLLM makes ids of its own for some answers.
        beside = Beside(fake, same_ids=False)
        asyncio.run(run(beside))
    calls = beside.tracker.session.threads["main"].calls.values()
    window = beside.reading().window
    return Case(
        name=name,
        read=[(one.usage.sent, one.usage.held) for one in calls],
        billed=[(sent(one), held(one)) for one in beside.billed()],
        levels=[one.level for one in beside.levels],
        window=window.tokens if window else None,
    )


def cases(sdk: Any) -> Iterator[Case]:
    """Every case, one after the other."""
    for provider, name in product(PROVIDERS, WAYS):
        yield play(f"{provider} {name}", partial(loop, sdk, WAYS[name], provider))
    yield play("responses", partial(responses, sdk))
    yield play("anthropic_messages", partial(messages, sdk))


def main() -> None:
    """Play every case and print what was read."""
    for case in cases(import_module("litellm")):
        print(msgspec.json.encode(case).decode(), flush=True)


if __name__ == "__main__":
    main()
