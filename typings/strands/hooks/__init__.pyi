from collections.abc import Callable
from typing import Any

class ModelStopResponse:
    message: dict[str, Any]
    stop_reason: str

class AfterModelCallEvent:
    stop_response: ModelStopResponse | None
    exception: Exception | None

class HookRegistry:
    def add_callback(
        self, event_type: type[AfterModelCallEvent], callback: Callable[[AfterModelCallEvent], None]
    ) -> None: ...

class HookProvider:
    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None: ...
