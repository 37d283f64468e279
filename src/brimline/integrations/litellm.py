"""LiteLLM: a callback for completions, responses and Anthropic messages of every provider."""

from collections.abc import Mapping
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from brimline.context.events import MAIN
from brimline.context.providers.rows import get_path, get_text
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

COMPLETIONS = frozenset({"completion", "acompletion"})
CALL_TYPES = COMPLETIONS | {"anthropic_messages", "responses", "aresponses"}
THREAD_KEY = "brimline_thread"

NO_USAGE = (
    "a stream without usage, which LiteLLM would estimate; "
    'stream with stream_options={"include_usage": True}'
)
NOT_REPORTED = (
    "LiteLLM does not report what `acompletion` got when it retried; retry with a `Router`"
)


class BrimlineLogger(CustomLogger):
    """Observes every answer, shortly after LiteLLM has returned it.

    litellm.callbacks = [BrimlineLogger(tracker)]

    A call with `metadata={"brimline_thread": "reviewer"}` belongs to this thread.
    """

    def __init__(self, tracker: Tracker, thread: str = MAIN) -> None:
        super().__init__()
        # LiteLLM drops a second logger of a class unless a public number or text differs.
        self.tracker_id = id(tracker)
        self._observer = AnswerObserver(tracker, thread)

    def log_success_event(
        self, kwargs: dict[str, Any], response_obj: object, start_time: object, end_time: object
    ) -> None:
        """Observe the answer of a synchronous call."""
        if kwargs.get("call_type") not in CALL_TYPES:  # an embedding, for example
            return
        if _is_estimated(kwargs):
            self._observer.warn_once("no usage", NO_USAGE)
        else:
            thread = get_text(kwargs, f"litellm_params.metadata.{THREAD_KEY}")
            self._observer.observe(_as_completion(response_obj), thread)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: object, start_time: object, end_time: object
    ) -> None:
        """Observe the answer of an asynchronous call."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: object, start_time: object, end_time: object
    ) -> None:
        """Warn of a retry: LiteLLM 1.106 does not report its answer if `acompletion` made it."""
        if kwargs.get("call_type") == "acompletion" and kwargs.get("max_retries"):
            self._observer.warn_once("retry", NOT_REPORTED)


def _is_estimated(kwargs: Mapping[str, Any]) -> bool:
    """Whether LiteLLM counted the tokens of a stream itself because they were not requested."""
    is_stream = kwargs.get("call_type") in COMPLETIONS and kwargs.get("stream")
    return bool(is_stream) and not get_path(kwargs, "stream_options.include_usage")


def _as_completion(answer: object) -> object:
    """A streamed response comes with the usage of a completion: the same as a completion."""
    usage = get_path(answer, "usage")
    if get_path(answer, "object") != "response" or get_path(usage, "prompt_tokens") is None:
        return answer
    names = {name: get_text(answer, name) for name in ("id", "model")}
    return {"object": "chat.completion", "usage": usage, **names}
