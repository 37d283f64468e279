from typing import Any

from . import BaseEvent

class ModelAnswer:
    raw: Any

class LLMChatEndEvent(BaseEvent):
    response: ModelAnswer | None

class LLMChatInProgressEvent(BaseEvent):
    response: ModelAnswer

class LLMCompletionEndEvent(BaseEvent):
    response: ModelAnswer
