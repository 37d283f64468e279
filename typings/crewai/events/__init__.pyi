"""What `brimline.integrations.crewai` uses: the package is not in our environment."""

from typing import Any

from .event_bus import CrewAIEventsBus

class LLMCallCompletedEvent:
    call_id: str
    response_id: str | None
    usage: dict[str, Any] | None
    agent_role: str | None

class BaseEventListener:
    def __init__(self) -> None: ...
    def setup_listeners(self, crewai_event_bus: CrewAIEventsBus) -> None: ...

crewai_event_bus: CrewAIEventsBus
