"""The user's rules: levels, texts, windows and limits."""

from collections.abc import Mapping

import msgspec

from brimline.context.policy.levels import (
    DEFAULT_LEVELS,
    Fullness,
    LevelFigures,
    LevelMeasure,
    check_levels,
    fullness_of,
    measure_of,
    percent_of_window,
)
from brimline.context.window import NO_OVERRIDES, Overrides, model_aliases
from brimline.monitor.level_texts import Texts
from brimline.settings import Settings, StopSettings


class Rules(msgspec.Struct, frozen=True):
    """The user's rules; `by` has the levels of single sessions, models and agents.

    `early`: a level fires as soon as the next call will reach it.
    """

    levels: tuple[float, ...] = DEFAULT_LEVELS
    of: LevelMeasure | None = None
    by: Mapping[str, tuple[float, ...]] = msgspec.field(
        default_factory=dict[str, tuple[float, ...]]
    )
    texts: Texts = Texts()
    overrides: Overrides = NO_OVERRIDES
    stop: StopSettings = StopSettings()
    early: bool = True

    @classmethod
    def of_settings(cls, settings: Settings) -> "Rules":
        """Return the rules of the user's settings; raises InvalidPolicy for invalid levels."""
        return cls(
            levels=check_levels(settings.levels),
            of=settings.levels_of,
            by={
                name: check_levels(levels, f"levels_by.{name}")
                for name, levels in settings.levels_by.items()
            },
            texts=Texts.checked(settings.texts, settings.tone == "neutral"),
            overrides=settings.overrides,
            stop=settings.stop,
            early=settings.levels_early,
        )

    def levels_of(self, session: str, agent: str, model: str | None) -> tuple[float, ...]:
        """Return the levels of a session: its own, its model's, its agent's, or the default."""
        if not self.by:
            return self.levels
        models = [key for name in model_aliases(model or "") for key in (f"{agent}/{name}", name)]
        return next(
            (self.by[key] for key in (session, *models, agent) if key in self.by), self.levels
        )

    def measure_of(self, session: str, agent: str, model: str | None) -> LevelMeasure:
        """Return what a session's levels measure."""
        return measure_of(self.levels_of(session, agent, model), self.of)

    def fullness_of(
        self, reading: LevelFigures, session: str, agent: str, model: str | None
    ) -> Fullness | None:
        """Return how full a thread is by the levels of its session, model or agent."""
        levels = self.levels_of(session, agent, model)
        return fullness_of(reading, levels, measure_of(levels, self.of))

    def marks_of(
        self, session: str, agent: str, model: str | None, window: int | None, limit: int | None
    ) -> list[float]:
        """Return a thread's levels in percent of its window; none if the sizes are unknown."""
        levels = self.levels_of(session, agent, model)
        return percent_of_window(levels, measure_of(levels, self.of), window, limit)
