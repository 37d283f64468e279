from typing import Any

from pydantic import BaseModel

from .events import BaseEvent

class BaseEventHandler(BaseModel):
    @classmethod
    def class_name(cls) -> str: ...
    def handle(self, event: BaseEvent, **kwargs: Any) -> None: ...
