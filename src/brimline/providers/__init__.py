"""Extract usage from a provider's answer or stream."""

from brimline.providers.anthropic import MESSAGES
from brimline.providers.bedrock import CONVERSE
from brimline.providers.cohere import CHAT_V2
from brimline.providers.gemini import GENERATE, INTERACTION
from brimline.providers.langchain import USAGE_METADATA
from brimline.providers.ollama import ANSWER
from brimline.providers.openai import CHAT, RESPONSES
from brimline.providers.opentelemetry import SPAN
from brimline.providers.pydantic_ai import REQUEST
from brimline.providers.rows import CountRow, UsageShape
from brimline.providers.vercel import GENERATED

SHAPES: dict[str, UsageShape] = {
    shape.name: shape
    for shape in (
        MESSAGES,
        RESPONSES,
        CHAT,
        GENERATE,
        INTERACTION,
        CONVERSE,
        CHAT_V2,
        ANSWER,
        REQUEST,
        USAGE_METADATA,
        GENERATED,
        SPAN,
    )
}

__all__ = [
    "ANSWER",
    "CHAT",
    "CHAT_V2",
    "CONVERSE",
    "GENERATE",
    "GENERATED",
    "INTERACTION",
    "MESSAGES",
    "REQUEST",
    "RESPONSES",
    "SHAPES",
    "SPAN",
    "USAGE_METADATA",
    "CountRow",
    "UsageShape",
]
