"""Pi: `--mode json`."""

from collections.abc import Iterator

import msgspec

from brimline.run.said.base import QUIET, Said, Told, brief

FAILURES = ("error", "aborted")


class _Cost(msgspec.Struct, frozen=True):
    total: float = 0.0


class _Usage(msgspec.Struct, frozen=True):
    cost: _Cost = _Cost()


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct, frozen=True, rename="camel"):
    role: str | None = None
    content: str | tuple[_Block, ...] = ()
    usage: _Usage = _Usage()
    stop_reason: str | None = None
    error_message: str | None = None


class _Result(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str
    message: _Message | str | None = None
    result: _Result | str | None = None


_line = msgspec.json.Decoder(_Line)


class PiEar:
    """Each message tells what it cost; a refused one may be tried again, so the last one counts."""

    idle = (b'{"type":"tool_execution_', b'{"type":"turn_', b'{"type":"agent_')
    signs = (b'"type":"message_end"', b'"type":"compaction_end"')

    def hear(self, line: bytes) -> Told:
        """What a line tells; a message stands in other lines too, which are passed over."""
        told = _line.decode(line)
        match told:
            case _Line("compaction_end", result=_Result(_Usage(cost))):
                return Told(cost=cost.total)
            case _Line("message_end", _Message("assistant") as message):
                failed = message.stop_reason in FAILURES
                return Told(tuple(_said(message)), cost=message.usage.cost.total, failed=failed)
            case _:
                return QUIET


def _said(message: _Message) -> Iterator[Said]:
    if message.error_message:
        yield Said("error", message.error_message)
    if isinstance(message.content, str):
        yield Said("text", message.content)
        return
    for block in message.content:
        if block.type == "text":
            yield Said("text", block.text)
        elif block.type == "toolCall":
            yield Said("tool", block.name, brief(block.arguments))


EAR = PiEar
