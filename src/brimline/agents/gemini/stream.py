"""The lines of `gemini --output-format stream-json` as events."""

from collections.abc import Sequence

from brimline.agents.gemini.records import STREAM_KINDS, GeminiStreamLine, ModelStats, Stats
from brimline.agents.transcripts.source import parse_time
from brimline.context.events import AnyEvent, SessionSeen, Spent
from brimline.context.usage import Usage, from_subset
from brimline.errors import InvalidUsage
from brimline.files.foreign_json import JsonDecoder

_line = JsonDecoder(GeminiStreamLine)


class GeminiStreamParser:
    """The stream of one run: no call's usage is in it, only what the run spent in all."""

    def carry(self) -> bytes:
        return b""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _line.decode(record)
        at = parse_time(line.timestamp)
        if line.type == "init":
            return (SessionSeen(at=at, session=line.session_id, agent="gemini"),)
        if line.type == "result" and line.stats is not None:
            return _spent(line.stats, at)
        return () if line.type in STREAM_KINDS else None


def _spent(stats: Stats, at: float | None) -> Sequence[AnyEvent]:
    if stats.models is None:
        return (Spent(at=at, usage=_usage(stats)),)
    return [Spent(at=at, usage=_usage(model), model=name) for name, model in stats.models.items()]


def _usage(stats: ModelStats) -> Usage:
    """All but the prompt is output: the stream's `output_tokens` does not include the thoughts."""
    if stats.total_tokens < stats.input_tokens:
        raise InvalidUsage("total_tokens", stats.total_tokens, f"{stats.input_tokens} or more")
    return from_subset(stats.input_tokens, stats.cached, 0, stats.total_tokens - stats.input_tokens)
