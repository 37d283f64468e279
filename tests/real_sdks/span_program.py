"""The span processor, one line a case: `python -m real_sdks.span_program`.

The spans are those of Google ADK and LiteLLM, and some of our own. A processor is registered for
the whole process, so the cases run one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Any

from brimline import Tracker

from .bill import LONG
from .connect import GEMINI
from .framework_program import get_weather
from .integration_cases import (
    Question,
    Way,
    play_all,
    play_unmeasured,
    print_case,
    read,
    wait_for_calls,
)
from .litellm_program import call

litellm: Any = import_module("litellm")
BrimlineSpanProcessor = import_module("brimline.integrations.opentelemetry").BrimlineSpanProcessor

trace: Any = import_module("opentelemetry.sdk.trace")
provider = trace.TracerProvider()
import_module("opentelemetry.trace").set_tracer_provider(provider)


def span_ways() -> dict[str, Way]:
    """Google ADK has the agent's name in its spans, LiteLLM has not."""
    litellm.callbacks = ["otel"]
    completions = {
        f"litellm {name}": Way(partial(complete, call), retries=False, threads=False)
        for name, call in {"completion": complete_sync, "acompletion": litellm.acompletion}.items()
    }
    return {
        "google-adk": Way(partial(adk_run, is_stream=False)),
        "google-adk streamed": Way(partial(adk_run, is_stream=True)),
        **completions,
    }


async def adk_run(question: Question, is_stream: bool) -> None:
    process_spans(question.tracker)
    types: Any = import_module("google.genai.types")
    retry = types.HttpRetryOptions(attempts=3, initial_delay=0.05, http_status_codes=[429, 529])
    llm = import_module("google.adk.models.google_llm").Gemini(
        model=GEMINI, base_url=question.fake.base_url, retry_options=retry
    )
    agent = import_module("google.adk.agents").Agent(
        name=question.thread, model=llm, instruction=LONG, tools=[get_weather]
    )
    runner = import_module("google.adk.runners").InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    modes = import_module("google.adk.agents.run_config")
    mode = modes.StreamingMode.SSE if is_stream else modes.StreamingMode.NONE
    async for _ in runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=types.Content(role="user", parts=[types.Part(text=question.prompt)]),
        run_config=modes.RunConfig(streaming_mode=mode),
    ):
        pass


def complete_sync(**asked: Any) -> Awaitable[Any]:
    return asyncio.to_thread(litellm.completion, **asked)


async def complete(way: Callable[..., Awaitable[Any]], question: Question) -> None:
    """LiteLLM calls the operation of an asynchronous completion by another name."""
    process_spans(question.tracker)
    said = [{"role": "user", "content": question.prompt}]
    await way(**call("openai", question.fake), messages=said)
    await wait_for_calls(question)


processed: list[Tracker] = []


def process_spans(tracker: Tracker) -> None:
    """Observe the spans of this process; those of the cases before are over."""
    if tracker not in processed:
        processed.append(tracker)
        provider.add_span_processor(BrimlineSpanProcessor(tracker, "gen_ai.agent.name"))


class Spans:
    """Ends spans of our own, which one tracker observes."""

    def __init__(self, tracker: Tracker) -> None:
        made = trace.TracerProvider()
        made.add_span_processor(BrimlineSpanProcessor(tracker))
        self._tracer = made.get_tracer(__name__)

    def end(self, operation: str, **usage: int) -> None:
        with self._tracer.start_as_current_span("span") as span:
            span.set_attribute("gen_ai.operation.name", operation)
            for name, tokens in usage.items():
                span.set_attribute(f"gen_ai.usage.{name.replace('__', '.')}", tokens)


def play_spans() -> None:
    """Two calls of an agent, by both names of cache writes; the agent's span has their sum."""
    tracker = Tracker()
    spans = Spans(tracker)
    usage = {"input_tokens": 1_000, "output_tokens": 10, "cache_read__input_tokens": 100}
    spans.end("chat", **usage, cache_creation__input_tokens=300)
    spans.end("chat", **usage, cache_write__input_tokens=300)
    spans.end("invoke_agent", input_tokens=2_000, output_tokens=20)
    spans.end("embeddings", input_tokens=500, output_tokens=0)
    writes = [one.usage.cache_write for one in tracker.session.threads["main"].calls.values()]
    assert writes == [300, 300]
    print_case(read("spans of an agent", tracker, {"main": [(1_000, 1_010)] * 2}))


async def end_refused_spans(question: Question) -> None:
    """An operation that may be a sum, twice."""
    spans = Spans(question.tracker)
    for _ in range(2):
        spans.end("plan", input_tokens=2_000, output_tokens=20)


async def main() -> None:
    """Play every case and print what was read."""
    await play_all(span_ways(), max_at_once=1)
    play_spans()
    await play_unmeasured("spans that are refused", end_refused_spans)


if __name__ == "__main__":
    asyncio.run(main())
