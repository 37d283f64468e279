"""LangChain: a callback handler for every chat model, synchronous and asynchronous."""

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, LLMResult

from brimline.context.events import MAIN
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

NO_USAGE = "the message has no usage_metadata; OpenAI's models stream it with stream_usage=True"


class BrimlineCallbackHandler(BaseCallbackHandler):
    """Observes every call of the models that it is passed to.

    model.invoke(messages, config={"callbacks": [BrimlineCallbackHandler(tracker)]})
    """

    run_inline = True  # it never waits, so asynchronous code needs no thread for it
    raise_error = True  # an exception of a level's listener stops the agent, as in `observe`

    def __init__(self, tracker: Tracker, thread: str = MAIN) -> None:
        self._observer = AnswerObserver(tracker, thread)

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Observe the message of a call."""
        message = _message_of(response)
        if message is None or message.usage_metadata is None:
            self._observer.warn_once("no usage", NO_USAGE)
        else:
            self._observer.observe(message)

    def on_llm_error(self, error: BaseException, **options: Any) -> None:
        """Observe what came before the error: an aborted stream has reported what was sent."""
        response = options.get("response")
        message = _message_of(response) if isinstance(response, LLMResult) else None
        if isinstance(message, AIMessageChunk):  # a refused call has a message without chunks
            self._observer.observe_aborted(message)


def _message_of(response: LLMResult) -> AIMessage | None:
    """The message of the first generation; several of one call have the same usage."""
    first = next((each for candidates in response.generations for each in candidates), None)
    message = first.message if isinstance(first, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None
