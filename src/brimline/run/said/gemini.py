"""Gemini CLI: `--output-format stream-json`."""

import msgspec

from brimline.run.said.base import QUIET, Said, Told, brief


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    type: str
    role: str | None = None
    content: str = ""
    delta: bool = False
    tool_name: str = ""
    parameters: msgspec.Raw = msgspec.Raw()
    message: str = ""
    status: str | None = None
    error: _Error | None = None


_line = msgspec.json.Decoder(_Line)


class GeminiEar:
    """A text comes in pieces; what stands between two pieces ends it."""

    idle = ()
    signs = (b'"type":"result"',)

    def __init__(self) -> None:
        self._speaking = False

    def hear(self, line: bytes) -> Told:
        """What a line tells."""
        told = _line.decode(line)
        speaks = told.type == "message" and told.role == "assistant"
        goes_on, self._speaking = self._speaking and told.delta, speaks
        if speaks:
            return Told((Said("text", told.content, goes_on=goes_on, open=told.delta),))
        match told.type:
            case "tool_use":
                return Told((Said("tool", told.tool_name, brief(told.parameters)),))
            case "error":
                return Told((Said("error", told.message),))
            case "result":
                error = (Said("error", told.error.message),) if told.error else ()
                return Told(error, failed=told.status != "success")
            case _:
                return QUIET


EAR = GeminiEar
