"""When a context window ends and the next session begins: a fold over levels and calls, no I/O."""

from typing import Literal, TypeAlias

import msgspec

from brimline.context.client_report import Quotas
from brimline.context.policy.levels import LAST_ROTATION_PERCENT
from brimline.context.tracker import Reading
from brimline.errors import InvalidPolicy

ASK_CALLS = 10  # an agent that did not hand over within so many calls is stopped
FINISH_CALLS = 3  # calls in which the agent may end its turn after it handed over
USED_UP = 100  # percent of a quota
MAX_IDLE_WINDOWS = 3  # so many windows in a row without an edit or a reply are continued

# below: under the level. asked: the agent was asked for a handoff. handed over: there is one, and
# the turn is to end. stopped: the child is stopped, and continued from what there is.
WindowPhase: TypeAlias = Literal["below", "asked", "handed over", "stopped"]


class RotationRule(msgspec.Struct, frozen=True):
    """At which percent of the limit a session is continued in a new one, and how often at most.

    Without `rotate_at` it is not. `parks`: after a quota of five hours was used up, the run waits
    until it is reset, and continues.
    """

    rotate_at: float | None = None
    max_rotations: int | None = None
    parks: bool = False

    def __post_init__(self) -> None:
        if self.rotate_at is not None and not 0 < self.rotate_at < LAST_ROTATION_PERCENT:
            expected = f"a number above 0 and below {LAST_ROTATION_PERCENT:g} percent of the limit"
            raise InvalidPolicy("rotate-at", f"{self.rotate_at:g}", expected)
        if self.max_rotations is not None and self.max_rotations < 1:
            raise InvalidPolicy("max-rotations", self.max_rotations, "1 or more")


class WindowState(msgspec.Struct, frozen=True):
    """The phase of a context window, and how many calls it had made when that began."""

    phase: WindowPhase = "below"
    since_calls: int = 0

    def after(
        self, percent: float | None, calls: int, rotate_at: float | None, has_document: bool
    ) -> "WindowState":
        """Return the state after what is known now; an unknown percentage changes nothing."""
        is_full = percent is not None and percent >= LAST_ROTATION_PERCENT
        waited = calls - self.since_calls
        match self.phase:
            case "below" if _is_reached(rotate_at, percent):
                return WindowState("asked", calls)
            case "asked" if has_document:
                return WindowState("handed over", calls)
            case "asked" if is_full or waited >= ASK_CALLS:
                return WindowState("stopped", calls)
            case "handed over" if is_full or waited >= FINISH_CALLS:
                return WindowState("stopped", calls)
            case _:
                return self

    def without_answer(self, calls: int) -> "WindowState":
        """Return the state if nothing can deliver the request for a handoff."""
        return WindowState("stopped", calls)

    @property
    def continues(self) -> bool:
        """Whether a child that ended now is continued.

        One that was asked and ended its turn without a handoff has finished its work.
        """
        return self.phase in ("handed over", "stopped")


def _is_reached(level: float | None, percent: float | None) -> bool:
    return level is not None and percent is not None and percent >= level


class RotationCount(msgspec.Struct, frozen=True):
    """How often a run was rotated, and how many windows in a row had no edit and no reply."""

    rotations: int = 0
    idle: int = 0

    def after(self, has_progress: bool) -> "RotationCount":
        return RotationCount(self.rotations + 1, 0 if has_progress else self.idle + 1)

    def refusal(self, rule: RotationRule) -> str | None:
        """Return why the next window is not to be rotated; None if it may."""
        if rule.max_rotations is not None and self.rotations >= rule.max_rotations:
            return f"no rotation is left (--max-rotations {rule.max_rotations})"
        if self.idle >= MAX_IDLE_WINDOWS:
            return f"{self.idle} windows in a row reached the level without an edit or a reply"
        return None


def reset_time(quotas: Quotas | None, now: float) -> float | None:
    """Return when the five hours are reset that are used up; None if they are not, or others too.

    A quota of seven days is not waited for.
    """
    current = quotas and quotas.current(now)
    if not current or current.five_hour is None or current.five_hour.used_percentage < USED_UP:
        return None
    if current.seven_day is not None and current.seven_day.used_percentage >= USED_UP:
        return None
    return current.five_hour.resets_at


def rotation_percent(reading: Reading | None) -> float | None:
    """Return how near the compaction is: of the limit, or of the window if no limit is known."""
    if reading is None:
        return None
    return reading.percent_raw if reading.limit is None else reading.percent_of_limit
