"""A session's status in one short line: for its agent, a shell's prompt, and tmux's status bar."""

import re
from collections.abc import Callable

import msgspec

from brimline.context.need import HandoffState, Need
from brimline.context.usage import format_occupancy, format_percent, format_tokens
from brimline.errors import InvalidRequest

SHORT_FORMAT = "{percent} {sent}/{window}"
UNKNOWN = "?"

SAVE_HANDOFF = "save a handoff now"
_FIELD = re.compile(r"\{([a-z_]*)\}")
_NO_CALL = {
    "compacting": "compacting",
    "unknown": "context unknown until the next reply",
}


class ShortStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session's main thread; None is unknown.

    `state` is that of its reading. `limit` is where its client compacts. `handoff` is None if
    nothing keeps one. `need` is what the session asks of a person.
    """

    agent: str
    session: str
    title: str | None = None
    state: str = "unknown"
    sent: int | None = None
    window: int | None = None
    limit: int | None = None
    percent: float | None = None
    percent_raw: float | None = None
    percent_of_limit: float | None = None
    calls_left: int | None = None
    handoff: HandoffState | None = None
    calls_since_handoff: int | None = None
    need: Need | None = None
    is_near_limit: bool = False

    @property
    def line(self) -> str:
        """The status in less than 40 tokens: 92K of 200K (46.0%), 55.1% of the limit 167K."""
        if self.sent is None or self.state == "compacting":
            return _NO_CALL.get(self.state, self.state)
        size = f"{format_tokens(self.sent)} of {_tokens(self.window)}"
        if self.percent_raw is not None:
            size += f" ({format_occupancy(self.percent_raw)})"
        parts = [size]
        if self.percent_of_limit is not None:
            used = format_percent(self.percent_of_limit)
            parts.append(f"{used} of the limit {_tokens(self.limit)}")
        if self.calls_left is not None:
            parts.append(f"about {self.calls_left} call{'s' * (self.calls_left != 1)} left")
        return ", ".join(parts)

    @property
    def advice(self) -> str | None:
        """What the agent is to do now; None if it goes on."""
        if self.is_near_limit and self.handoff != "fresh":
            return SAVE_HANDOFF
        return None

    @property
    def text(self) -> str:
        """The line, and what the agent is to do."""
        return f"{self.line}: {self.advice}" if self.advice else self.line

    def format(self, template: str) -> str:
        """Fill a template's fields, such as {percent}; raises InvalidRequest if one is unknown."""

        def value(match: re.Match[str]) -> str:
            field = FIELDS.get(match[1])
            if field is None:
                known = ", ".join(f"{{{name}}}" for name in FIELDS)
                raise InvalidRequest(f"unknown field {match[0]}", f"Known fields: {known}.")
            return field(self)

        return _FIELD.sub(value, template)


FIELDS: dict[str, Callable[[ShortStatus], str]] = {
    "percent": lambda one: _or_unknown(one.percent_raw, format_occupancy),
    "sent": lambda one: _tokens(one.sent),
    "window": lambda one: _tokens(one.window),
    "limit": lambda one: _tokens(one.limit),
    "percent_of_limit": lambda one: _or_unknown(one.percent_of_limit, format_percent),
    "calls_left": lambda one: _or_unknown(one.calls_left, str),
    "handoff": lambda one: one.handoff or UNKNOWN,
    "state": lambda one: one.state,
    "agent": lambda one: one.agent,
    "session": lambda one: one.session,
    "title": lambda one: one.title or "",
}


def _tokens(count: int | None) -> str:
    return _or_unknown(count, format_tokens)


def _or_unknown(value: "float | None", show: Callable[..., str]) -> str:
    return UNKNOWN if value is None else show(value)
