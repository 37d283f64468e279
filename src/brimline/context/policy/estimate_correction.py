"""Corrects the estimates of a session by what its provider billed for the same content."""

from typing import NamedTuple

from brimline.context.tracker import Reading

LEAST_TOKENS = 200  # of a smaller estimate, what surrounds the content counts too much
MAX_FACTOR = 2.0
# Above this ratio of billed to estimated, more was sent than what was estimated.
MAX_RATIO = 2.5
FALL_SHARE = 0.2  # of the difference to a lower ratio: the next content may be of another kind


class _Noted(NamedTuple):
    """An estimate, what was held before its content, and the call and cycle of that."""

    tokens: int
    before: int
    sent: int | None
    cycle: int


class EstimateCorrection:
    """A factor of 1.0 to 2.0 by which estimates are too low; it rises at once and falls slowly.

    It never makes an estimate lower: the next content may be of a kind with more tokens.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self._noted: _Noted | None = None

    def note(self, reading: Reading, tokens: int, is_all: bool) -> None:
        """Note the estimate of what the next call sends: all of it, or on top of what is held."""
        before = 0 if is_all else reading.held
        is_useful = tokens >= LEAST_TOKENS and before is not None
        self._noted = (
            _Noted(tokens, before or 0, reading.sent, reading.cycle) if is_useful else None
        )

    def learn(self, reading: Reading) -> None:
        """Compare the noted estimate with the call that followed it, if there is one."""
        noted = self._noted
        if noted is None or reading.sent is None or reading.sent == noted.sent:
            return
        self._noted = None
        ratio = (reading.sent - noted.before) / noted.tokens
        if reading.cycle != noted.cycle or ratio > MAX_RATIO:
            return
        billed = min(max(ratio, 1.0), MAX_FACTOR)
        fall = FALL_SHARE * max(0.0, self.factor - billed)
        self.factor = max(billed, self.factor - fall)
