"""What can be found in a transcript: what was written, called and returned, as redacted text."""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias, cast
from unicodedata import is_normalized, normalize

import msgspec

from brimline.agents.content import (
    ErrorText,
    KeptContent,
    Piece,
    PlanText,
    Reasoning,
    ReplyText,
    SummaryText,
    ToolCall,
    ToolResult,
    UserText,
)
from brimline.files.foreign_json import JsonDecoder
from brimline.redaction import redact, truncate_words
from brimline.redaction.names import is_secret_name

Role: TypeAlias = Literal[
    "user", "reply", "reasoning", "plan", "summary", "call", "result", "error"
]

MAX_TEXT_CHARS = 1 << 20  # of one text; the longest result seen had 400,000
MAX_PASSAGE_CHARS = 16_384
OVERLAP_CHARS = 512  # a sentence at the end of a passage is also in the next one
MAX_NAME_CHARS = 200  # of a tool, and of the id of a call

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # no tab, no line break

_arguments = JsonDecoder(object)


class Passage(msgspec.Struct, frozen=True):
    """A part of what one record contains; `call_id` connects a tool's call with its result."""

    role: Role
    text: str
    at: float | None = None
    tool: str = ""
    call_id: str = ""


def read_passages(piece: Piece) -> Iterator[Passage]:
    """Yield what of a piece can be found, redacted and in bounded parts."""
    match piece:
        case UserText(text, at):
            yield from _split("user", text, at)
        case ReplyText(text, at):
            yield from _split("reply", text, at)
        case Reasoning(text, at):
            yield from _split("reasoning", text, at)
        case PlanText(text):
            yield from _split("plan", text, None)
        case SummaryText(text, at):
            yield from _split("summary", text or "", at)
        case ErrorText(text, at):
            yield from _split("error", text, at)
        case ToolCall():
            text = "\n".join(_call_lines(piece))
            yield from _split("call", text, piece.at, piece.tool, piece.call_id)
        case ToolResult():
            yield from _split("result", piece.output, piece.at, "", piece.call_id)
        case KeptContent(pieces):  # the rest of it are copies
            for each in pieces:
                if isinstance(each, SummaryText):
                    yield from read_passages(each)
        case _:
            pass


def _split(
    role: Role, text: str, at: float | None, tool: str = "", call_id: str = ""
) -> Iterator[Passage]:
    shown = clean_text(text)
    start = 0
    while start < len(shown):
        end = start + MAX_PASSAGE_CHARS
        part = shown[start:end]
        yield Passage(role, part, at, tool[:MAX_NAME_CHARS], call_id[:MAX_NAME_CHARS])
        if end >= len(shown):
            return
        start = end - OVERLAP_CHARS


def clean_text(text: str) -> str:
    """Redact a text, and remove what only a terminal would interpret."""
    bounded = truncate_words(text, MAX_TEXT_CHARS)
    if "\x1b" in bounded:
        bounded = _ESCAPES.sub("", bounded)
    plain = redact(_CONTROLS.sub("", bounded)).strip()
    return plain if is_normalized("NFC", plain) else normalize("NFC", plain)


def _call_lines(call: ToolCall) -> Iterator[str]:
    """Yield the command, the files, and the texts of the arguments, each once."""
    lines = [call.command, *call.files, *_argument_texts(_arguments.decode_or_none(call.arguments))]
    if isinstance(call.arguments, str) and len(lines) == len([call.command, *call.files]):
        lines.append(call.arguments)  # no JSON: a patch
    yield from dict.fromkeys(filter(None, lines))


def _argument_texts(value: object, name: str = "") -> Iterator[str]:
    """Yield the texts in JSON; that of a secret's name with its name, by which it is redacted."""
    values = [(name, value)]
    while values:  # not by recursion: newer versions of Python decode deeper than they can call
        name, value = values.pop()
        if isinstance(value, str):
            yield f'"{name}": "{value}"' if is_secret_name(name) else value
        elif isinstance(value, list):
            values += [(name, each) for each in reversed(cast("list[object]", value))]
        elif isinstance(value, dict):
            items = cast("dict[str, object]", value).items()
            values += reversed([(str(key), each) for key, each in items])
