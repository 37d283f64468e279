"""Extract usage from a provider's answer or stream."""

from brimline.providers.anthropic import MESSAGES
from brimline.providers.gemini import GENERATE, INTERACTION
from brimline.providers.openai import CHAT, RESPONSES
from brimline.providers.pydantic_ai import REQUEST
from brimline.providers.rows import CountRow, UsageShape

SHAPES: dict[str, UsageShape] = {
    shape.name: shape for shape in (MESSAGES, RESPONSES, CHAT, GENERATE, INTERACTION, REQUEST)
}

__all__ = [
    "CHAT",
    "GENERATE",
    "INTERACTION",
    "MESSAGES",
    "REQUEST",
    "RESPONSES",
    "SHAPES",
    "CountRow",
    "UsageShape",
]
