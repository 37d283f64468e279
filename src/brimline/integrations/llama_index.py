"""LlamaIndex: an event handler for every chat and completion, whole or streamed."""

from typing import Any

from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMCompletionEndEvent,
)
from pydantic import PrivateAttr

from brimline.context.events import MAIN
from brimline.context.providers.rows import get_path
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker


class BrimlineEventHandler(BaseEventHandler):
    """Observes every model call of the process, also those of agents and query engines.

    get_dispatcher().add_event_handler(BrimlineEventHandler(tracker))
    """

    _observer: AnswerObserver = PrivateAttr()

    def __init__(self, tracker: Tracker, thread: str = MAIN) -> None:
        super().__init__()
        self._observer = AnswerObserver(tracker, thread)

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex knows it."""
        return "BrimlineEventHandler"

    def handle(self, event: BaseEvent, **_: Any) -> None:
        """Observe the provider's answer, or a chunk of its stream."""
        calls = (LLMChatEndEvent, LLMChatInProgressEvent, LLMCompletionEndEvent)
        answer = get_path(event, "response.raw") if isinstance(event, calls) else None
        # Of a stream of Anthropic, LlamaIndex keeps back the event that the usage begins with.
        if get_path(answer, "type") == "message_delta":
            answer = get_path(answer, "usage") if isinstance(event, LLMChatEndEvent) else None
        if answer is not None:
            self._observer.observe(answer)
