"""LiteLLM's callback, one line a case: `python -m real_sdks.callback_program`.

A callback is registered for the whole process, so the cases run one after the other.
"""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from importlib import import_module
from typing import Any

from brimline import Tracker
from brimline.testing.fake_model import Reply, Scenario

from .integration_cases import Question, Way, play_all, play_unmeasured, wait_for_calls
from .litellm_program import ASKED, call

litellm: Any = import_module("litellm")
SETTLE_S = 0.3  # more than a callback takes

BrimlineLogger = import_module("brimline.integrations.litellm").BrimlineLogger


def call_of(provider: str, question: Question) -> dict[str, Any]:
    """The arguments of a call that is observed."""
    observe(question.tracker)
    return {
        **call(provider, question.fake),
        "tools": [],
        "num_retries": 2,
        "metadata": {"brimline_thread": question.thread},
    }


def observe(tracker: Tracker) -> None:
    """Register the callback; two questions at once share one tracker and its callback."""
    if [id(tracker)] != [logger.tracker_id for logger in litellm.callbacks]:
        litellm.logging_callback_manager._reset_all_callbacks()
        litellm.callbacks = [BrimlineLogger(tracker)]


def messages(question: Question) -> list[Any]:
    return [{"role": "user", "content": question.prompt}]


async def completion(provider: str, question: Question) -> None:
    asked = {**call_of(provider, question), "messages": messages(question)}
    await asyncio.to_thread(litellm.completion, **asked)
    await wait_for_calls(question)


async def acompletion(provider: str, question: Question) -> None:
    asked = {**call_of(provider, question), "messages": messages(question)}
    await litellm.acompletion(**asked)
    await wait_for_calls(question)


async def routed(provider: str, question: Question) -> None:
    """A Router retries itself; each of its attempts is a call of its own."""
    asked = call_of(provider, question)
    params = {name: asked[name] for name in ("model", "api_base", "api_key")}
    deployment = {"model_name": "model", "litellm_params": params}
    router = litellm.Router(model_list=[deployment], num_retries=2, retry_after=0)
    await router.acompletion(model="model", messages=messages(question), metadata=asked["metadata"])
    await wait_for_calls(question)


async def stream(provider: str, question: Question, is_left: bool = False) -> None:
    asked = {**call_of(provider, question), "messages": messages(question), **ASKED}

    def follow() -> None:
        for _ in litellm.completion(**asked):
            if is_left:
                return

    await asyncio.to_thread(follow)
    if not is_left:
        await wait_for_calls(question)


async def astream(provider: str, question: Question, is_left: bool = False) -> None:
    asked = {**call_of(provider, question), "messages": messages(question), **ASKED}
    async for _ in await litellm.acompletion(**asked):
        if is_left:
            return
    await wait_for_calls(question)


async def stream_without_usage(question: Question) -> None:
    """Two streams that nobody asked for their usage."""
    asked = {**call_of("openai", question), "messages": messages(question)}
    for _ in range(2):
        async for _ in await litellm.acompletion(**asked, stream=True):
            pass
    await asyncio.sleep(SETTLE_S)


async def retry_twice(question: Question) -> None:
    """Two retries whose answers LiteLLM does not report."""
    asked = {**call_of("anthropic", question), "messages": messages(question)}
    for _ in range(2):
        await litellm.acompletion(**asked)
    await asyncio.sleep(SETTLE_S)


async def responses(question: Question, is_stream: bool) -> None:
    asked = {**call_of("openai", question), "input": question.prompt}
    answer = await litellm.aresponses(**asked, stream=is_stream)
    if is_stream:
        async for _ in answer:
            pass
    await wait_for_calls(question)


async def anthropic_messages(question: Question) -> None:
    asked = {**call_of("anthropic", question), "messages": messages(question)}
    await litellm.anthropic_messages(**asked, max_tokens=500)
    await wait_for_calls(question)


def litellm_ways() -> dict[str, Way]:
    """What LiteLLM does not retry, or does not report after a retry, is asked once."""
    ways: dict[str, Way] = {
        "responses": Way(partial(responses, is_stream=False), retries=False),
        "responses stream": Way(partial(responses, is_stream=True), retries=False),
        "messages": Way(anthropic_messages, retries=False),
        "anthropic Router": Way(partial(routed, "anthropic")),
        "openai async": Way(partial(acompletion, "openai")),
        "gemini": Way(partial(completion, "gemini")),
        "gemini stream": Way(partial(stream, "gemini"), retries=False),
    }
    for provider in ("anthropic", "openai"):
        leave, aleave = (partial(each, provider, is_left=True) for each in (stream, astream))
        ways |= {
            provider: Way(partial(completion, provider)),
            f"{provider} stream": Way(partial(stream, provider), leave),
            f"{provider} stream async": Way(partial(astream, provider), aleave, retries=False),
        }
    return ways


async def main() -> None:
    """Play every case and print what was read."""
    # LiteLLM leaves its synchronous streams open. If they are collected while httpcore 1.0.9 holds
    # the lock of its pool, closing them waits for the same lock in the same thread, forever.
    gc.disable()
    await play_all(litellm_ways(), max_at_once=1)
    await play_unmeasured("stream without usage", stream_without_usage)
    refused_first = (Reply(error="overloaded"), Reply(text="It rains."))
    await play_unmeasured("retry", retry_twice, Scenario(main=refused_first * 2))


if __name__ == "__main__":
    asyncio.run(main())
