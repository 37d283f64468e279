"""The user's rules: levels, windows and limits, and the texts of level messages.

Each text is a template with the fields of `FIELDS`; the user's own templates replace ours.
"""

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from string import Formatter

import msgspec

from brimline.agents import capabilities_of
from brimline.context.events import MAIN
from brimline.context.forecast import CallsLeft
from brimline.context.inbox import MAX_CONTEXT_CHARS
from brimline.context.need import NeedFacts, describe_to_agent
from brimline.context.policy.levels import (
    DEFAULT_LEVELS,
    Fullness,
    LevelFigures,
    LevelMeasure,
    check_calls_levels,
    check_levels,
    fullness_of,
    measure_of,
    percent_of_window,
)
from brimline.context.policy.signals import expect_next_call
from brimline.context.tracker import Reading
from brimline.context.usage import format_tokens
from brimline.context.window import NO_OVERRIDES, Overrides, model_aliases
from brimline.errors import InvalidSettings
from brimline.settings import Settings, StopSettings, Text
from brimline.terminal.text import count_of

HANDOFF = "`{command} handoff {file}{whose}`"
STATUS = "[brimline] Your context {size}.{left}"
FACTS = f"{STATUS}{{facts}}"
FRESH = f"{FACTS} Go on."  # instead of a request for a document

TEXTS: Mapping[Text, str] = {
    "warning": (
        f"{FACTS} Consider writing a handoff document and running {HANDOFF} at the next good point."
    ),
    "critical": (
        f"{FACTS} Write a handoff document now (the task, what is done, what is open, where to "
        f"look) and run {HANDOFF}; then continue."
    ),
    "subagent_warning": STATUS,  # most subagents end before their last level
    "subagent": f"{STATUS} Finish your work and report your results.",
    "parent": (
        "[brimline] The context of agent {agent}{place} is at {percent}. "
        "The agent is still running."
    ),
    "compacted": (
        "[brimline] Agent {agent}{place} was compacted. The agent is still running, "
        "with a summary in place of its earlier context."
    ),
    "thrash": (
        "[brimline] Agent {agent}{place} was compacted {compactions} times in ten minutes. "
        "Its input does not fit into its context."
    ),
    "ended": "[brimline] Agent {agent}{place} has ended (context: {percent}).",
}

FIELDS: tuple[str, ...] = (
    "size", "left", "facts", "percent", "tokens", "window", "level", "calls_left", "agent",
    "session", "project", "place", "compactions", "whose", "command", "file",
)  # fmt: skip


class TemplateValues(msgspec.Struct, frozen=True):
    """The values that a template's fields show; `facts` are those of the main thread at a time."""

    session: str
    project: str | None
    reading: Reading
    agent: str = ""
    level: float = 0.0
    calls_left: CallsLeft | None = None
    compactions: int = 0
    facts: NeedFacts | None = None
    at: float = 0.0

    def fields(self) -> dict[str, str]:
        reading = self.reading
        return {
            "size": _size(reading),
            "left": _left(expect_next_call(reading, 1.0), self.calls_left),
            "facts": self._facts(),
            "percent": _or_unknown(reading.percent, "{:g}%"),
            "tokens": "unknown" if reading.sent is None else format_tokens(reading.sent),
            "window": "unknown" if reading.window is None else format_tokens(reading.window.tokens),
            "level": f"{self.level:g}" if self.level >= 0 else f"{-self.level:g} calls left",
            "calls_left": _or_unknown(self.calls_left and self.calls_left.calls, "{}"),
            "agent": self.session[:8],
            "session": self.session,
            "project": self.project or "unknown",
            "place": f" in {self.project}" if self.project else "",
            "compactions": str(self.compactions),
            "command": find_command(),
            "file": f"handoff-{self.session[:8]}.md",
            "whose": ""
            if capabilities_of(self.agent).session_id_variables
            else f" --session {self.session}",
        }

    def _facts(self) -> str:
        sentences = describe_to_agent(self.facts, self.at) if self.facts else ""
        return f" {sentences}" if sentences else ""


class Texts(msgspec.Struct, frozen=True):
    """The user's templates over ours; `neutral` texts report figures only."""

    own: Mapping[Text, str] = msgspec.field(default_factory=dict[Text, str])
    neutral: bool = False

    @classmethod
    def checked(cls, own: Mapping[Text, str], neutral: bool) -> "Texts":
        """Return checked texts; raises InvalidSettings if a template has an unknown field."""
        for name, template in own.items():
            _check(name, template)
        return cls(own, neutral)

    def level_text(
        self, figures: TemplateValues, levels: Sequence[float], thread: str = MAIN
    ) -> str:
        """Return the text for a level: the last one requests a handoff, others suggest it.

        Neither does if it is fresh. A subagent has none: the last level requests its results.
        """
        last = bool(levels) and figures.level == levels[-1]
        name: Text = "critical" if last else "warning"
        if thread != MAIN:
            name = "subagent" if last else "subagent_warning"
        is_fresh = figures.facts is not None and figures.facts.handoff == "fresh"
        ours = STATUS if self.neutral else FRESH if is_fresh else TEXTS[name]
        return self.own.get(name, ours).format_map(figures.fields())

    def text(self, name: Text, figures: TemplateValues) -> str:
        return self.own.get(name, TEXTS[name]).format_map(figures.fields())


def find_command() -> str:
    """Return how an agent runs `brimline`: by an absolute path if the PATH does not have it."""
    if shutil.which("brimline"):
        return "brimline"
    return shlex.join([sys.executable, "-m", "brimline"])


def _check(name: str, template: str) -> None:
    try:
        parts = list(Formatter().parse(template))
        template.format_map(dict.fromkeys(FIELDS, ""))
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        allowed = ", ".join(f"{{{field}}}" for field in FIELDS)
        reason = f"expected a template of {allowed}: got {template!r} ({error})"
        raise InvalidSettings("settings", f"texts.{name}", reason) from error
    plain = all(not field or field.isidentifier() for _, field, _, _ in parts)
    if not plain or any("{" in (form or "") for _, _, form, _ in parts):
        raise InvalidSettings(
            "settings", f"texts.{name}", f"expected plain names: got {template!r}"
        )


def _or_unknown(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)


def _left(reading: Reading, left: CallsLeft | None) -> str:
    """Return what is left until the client compacts, or until the window is full."""
    if reading.limit is None or reading.left is None:
        return ""
    if not reading.left:
        return " The window is full." if reading.left_of_window else " Compaction is imminent."
    about = f" About {format_tokens(reading.left)} tokens"
    if left is not None:
        calls = count_of(left.calls, "call")
        about += f", or {calls} ({left.low}-{left.high}) at the present pace,"
    if not reading.left_of_window:
        return f"{about} are left before compaction."
    off = ": auto-compaction is off" if reading.limit.origin == "off" else ""
    return f"{about} are left before the window is full{off}."


def _size(reading: Reading) -> str:
    tokens = "an unknown number of" if reading.sent is None else format_tokens(reading.sent)
    pending = describe_pending(reading)
    more = f"; {pending}" if pending else ""
    if reading.percent is None or reading.window is None:
        return f"holds {tokens} tokens{more}"
    window = format_tokens(reading.window.tokens)
    return f"is at {reading.percent:g}% ({tokens} of {window} tokens){more}"


def describe_pending(reading: Reading) -> str:
    """Return what came in since the last call, and the percentage with it; empty if nothing did."""
    if not reading.pending:
        return ""
    pending = f"about {format_tokens(reading.pending)} more tokens have just come in"
    expected = expect_next_call(reading, 1.0).percent
    return pending if expected is None else f"{pending}, and with them it is at about {expected:g}%"


class Rules(msgspec.Struct, frozen=True):
    """The user's rules; `by` has the levels of single sessions, models and agents.

    `calls_levels` are those of calls left, which all sessions have beside the others.

    `early`: a level fires as soon as the next call will reach it. `budget` is what a session may
    cost, in USD. `draft_chars` is how much an injected draft has at most. `pins_from_prompts`: a
    line `PIN: ...` of a prompt is pinned.
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
    calls_levels: tuple[float, ...] = ()
    budget: float | None = None
    draft_chars: int = MAX_CONTEXT_CHARS
    pins_from_prompts: bool = False

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
            calls_levels=check_calls_levels(settings.levels_calls),
            budget=settings.budget,
            draft_chars=settings.handoff.draft_chars,
            pins_from_prompts=settings.pins.from_prompts,
        )

    def levels_of(self, session: str, agent: str, model: str | None) -> tuple[float, ...]:
        """Return the levels of a session: its own, its model's, its agent's, or the default."""
        if not self.by:
            return self.levels
        models = [key for name in model_aliases(model or "") for key in (f"{agent}/{name}", name)]
        return next(
            (self.by[key] for key in (session, *models, agent) if key in self.by), self.levels
        )

    def levels_with(
        self, level: float, session: str, agent: str, model: str | None
    ) -> tuple[float, ...]:
        """Return the levels of a session among which one is: those of calls left, or the others."""
        return self.calls_levels if level < 0 else self.levels_of(session, agent, model)

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
