from collections.abc import Callable
from typing import Any

from . import LLMCallCompletedEvent

class CrewAIEventsBus:
    def register_handler(
        self,
        event_type: type[LLMCallCompletedEvent],
        handler: Callable[[Any, LLMCallCompletedEvent], None],
    ) -> None: ...
    def flush(self, timeout: float | None = ...) -> bool: ...
