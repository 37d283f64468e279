"""When to compact: a share of the window or a number of tokens, and never past the window."""

import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from brimline.context.policy.estimate_correction import EstimateCorrection
from brimline.context.token_estimate import Counter, estimate_messages
from brimline.context.tracker import Reading
from brimline.errors import InvalidPolicy, InvalidState

LOGGER = logging.getLogger("brimline.policy")

Basis: TypeAlias = Literal["held", "effective"]
Content: TypeAlias = str | int | Sequence[object]  # a text, tokens, or messages

BASES: tuple[Basis, ...] = ("held", "effective")

REPLY_SHARE = 25  # a twenty-fifth of the window is reserved for a reply of unknown length
REPLY_CAP = 32_000  # tokens, the most that is reserved for a reply

UNKNOWN_CONTEXT = "the context is unknown until the next reply: pass `pending`"
UNKNOWN_WINDOW = "the window is unknown: set it, or give `at` in tokens"


class Rule(msgspec.Struct, frozen=True):
    """The settings of a policy; raises InvalidPolicy for an invalid field.

    `at` is a share of the window (a float, 1.0 is all of it) or tokens (an integer). `reply` is the
    room that a reply needs, the caller's own `max_tokens`; None: a twenty-fifth of the window.
    """

    at: float | int = 0.9
    basis: Basis = "held"
    cooldown: float = 0.0
    in_a_row: int = 3
    reply: int | None = None

    def __post_init__(self) -> None:
        share = type(self.at) is float and 0 < self.at <= 1
        # An integer 1 is more likely meant as the whole window than as one token.
        if not share and not _is_integer(self.at, 2):
            expected = "a share above 0 and up to 1.0, or an integer of 2 or more tokens"
            raise InvalidPolicy("at", self.at, expected)
        if self.basis not in BASES:
            raise InvalidPolicy("basis", self.basis, f"one of {', '.join(BASES)}")
        number = type(self.cooldown) in (int, float)
        if not number or not 0 <= self.cooldown <= sys.float_info.max:
            raise InvalidPolicy("cooldown", self.cooldown, "a finite number of seconds, 0 or more")
        if not _is_integer(self.in_a_row, 1):
            raise InvalidPolicy("in_a_row", self.in_a_row, "an integer of 1 or more")
        if self.reply is not None and not _is_integer(self.reply, 0):
            raise InvalidPolicy("reply", self.reply, "an integer of 0 or more, or None")

    def threshold(self, window: int | None) -> int | None:
        """Return above how many tokens to compact; None for a share of an unknown window."""
        if isinstance(self.at, int):
            return self.at
        return None if window is None else round(self.at * window)

    def most(self, window: int) -> int:
        """Return the most that may be sent so that the reply fits; at least half of the window."""
        reply = window // REPLY_SHARE if self.reply is None else self.reply
        return window - min(reply, REPLY_CAP, window // 2)


class Decision(msgspec.Struct, frozen=True):
    """Whether to compact, and the reason; `tokens` is what was compared with `threshold`.

    `too_large`: what comes does not fit into the window even after a compaction, so that it must be
    made smaller first.
    """

    compact: bool
    why: str
    tokens: int | None
    threshold: int | None
    too_large: bool = False


class _PolicyState(msgspec.Struct, frozen=True, tag="brimline-compaction-policy"):
    """A stored policy: `since_s` after its last compaction, at the time `saved_at`."""

    rule: Rule
    in_a_row: int
    since_s: float | None
    saved_at: float
    factor: float = 1.0
    left: int | None = None


class _Load(NamedTuple):
    """What the next call sends, and the same by the policy's basis; None if unknown.

    `on_top` is what it sends beyond what is held.
    """

    sends: int | None
    tokens: int | None
    on_top: int = 0


class CompactionPolicy:
    """Decides before a call whether to compact first; call `compacted()` after a compaction.

    With basis "effective" the threshold is for the cost of the prompt, so that a warm cache is not
    thrown away. With either basis, it compacts before a call that would leave no room for its reply
    in the window. `cooldown` seconds pass between two compactions, except in that case; after
    `in_a_row` of them with no reading below the threshold it refuses: another would not help.

    `counter` returns the tokens of a text, for those who have a tokenizer. Without one, tokens are
    estimated, and the estimates are corrected by what the provider billed.
    """

    def __init__(
        self,
        at: float = 0.9,
        basis: Basis = "held",
        cooldown: float = 0.0,
        in_a_row: int = 3,
        clock: Callable[[], float] = time.monotonic,
        *,
        reply: int | None = None,
        counter: Counter | None = None,
    ) -> None:
        self.rule = Rule(at, basis, cooldown, in_a_row, reply)
        if counter is not None and not callable(counter):
            raise InvalidPolicy("counter", counter, "a function of a text, or None")
        self._counter = counter
        self._correction = EstimateCorrection()
        self._left: int | None = None  # what the first call after the last compaction sent
        self._clock = clock
        self._in_a_row = 0
        self._last: float | None = None
        self._has_warned = False

    def should_compact(
        self, reading: Reading, pending: Content | None = None, added: Content | None = None
    ) -> bool:
        """Return whether to compact before the next call; the arguments are those of `decide`."""
        return self.decide(reading, pending, added).compact

    def decide(
        self, reading: Reading, pending: Content | None = None, added: Content | None = None
    ) -> Decision:
        """Return whether to compact before the next call, and the reason.

        `pending` is all that is about to be sent, `added` only what comes on top of what is held,
        each as a text, as a list of messages or in tokens; the larger of last usage and estimate
        counts.
        """
        self._learn(reading)
        counts = self._count(reading, "pending", pending), self._count(reading, "added", added)
        load = _load(reading, self.rule.basis, *counts)
        window = reading.window.tokens if reading.window else None
        threshold = self.rule.threshold(window)
        if reading.state == "compacting":
            return Decision(False, "a compaction is under way", load.tokens, threshold)
        if window is not None and self._is_too_large(load.on_top, window):
            return self._too_large(load.on_top, window)
        if window is not None and load.sends is not None and load.sends > self.rule.most(window):
            return self._at_the_window(load.sends, window)
        if load.tokens is None:
            return Decision(False, UNKNOWN_CONTEXT, None, threshold)
        if threshold is None:
            self._warn_of_unknown_window(load.tokens)
            return Decision(False, UNKNOWN_WINDOW, load.tokens, None)
        if load.tokens <= threshold:
            return self._below(load.tokens, threshold, measured=reading.held is not None)
        return self._above(load.tokens, threshold)

    def compacted(self) -> None:
        """Note that the caller has compacted."""
        self._in_a_row += 1
        self._last = self._clock()
        self._left = None

    def _learn(self, reading: Reading) -> None:
        self._correction.learn(reading)
        if self._in_a_row and self._left is None:
            self._left = reading.sent

    def _count(self, reading: Reading, field: str, content: Content | None) -> int | None:
        """The tokens of content: given, counted, or estimated."""
        if content is None or (type(content) is int and content >= 0):
            return content
        if not isinstance(content, (str, list, tuple)):
            expected = "a text, a list of messages, or an integer of 0 or more tokens"
            raise InvalidPolicy(field, content, expected)
        if self._counter is not None:
            return estimate_messages(content, self._counter)
        tokens = estimate_messages(content)
        self._correction.note(reading, tokens, is_all=field == "pending")
        return math.ceil(tokens * self._correction.factor)

    def _warn_of_unknown_window(self, tokens: int) -> None:
        """Log it once: the policy would never compact, without a sign of it."""
        if not self._has_warned:
            self._has_warned = True
            LOGGER.warning("cannot decide whether to compact %d tokens: %s", tokens, UNKNOWN_WINDOW)

    def state(self) -> bytes:
        """Return the rule and what was noted as JSON, for `from_state`."""
        since = None if self._last is None else self._clock() - self._last
        factor, left = self._correction.factor, self._left
        return msgspec.json.encode(
            _PolicyState(self.rule, self._in_a_row, since, time.time(), factor, left)
        )

    @classmethod
    def from_state(
        cls,
        state: bytes | str,
        clock: Callable[[], float] = time.monotonic,
        *,
        counter: Counter | None = None,
    ) -> "CompactionPolicy":
        """Return a policy that continues from a state; raises InvalidState."""
        try:
            saved = msgspec.json.decode(state, type=_PolicyState)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidState("policy", str(error)) from error
        rule = saved.rule
        policy = cls(
            rule.at,
            rule.basis,
            rule.cooldown,
            rule.in_a_row,
            clock,
            reply=rule.reply,
            counter=counter,
        )
        policy._in_a_row, policy._left = saved.in_a_row, saved.left
        policy._correction = EstimateCorrection(saved.factor)
        if saved.since_s is not None:
            policy._last = clock() - saved.since_s - max(0.0, time.time() - saved.saved_at)
        return policy

    def _is_too_large(self, on_top: int, window: int) -> bool:
        return on_top > 0 and on_top + (self._left or 0) > self.rule.most(window)

    def _too_large(self, on_top: int, window: int) -> Decision:
        most = self.rule.most(window)
        beside = f" beside the {self._left:,} that a compaction left" if self._left else ""
        why = f"{on_top:,} more do not fit into a window of {window:,}{beside}: make them smaller"
        return Decision(False, why, on_top, most, too_large=True)

    def _at_the_window(self, sends: int, window: int) -> Decision:
        most = self.rule.most(window)
        why = f"{sends:,} leave less than {window - most:,} for the reply in a window of {window:,}"
        return Decision(not self._exhausted_reason, self._exhausted_reason or why, sends, most)

    def _below(self, tokens: int, threshold: int, measured: bool) -> Decision:
        # An estimate does not show that a compaction helped: the next reply does.
        self._in_a_row = 0 if measured else self._in_a_row
        why = f"{self.rule.basis} {tokens:,} is not above {threshold:,}"
        return Decision(False, why, tokens, threshold)

    def _above(self, tokens: int, threshold: int) -> Decision:
        refused = self._exhausted_reason or self._cooldown_reason
        why = refused or f"{self.rule.basis} {tokens:,} is above {threshold:,}"
        return Decision(not refused, why, tokens, threshold)

    @property
    def _exhausted_reason(self) -> str | None:
        """The reason not to compact again: it had no effect."""
        if self._in_a_row < self.rule.in_a_row:
            return None
        return f"compaction had no effect, {self._in_a_row} in a row: another would not help"

    @property
    def _cooldown_reason(self) -> str | None:
        """The reason not to compact yet: the last compaction was too recent."""
        passed = math.inf if self._last is None else self._clock() - self._last
        if passed >= self.rule.cooldown:
            return None
        return (
            f"the last compaction was {passed:.0f} s ago, the cool-down is {self.rule.cooldown:g} s"
        )


def _load(reading: Reading, basis: Basis, pending: int | None, added: int | None) -> _Load:
    if reading.held is None:
        # Nothing is known of the cache either: all that is pending counts in full.
        return _Load(pending, pending)
    beyond = None if pending is None else pending - reading.held
    on_top = max(tokens for tokens in (0, added, beyond) if tokens is not None)
    known = reading.held if basis == "held" else reading.effective
    return _Load(reading.held + on_top, None if known is None else known + on_top, on_top)


def _is_integer(value: object, least: int) -> bool:
    return type(value) is int and value >= least
