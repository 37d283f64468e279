"""Extract usage from a provider's answer or stream."""

from brimline.context.providers.anthropic import MESSAGES
from brimline.context.providers.bedrock import CONVERSE
from brimline.context.providers.cohere import CHAT_V2
from brimline.context.providers.gemini import GENERATE, INTERACTION
from brimline.context.providers.langchain import USAGE_METADATA
from brimline.context.providers.ollama import ANSWER
from brimline.context.providers.openai import CHAT, RESPONSES
from brimline.context.providers.opentelemetry import SPAN
from brimline.context.providers.pydantic_ai import REQUEST
from brimline.context.providers.rows import CountRow, UsageShape
from brimline.context.providers.vercel import GENERATED

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
