"""The course of one synthetic session: calls, what lies between them, compactions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from records import MODELS, Call, Lines, Tokens

_LIMIT = 167_000
_OPENING = 18_000
_BYTES_A_CALL = 22_000


@dataclass
class Truth:
    """What was written, counted while it is written."""

    calls: int = 0
    compactions: int = 0


class Clock:
    """Timestamps that end near a file's own time; a session lasts up to three days."""

    def __init__(self, end: float, calls: int, rng: random.Random) -> None:
        span = min(3 * 86_400, calls * 900)
        self._start = int(end) - span
        self._step = span / calls / 4
        self._left = calls * 4
        self._passed = 0.0
        self._rng = rng
        self.now = ""

    def tick(self) -> str:
        """Move on and return the new time as the client writes it."""
        if self._left > 0:
            self._left -= 1
            self._passed += self._step
        moment = datetime.fromtimestamp(self._start + int(self._passed), UTC)
        self.now = f"{moment:%Y-%m-%dT%H:%M:%S}.{int(self._rng.random() * 1000):03}Z"
        return self.now


def session(end: float, size: int, rng: random.Random, lines: Lines, truth: Truth) -> Iterator[str]:
    """Yield the lines of a session without end; the writer stops at the file's size."""
    clock = Clock(end, max(1, size // _BYTES_A_CALL), rng)
    model, sent = MODELS[int(rng.random() ** 2 * len(MODELS))], _OPENING
    while True:
        if rng.random() < 0.02:
            model = MODELS[int(rng.random() * len(MODELS))]
        grown = 1 + int(rng.lognormvariate(6.5, 1.2))
        if sent + grown > _LIMIT:
            yield from _compaction(lines, clock, sent, truth)
            sent //= 3
        if rng.random() < 0.003:
            yield lines.synthetic(clock.tick())
        tokens = _tokens(rng, sent, grown)
        yield from _call(rng, lines, clock, Call(rng, model, tokens), truth)
        sent += grown


def _compaction(lines: Lines, clock: Clock, sent: int, truth: Truth) -> Iterator[str]:
    yield lines.boundary(clock.tick(), sent)
    truth.compactions += 1
    yield lines.summary(clock.tick())


def _tokens(rng: random.Random, sent: int, grown: int) -> Tokens:
    """The usage of a call; now and then the cache has expired and all is written again."""
    output = 5 + int(rng.lognormvariate(5.5, 1.2))
    if rng.random() < 0.03:
        return Tokens(4, sent + grown, 0, output)
    return Tokens(4, grown, sent, output)


def _call(
    rng: random.Random, lines: Lines, clock: Clock, call: Call, truth: Truth
) -> Iterator[str]:
    """Yield one call and what surrounds it: about ten lines, two of them with its usage."""
    output = call.tokens.output
    yield lines.snapshot(clock.tick()) if rng.random() < 0.7 else lines.prompt(clock.tick())
    yield lines.attachment(clock.now)
    truth.calls += 1
    yield lines.assistant(clock.tick(), call, min(output, 3), lines.text())
    if rng.random() < 0.05:
        yield lines.tool_result(clock.now)
    yield lines.assistant(clock.now, call, output, lines.tool_use())
    yield lines.tool_result(clock.tick(), longest=rng.random() < 1e-4)
    if rng.random() < 0.02:
        yield lines.agent_result(clock.now, call.tokens)
    yield lines.attachment(clock.now)
    yield lines.system(clock.now)
    yield lines.last_prompt()
    yield lines.tool_result(clock.tick())
    yield lines.system(clock.now)
