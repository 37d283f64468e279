"""Answers in the form of the providers' APIs."""

from typing import Any

Json = dict[str, Any]
MODEL = "claude-sonnet-4-5"


def message(id: str, sent: int, output: int = 10, **more: Any) -> Json:
    usage = {"input_tokens": sent, "output_tokens": output, **more.pop("usage", {})}
    return {
        "type": "message",
        "role": "assistant",
        "id": id,
        "model": MODEL,
        "stop_reason": "end_turn",
        "usage": usage,
        **more,
    }


def start(id: str, sent: int) -> Json:
    """The start of a streamed Anthropic message."""
    usage = {"input_tokens": 4, "cache_read_input_tokens": sent - 4, "output_tokens": 1}
    return {"type": "message_start", "message": {**message(id, sent), "usage": usage}}


def delta(output: int, **more: Any) -> Json:
    """The end of a streamed Anthropic message."""
    return {"type": "message_delta", "delta": {}, "usage": {"output_tokens": output}, **more}


def response(id: str, sent: int, output: int = 10, **more: Any) -> Json:
    usage = {"input_tokens": sent, "output_tokens": output}
    return {"object": "response", "id": id, "model": "gpt-6", "status": "completed",
            "usage": usage, "output": [], **more}  # fmt: skip


def completion(id: str, sent: int, output: int = 10, **more: Any) -> Json:
    usage = {"prompt_tokens": sent, "completion_tokens": output}
    return {"object": "chat.completion", "id": id, "model": "gpt-6", "usage": usage,
            "choices": [{"finish_reason": "stop"}], **more}  # fmt: skip


def chunk(id: str, usage: Json | None = None, finish: str | None = None) -> Json:
    """A chunk of a streamed chat completion."""
    choices: list[Json] = [{"delta": {}, "finish_reason": finish}]
    return {"object": "chat.completion.chunk", "id": id, "model": "gpt-6", "choices": choices,
            "usage": usage}  # fmt: skip


def gemini(id: str, sent: int, output: int = 10, finish: str | None = "STOP") -> Json:
    usage = {"promptTokenCount": sent, "candidatesTokenCount": output}
    return {"responseId": id, "modelVersion": "gemini-3.8-flash", "usageMetadata": usage,
            "candidates": [{"finishReason": finish}]}  # fmt: skip
