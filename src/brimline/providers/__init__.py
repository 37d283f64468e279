"""Usage out of a provider's answer or stream; a shape says if the cache is in the prompt."""

from brimline.providers.anthropic import MESSAGES
from brimline.providers.gemini import GENERATE, INTERACTION
from brimline.providers.openai import CHAT, RESPONSES
from brimline.providers.pydantic_ai import REQUEST
from brimline.providers.rows import Row, Shape

SHAPES: dict[str, Shape] = {
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
    "Row",
    "Shape",
]
