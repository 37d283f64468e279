"""Recognise SDK objects by their shape: no SDK is imported."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from brimline.context.events import AnyEvent, Call
from brimline.errors import UnrecognisedObject
from brimline.sdk.anthropic import read_anthropic, read_claude_agent
from brimline.sdk.counts import read_usage
from brimline.sdk.frameworks import read_langchain, read_openai_agents, read_pydantic_ai, read_span
from brimline.sdk.openai import read_openai
from brimline.sdk.other_providers import read_bedrock, read_cohere, read_gemini, read_ollama
from brimline.sdk.stream import StreamMemory

# What can be observed, in the order in which it is tried: the most certain first.
READERS = (
    ("a Claude Agent SDK message or a line of Claude Code's stream", read_claude_agent),
    ("an Anthropic message or one of its stream events", read_anthropic),
    ("an OpenAI Agents SDK response or stream event", read_openai_agents),
    ("an OpenAI response, completion, chunk or stream event", read_openai),
    ("a LangChain message or chunk", read_langchain),
    ("a Gemini answer, chunk or interaction, or an event of Google ADK", read_gemini),
    ("a Pydantic AI response or node", read_pydantic_ai),
    ("a Bedrock Converse answer or stream event", read_bedrock),
    ("a Cohere answer or stream event", read_cohere),
    ("an Ollama answer or chunk", read_ollama),
    ("the attributes of an OpenTelemetry span with `gen_ai.usage`", read_span),
    (
        (
            "a usage of Anthropic, OpenAI, Gemini, Bedrock, LiteLLM, LangChain, Pydantic AI "
            "or Vercel's SDK"
        ),
        read_usage,
    ),
)


def read_events(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent]:
    """The events of an object; empty if it has no usage.

    Raises UnrecognisedObject or InvalidUsage; `memory` is then unchanged.
    """
    for _, read in READERS:
        events = read(seen, memory, thread)
        if events is not None:
            return [event for event in events if not _is_empty_call(event)]
    raise UnrecognisedObject(_describe(seen), [name for name, _ in READERS])


def _is_empty_call(event: AnyEvent) -> bool:
    """A call with no token at all: the provider left the usage out."""
    return isinstance(event, Call) and event.usage.held == 0


def _describe(seen: object) -> str:
    kind = type(seen)
    if isinstance(seen, Mapping):
        mapping = cast("Mapping[object, object]", seen)
        keys = ", ".join(repr(key) for key in islice(mapping, 8))
        return f"a dict with the keys {keys}" if keys else "an empty dict"
    return f"{kind.__module__}.{kind.__qualname__}"
