"""A usage without its answer: it has no id, so each one is a new call."""

from collections.abc import Mapping, Sequence

from brimline.errors import InvalidUsage
from brimline.events import AnyEvent, Call
from brimline.observe.memory import StreamMemory
from brimline.providers.anthropic import usage_of
from brimline.providers.gemini import GENERATE
from brimline.providers.openai import CHAT, RESPONSES
from brimline.providers.pydantic_ai import REQUEST
from brimline.providers.rows import get_path
from brimline.usage import Usage

NAME = "a usage of Anthropic, OpenAI, Gemini, LiteLLM or Pydantic AI"


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a usage, or None."""
    if not _is_usage(seen):
        return None
    usage = _usage(seen)
    return [] if usage is None else [Call(id=memory.new_call_id(), usage=usage, thread=thread)]


def _is_usage(seen: object) -> bool:
    return any(
        _has(seen, prompt) and _has(seen, reply)
        for prompt, reply in (
            ("input_tokens", "output_tokens"),
            ("prompt_tokens", "completion_tokens"),
        )
    ) or any(_has(seen, name) for name in ("prompt_token_count", "promptTokenCount"))


def _usage(seen: object) -> Usage | None:
    if _has(seen, "prompt_tokens"):
        return CHAT.usage(seen)
    if not _has(seen, "input_tokens"):
        return GENERATE.usage(seen)
    if _has(seen, "cache_read_tokens"):
        _check_single_request(seen)
        return REQUEST.usage(seen)
    # OpenAI reports a sum and its parts, Anthropic parts alone.
    if _has(seen, "input_tokens_details") or _has(seen, "total_tokens"):
        return RESPONSES.usage(seen)
    return usage_of(seen)


def _check_single_request(seen: object) -> None:
    """Reject the usage of a run: a sum of requests has no occupancy."""
    requests = get_path(seen, "requests")
    if isinstance(requests, int) and requests > 1:
        raise InvalidUsage("requests", requests, "1: a sum of several requests is not one call")


def _has(seen: object, name: str) -> bool:
    return name in seen if isinstance(seen, Mapping) else hasattr(seen, name)
