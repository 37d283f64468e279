"""opencode: `run --format json`."""

import msgspec

from brimline.run.said.base import QUIET, Said, Told, brief


class _State(msgspec.Struct, frozen=True):
    input: msgspec.Raw = msgspec.Raw()


class _Part(msgspec.Struct, frozen=True):
    text: str = ""
    tool: str = ""
    cost: float | None = None
    state: _State = _State()


class _Data(msgspec.Struct, frozen=True):
    message: str = ""


class _Error(msgspec.Struct, frozen=True):
    name: str = ""
    data: _Data = _Data()


class _Line(msgspec.Struct, frozen=True):
    type: str
    part: _Part = _Part()
    error: _Error = _Error()


_line = msgspec.json.Decoder(_Line)


class OpencodeEar:
    """Each finished step tells what it cost."""

    idle = ()
    signs = (b'"type":"step_finish"', b'"type":"error"')

    def hear(self, line: bytes) -> Told:
        """What a line tells; a step that was finished after an error says that it went on."""
        told = _line.decode(line)
        match told.type:
            case "text":
                return Told((Said("text", told.part.text),))
            case "tool_use":
                return Told((Said("tool", told.part.tool, brief(told.part.state.input)),))
            case "step_finish":
                return Told(cost=told.part.cost, failed=False)
            case "error":
                words = told.error.data.message or told.error.name
                return Told((Said("error", words),), failed=True)
            case _:
                return QUIET


EAR = OpencodeEar
