"""Codex: `exec --json`."""

import msgspec

from brimline.run.said.base import QUIET, Said, Told


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Item(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    command: str = ""
    query: str = ""
    server: str = ""
    tool: str = ""
    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    type: str
    item: _Item = _Item()
    error: _Error = _Error()


_line = msgspec.json.Decoder(_Line)


class CodexEar:
    """A turn that failed is a failure; an `error` line alone may be a retry."""

    idle = ()
    signs = (b'"turn.completed"', b'"turn.failed"')

    def hear(self, line: bytes) -> Told:
        """What a line tells: a command when it begins, everything else when it is done."""
        told = _line.decode(line)
        match told.type:
            case "turn.completed":
                return Told(failed=False)
            case "turn.failed":
                return Told((Said("error", told.error.message),), failed=True)
            case "item.started" if told.item.type == "command_execution":
                return Told((Said("tool", "shell", told.item.command),))
            case "item.completed":
                return _done(told.item)
            case _:
                return QUIET


def _done(item: _Item) -> Told:
    match item.type:
        case "agent_message":
            return Told((Said("text", item.text),))
        case "file_change":
            return Told((Said("tool", "patch"),))
        case "mcp_tool_call":
            return Told((Said("tool", f"{item.server}.{item.tool}"),))
        case "web_search":
            return Told((Said("tool", "web_search", item.query),))
        case "error":
            return Told((Said("error", item.message),))
        case _:
            return QUIET


EAR = CodexEar
