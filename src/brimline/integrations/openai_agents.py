"""The OpenAI Agents SDK: hooks of a run, whole or streamed."""

from typing import Any

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks
from brimline.context.events import MAIN
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

NO_USAGE = "the response has no usage; chat models stream it with ModelSettings(include_usage=True)"


class BrimlineHooks(RunHooks[Any]):
    """Observes every model call of a run, also after a handoff.

    await Runner.run(agent, "...", hooks=BrimlineHooks(tracker))
    """

    def __init__(self, tracker: Tracker, thread: str = MAIN) -> None:
        self._observer = AnswerObserver(tracker, thread)

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Observe the response of a call."""
        if response.usage.input_tokens:
            self._observer.observe(response)
        else:
            self._observer.warn_once("no usage", NO_USAGE)
