"""What a row of `make trust` measures, and when it fails."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

Figures: TypeAlias = Mapping[str, int | float]
"""Measured figures by name, in the order of the table; the name has the unit."""

MAX_EXAMPLES = 5  # of what went wrong


class RowResult(msgspec.Struct, frozen=True):
    """The figures of a run; `most` has the limits of some of them, `examples` what went wrong.

    `skipped` is the reason if the machine cannot run the row.
    """

    figures: Figures = {}
    most: Mapping[str, float] = {}
    examples: Sequence[str] = ()
    skipped: str | None = None

    @property
    def failures(self) -> list[str]:
        """A sentence for each figure above its limit, and the first examples."""
        above = [
            f"{name}: {self.figures[name]:,} is above {most:,}"
            for name, most in self.most.items()
            if self.figures[name] > most
        ]
        return [*above, *self.examples[:MAX_EXAMPLES]] if above else []
