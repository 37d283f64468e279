"""Claude Code: `--output-format stream-json`, and the one object of `--output-format json`."""

from collections.abc import Iterator

import msgspec

from brimline.run.said.base import QUIET, Said, Told, brief
from brimline.usage import ZERO, Usage

_ABSENT = msgspec.Raw()


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    name: str = ""
    input: msgspec.Raw = _ABSENT


class _Message(msgspec.Struct, frozen=True):
    content: str | tuple[_Block, ...] = ()


class _Account(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    cost: float = msgspec.field(default=0.0, name="costUSD")

    def usage(self) -> Usage:
        """The tokens in disjoint buckets."""
        return Usage(
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            self.output_tokens,
        )


class _Line(msgspec.Struct, frozen=True):
    type: str
    parent_tool_use_id: str | None = None
    message: _Message | None = None
    is_error: bool | None = None
    result: str | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None
    since_last: dict[str, _Account] | None = msgspec.field(
        default=None, name="model_usage_since_last_result"
    )


_line = msgspec.json.Decoder(_Line)


class ClaudeEar:
    """A run may have several results; of a resumed session `total_cost_usd` has what was before.

    Newer versions also tell what was billed since the result before: that is the run's alone.
    """

    idle = (b'{"type":"user",', b'{"type":"stream_event","event":{"type":"content_block_')
    signs = (b'"type":"result"',)

    def __init__(self) -> None:
        self._spoke = False
        self._total = 0.0

    def hear(self, line: bytes) -> Told:
        """What a line tells; a subagent's words are not the agent's own."""
        told = _line.decode(line)
        if told.type == "result":
            return self._result(told)
        if told.type != "assistant" or told.message is None or told.parent_tool_use_id is not None:
            return QUIET
        said = tuple(_said(told.message.content))
        self._spoke = self._spoke or any(one.kind == "text" for one in said)
        return Told(said)

    def _result(self, line: _Line) -> Told:
        billed = None
        if line.since_last is not None:
            billed = sum((account.usage() for account in line.since_last.values()), ZERO)
        return Told(
            said=self._last_words(line),
            cost=self._cost(line),
            turns=line.num_turns,
            failed=line.is_error,
            billed=billed,
        )

    def _last_words(self, line: _Line) -> tuple[Said, ...]:
        """The result repeats what was said, unless it is all that is printed."""
        if not line.result or (self._spoke and not line.is_error):
            return ()
        return (Said("error" if line.is_error else "text", line.result),)

    def _cost(self, line: _Line) -> float | None:
        if line.since_last is not None:
            return sum(account.cost for account in line.since_last.values())
        if line.total_cost_usd is None:
            return None
        before, self._total = self._total, line.total_cost_usd
        return line.total_cost_usd - before


def _said(content: str | tuple[_Block, ...]) -> Iterator[Said]:
    if isinstance(content, str):
        yield Said("text", content)
        return
    for block in content:
        if block.type == "text":
            yield Said("text", block.text)
        elif block.type == "tool_use":
            yield Said("tool", block.name, brief(block.input))


EAR = ClaudeEar
