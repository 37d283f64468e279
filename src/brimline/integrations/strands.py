"""Strands Agents: a provider of hooks, for every model provider, synchronous and not."""

from typing import Any

from strands.hooks import AfterModelCallEvent, HookProvider, HookRegistry

from brimline.context.events import MAIN
from brimline.context.providers.rows import get_path
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

NO_USAGE = "the message has no usage: Strands 1.62 or newer attaches it"


class BrimlineHookProvider(HookProvider):
    """Observes every model call of an agent.

    Agent(model=model, hooks=[BrimlineHookProvider(tracker)])
    """

    def __init__(self, tracker: Tracker, thread: str = MAIN) -> None:
        self._observer = AnswerObserver(tracker, thread)

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Register the hook."""
        registry.add_callback(AfterModelCallEvent, self._observe)

    def _observe(self, event: AfterModelCallEvent) -> None:
        if event.stop_response is None:  # the call failed
            return
        usage = get_path(event.stop_response.message, "metadata.usage")
        if get_path(usage, "inputTokens"):
            self._observer.observe(usage)
        else:
            self._observer.warn_once("no usage", NO_USAGE)
