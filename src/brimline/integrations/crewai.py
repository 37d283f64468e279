"""CrewAI: a listener of its event bus, for every model call of a crew, a flow or an agent."""

from crewai.events import BaseEventListener, LLMCallCompletedEvent
from crewai.events.event_bus import CrewAIEventsBus

from brimline.context.events import MAIN
from brimline.integrations.answer_observer import AnswerObserver
from brimline.sdk import Tracker

NO_USAGE = "the event of the call has no usage"


class BrimlineEventListener(BaseEventListener):
    """Observes every model call of the process, shortly after CrewAI has made it.

    BrimlineEventListener(tracker)

    With `thread=None` each agent is a thread, by its role. `crewai_event_bus.flush()` waits for the
    calls that CrewAI has not reported yet.
    """

    def __init__(self, tracker: Tracker, thread: str | None = MAIN) -> None:
        self._observer = AnswerObserver(tracker)
        self._thread = thread
        super().__init__()

    def setup_listeners(self, crewai_event_bus: CrewAIEventsBus) -> None:
        """Register the listener."""
        crewai_event_bus.register_handler(LLMCallCompletedEvent, self._observe)

    def _observe(self, source: object, event: LLMCallCompletedEvent) -> None:
        if event.usage:
            answer = {"usage": event.usage, "id": event.response_id or event.call_id}
            self._observer.observe(answer, self._thread or event.agent_role or MAIN)
        else:
            self._observer.warn_once("no usage", NO_USAGE)
