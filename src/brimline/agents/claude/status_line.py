"""What Claude Code writes on a status line's standard input, taken as far as it can be.

The line must come whatever stands there: clients were seen to tell an epoch time as a percentage,
0 % of a context in use, and a window of 200,000 that held 300,000. A field that cannot be is left
out, so that the rest of Brimline goes on with what it knows from elsewhere, and is named.
"""

import json
from typing import Annotated, Any, TypeVar, cast

import msgspec

from brimline.agents.hook_payloads import (
    ContextWindow,
    Cost,
    CurrentUsage,
    StatusInput,
    StatusLineReport,
)

MAX_TOKENS = 10**8  # more tokens than any window holds; an epoch time is far more

# The client's percentage is rounded; further from its own tokens it is of something else.
MAX_DEVIATION_PERCENT = 2.0

MISSING = -1  # a count that is missing in the record

Count = Annotated[int, msgspec.Meta(ge=0, lt=MAX_TOKENS)]
Size = Annotated[int, msgspec.Meta(gt=0, lt=MAX_TOKENS)]
Percentage = Annotated[float, msgspec.Meta(ge=0, le=100)]
Dollars = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]


class _Usage(CurrentUsage, frozen=True):
    """A usage that is whole: a missing count is not 0."""

    input_tokens: Count = MISSING
    cache_creation_input_tokens: Count = MISSING
    cache_read_input_tokens: Count = MISSING
    output_tokens: Count = 0

    def __post_init__(self) -> None:
        if MISSING in self._prompt:
            raise ValueError("a count is missing")

    @property
    def sent(self) -> int:
        return sum(self._prompt)

    @property
    def _prompt(self) -> tuple[int, int, int]:
        return (
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        )


class _Context(ContextWindow, frozen=True, kw_only=True):
    context_window_size: Size | None = None
    current_usage: _Usage | None = None
    used_percentage: Percentage | None = None
    total_input_tokens: float | None = None
    total_output_tokens: float | None = None


class _Cost(Cost, frozen=True):
    total_cost_usd: Dollars | None = None


class _Workspace(msgspec.Struct, frozen=True):
    project_dir: str | None = None


class _Status(StatusInput, frozen=True, kw_only=True):
    context_window: _Context = _Context()
    cost: _Cost = _Cost()
    workspace: _Workspace = _Workspace()


_decoder = msgspec.json.Decoder(_Status)
_T = TypeVar("_T", bound=msgspec.Struct)


def read_status_line(body: bytes) -> StatusLineReport:
    """What a client told; raises msgspec.DecodeError where it names no session."""
    try:
        status = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _read_fields(body)
    return _report(status, _disagreement(status.context_window))


def _read_fields(body: bytes) -> StatusLineReport:
    """The same, field by field."""
    told, bad = _object(body), dict[str, Any]()
    status = _sound_fields(_Status, told, bad)
    id = told.get("session_id")
    if not isinstance(id, str) or not id or "session_id" in bad:
        raise msgspec.ValidationError("expected a status line's input with a `session_id`")
    return _report(status, _impossible(bad) or _disagreement(status.context_window))


def _report(status: _Status, wrong: str | None) -> StatusLineReport:
    project = status.workspace.project_dir or status.cwd
    return StatusLineReport(status, wrong, project, _was_called(status))


def _was_called(status: _Status) -> bool:
    """Whether there was a call: before the first one there is no usage, no total and no cost."""
    context = status.context_window
    if context.current_usage is not None:
        return True
    totals = (
        context.total_input_tokens,
        context.total_output_tokens,
        status.cost.total_cost_usd,
    )
    return any(total is not None and total > 0 for total in totals)


def _object(body: bytes) -> dict[str, Any]:
    """A JSON object, also one with NaN in it."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError("expected JSON") from error
    if not isinstance(told, dict):
        raise msgspec.ValidationError(f"expected an object: got {type(told).__name__}")
    return cast("dict[str, Any]", told)


def _sound_fields(kind: type[_T], told: dict[str, Any], bad: dict[str, Any]) -> _T:
    """The fields that are sound; the others go to `bad`, with what stood there."""
    sound: dict[str, Any] = {"session_id": ""} if kind is _Status else {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in told:
            continue
        value = told[field.encode_name]
        if isinstance(value, dict) and isinstance(field.type, type):
            sound[field.name] = _sound_fields(field.type, cast("dict[str, Any]", value), bad)
            continue
        try:
            sound[field.name] = _convert(value, field.type)
        except (msgspec.ValidationError, ValueError, OverflowError):
            bad[field.name] = value
    return kind(**sound)


def _convert(value: Any, kind: Any) -> Any:
    made = msgspec.convert(value, kind)
    if isinstance(made, str):
        made.encode()  # half a character is no text that could be stored or shown
    return made


def _impossible(bad: dict[str, Any]) -> str | None:
    """The gravest of what cannot be, in words."""
    if "context_window" in bad or "current_usage" in bad:
        return "client's usage is invalid"
    if "context_window_size" in bad:
        return "client's window is invalid"
    if "used_percentage" not in bad:
        return None
    claimed = bad["used_percentage"]
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        return "client's percentage is invalid"
    return f"client says {str(claimed)[:16]}%"


def _disagreement(context: _Context) -> str | None:
    """Where the client's percentage is not that of its own tokens."""
    usage, size, claimed = (
        context.current_usage,
        context.context_window_size,
        context.used_percentage,
    )
    if usage is None or not usage.sent or size is None or claimed is None:
        return None
    true = min(100.0, 100 * usage.sent / size)
    if abs(claimed - true) > MAX_DEVIATION_PERCENT or (not claimed and true >= 1):
        return f"client says {claimed:g}%"
    return None
