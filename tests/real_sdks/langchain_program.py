"""LangChain's chat models with the callback handler: `python -m real_sdks.langchain_program`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from brimline.integrations.langchain import BrimlineCallbackHandler
from brimline.testing.fake_model import FakeModel

from .connect import CLAUDE, GPT, KEY
from .integration_cases import Question, Way, play_all, play_stopped, play_unmeasured


def claude(fake: FakeModel, retries: int = 2) -> Any:
    model: Any = ChatAnthropic  # its fields have aliases that type checkers do not know
    return model(model=CLAUDE, base_url=fake.base_url, api_key=KEY, max_retries=retries)


def gpt(fake: FakeModel, responses: bool = False, usage: bool = True) -> Any:
    model: Any = ChatOpenAI
    options = {"stream_usage": usage, "use_responses_api": responses}
    return model(model=GPT, base_url=f"{fake.base_url}/v1", api_key=KEY, **options)


def retrying(fake: FakeModel) -> Any:
    """LangChain retries itself: the handler sees each refusal."""
    model = claude(fake, retries=0)
    return model.with_retry(wait_exponential_jitter=False, stop_after_attempt=2)


def config(question: Question) -> Any:
    return {"callbacks": [BrimlineCallbackHandler(question.tracker, question.thread)]}


def invoke(make: Any, question: Question) -> Awaitable[Any]:
    model = make(question.fake)
    return asyncio.to_thread(model.invoke, question.prompt, config=config(question))


def stream(make: Any, question: Question, is_left: bool = False) -> Awaitable[None]:
    def follow() -> None:
        chunks = make(question.fake).stream(question.prompt, config=config(question))
        for _ in chunks:
            if is_left:
                chunks.close()

    return asyncio.to_thread(follow)


async def ainvoke(make: Any, question: Question) -> None:
    await make(question.fake).ainvoke(question.prompt, config=config(question))


async def astream(make: Any, question: Question, is_left: bool = False) -> None:
    chunks = make(question.fake).astream(question.prompt, config=config(question))
    async for _ in chunks:
        if is_left:
            await chunks.aclose()


async def stream_without_usage(question: Question) -> None:
    """Two streams of one handler that nobody asked for their usage."""
    model, observed = gpt(question.fake, usage=False), config(question)
    for _ in range(2):
        async for _ in model.astream(question.prompt, config=observed):
            pass


def ways() -> dict[str, Way]:
    """Every way, not with every API; langchain-anthropic 1.7 reports the prompt only at the end."""
    respond = partial(gpt, responses=True)
    return {
        "with_retry": Way(partial(ainvoke, retrying)),
        "anthropic invoke": Way(partial(invoke, claude)),
        "anthropic ainvoke": Way(partial(ainvoke, claude)),
        "anthropic stream": Way(partial(stream, claude), partial(stream, claude, is_left=True)),
        "anthropic astream": Way(partial(astream, claude), partial(astream, claude, is_left=True)),
        "chat invoke": Way(partial(invoke, gpt)),
        "chat astream": Way(partial(astream, gpt), partial(astream, gpt, is_left=True)),
        "responses ainvoke": Way(partial(ainvoke, respond)),
        "responses stream": Way(partial(stream, respond), partial(stream, respond, is_left=True)),
    }


async def main() -> None:
    """Play every case and print what was read."""
    await play_all(ways())
    await play_stopped(partial(astream, claude))
    await play_unmeasured("without usage", stream_without_usage)


if __name__ == "__main__":
    asyncio.run(main())
