"""Reads the input of Claude Code's status line as far as it is valid.

The line must be drawn whatever the client writes: clients reported an epoch time as a percentage,
0 % for a context in use, and a window of 200,000 that held 300,000. An invalid field is left out,
so that Brimline uses what it knows from elsewhere, and is named.
"""

from typing import Any, TypeVar, cast

import msgspec

from brimline.agents.hook_payloads import ContextWindow, StatusInput, StatusLineReport
from brimline.errors import MalformedJson, UnexpectedJson
from brimline.files.foreign_json import JsonDecoder, decode_lenient

# The client's percentage is rounded; further from its own tokens it is of something else.
MAX_DEVIATION_PERCENT = 2.0

_decoder = JsonDecoder(StatusInput)
_T = TypeVar("_T", bound=msgspec.Struct)


def read_status_line(body: bytes) -> StatusLineReport:
    """Read a status line's input; raises MalformedJson if it names no session."""
    invalid = dict[str, Any]()
    try:
        status = _decoder.decode(body)
    except MalformedJson:
        fields = _decode_object(body)
        status = _valid_fields(StatusInput, fields, invalid)
        if not fields.get("session_id") or "session_id" in invalid:
            raise UnexpectedJson("expected a status line's input with a `session_id`") from None
    wrong = _describe_invalid(invalid) or _disagreement(status.context_window)
    project = status.workspace.project_dir or status.cwd
    return StatusLineReport(status, wrong, project, _was_called(status))


def _was_called(status: StatusInput) -> bool:
    """Before the first call there is no usage, no total and no cost."""
    context = status.context_window
    if context.current_usage is not None:
        return True
    totals = (
        context.total_input_tokens,
        context.total_output_tokens,
        status.cost.total_cost_usd,
    )
    return any(total is not None and total > 0 for total in totals)


def _decode_object(body: bytes) -> dict[str, Any]:
    """Decode a JSON object, also one with NaN in it."""
    value = decode_lenient(body)
    if not isinstance(value, dict):
        raise UnexpectedJson(f"expected an object: got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def _valid_fields(kind: type[_T], values: dict[str, Any], invalid: dict[str, Any]) -> _T:
    """Return a struct of the valid fields; the invalid ones are added to `invalid`."""
    valid: dict[str, Any] = {"session_id": ""} if kind is StatusInput else {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in values:
            continue
        value = values[field.encode_name]
        kind_of_field: object = field.type
        if (
            isinstance(value, dict)
            and isinstance(kind_of_field, type)
            and issubclass(kind_of_field, msgspec.Struct)
        ):
            valid[field.name] = _valid_fields(kind_of_field, cast("dict[str, Any]", value), invalid)
            continue
        try:
            converted = msgspec.convert(value, field.type)
            if isinstance(converted, str):
                converted.encode()  # half a character is no text that could be stored or shown
            valid[field.name] = converted
        except (msgspec.ValidationError, ValueError, OverflowError):
            invalid[field.name] = value
    return kind(**valid)


def _describe_invalid(invalid: dict[str, Any]) -> str | None:
    """The worst of the invalid fields, in words."""
    if "context_window" in invalid or "current_usage" in invalid:
        return "client's usage is invalid"
    if "context_window_size" in invalid:
        return "client's window is invalid"
    if "used_percentage" not in invalid:
        return None
    percentage = invalid["used_percentage"]
    if isinstance(percentage, bool) or not isinstance(percentage, int | float):
        return "client's percentage is invalid"
    return f"client says {str(percentage)[:16]}%"


def _disagreement(context: ContextWindow) -> str | None:
    """The client's percentage, if it is not that of its own tokens."""
    size, reported = context.context_window_size, context.used_percentage
    sent = context.current_usage.usage.sent if context.current_usage else 0
    if not sent or size is None or reported is None:
        return None
    computed = min(100.0, 100 * sent / size)
    if abs(reported - computed) > MAX_DEVIATION_PERCENT or (not reported and computed >= 1):
        return f"client says {reported:g}%"
    return None
