"""Pydantic AI: a model that wraps another one, for runs that are whole, streamed or iterated."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import KnownModelName, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

from brimline.context.events import MAIN
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

NO_USAGE = "the response has no usage"


class BrimlineModel(WrapperModel):
    """Observes every response of the model that it wraps.

    Agent(BrimlineModel("anthropic:claude-opus-5-5", tracker))
    """

    def __init__(self, wrapped: Model | KnownModelName, tracker: Tracker, thread: str = MAIN):
        super().__init__(wrapped)
        self._observer = AnswerObserver(tracker, thread)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Request a response and observe it."""
        response = await super().request(messages, model_settings, model_request_parameters)
        self._observe(response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream a response and observe it in the end, also if the stream was left early."""
        async with super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        ) as stream:
            try:
                yield stream
            finally:
                self._observe(stream.get())

    def _observe(self, response: ModelResponse) -> None:
        if response.state != "complete":
            self._observer.observe_aborted(response)
        elif response.usage.input_tokens:
            self._observer.observe(response)
        else:
            self._observer.warn_once("no usage", NO_USAGE)
