"""Contents in the words of Google's GenAI API, which Gemini CLI and its fork Qwen Code record."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from brimline.agents.content import AddedText, Images, Piece, ToolResult, UserText
from brimline.files.foreign_json import ABSENT, JsonDecoder

AddedReader: TypeAlias = Callable[[str, float | None], Iterator[AddedText]]

EXIT_CODE_TAIL_CHARS = 16_384  # the exit code is looked for in this much of an output's end

# Files that the user attached to a prompt with `@path` stand between these texts.
_ATTACHED = "--- Content from referenced files ---"
_ATTACHED_FILE = re.compile(r"\s*Content from @(.+):\s*")
_ATTACHED_END = "--- End of content ---"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,10})", re.MULTILINE)


class FunctionOutput(msgspec.Struct, frozen=True):
    """What a tool answered."""

    output: str | None = None
    error: str | None = None


class Function(msgspec.Struct, frozen=True):
    """A call of a tool, or its response."""

    id: str = ""
    name: str = ""
    args: msgspec.Raw = ABSENT
    response: msgspec.Raw = ABSENT

    @property
    def text(self) -> str:
        answer = _output.decode_or_none(self.response) or FunctionOutput()
        return answer.output or answer.error or ""


class ContentData(msgspec.Struct, frozen=True):
    """The kind of an image or of another file."""

    mime: str = msgspec.field(default="", name="mimeType")


class ContentPart(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a content; a text may be a thought."""

    text: str | None = None
    thought: bool = False
    function_call: Function | None = None
    function_response: Function | None = None
    inline_data: ContentData = ContentData()
    file_data: ContentData = ContentData()

    @property
    def is_image(self) -> bool:
        return (self.inline_data.mime or self.file_data.mime).startswith("image/")


_content: "JsonDecoder[str | list[ContentPart | str] | ContentPart | None]" = JsonDecoder(
    str | list[ContentPart | str] | ContentPart | None
)
_output = JsonDecoder(FunctionOutput)


def read_prompt(content: msgspec.Raw, at: float | None, read_added: AddedReader) -> Iterator[Piece]:
    """Yield what the user wrote, what was added to it, and the results of tools.

    `read_added` yields the parts of a text that the client or a hook wrote.
    """
    parts = parts_of(content)
    results = read_results(parts, at)
    yield from results
    images = sum(part.is_image for part in parts)
    if images and not results:
        yield Images(images, at)
    typed: list[str] = []
    file = ""
    for text in (part.text for part in parts if part.text):
        if text.strip() == _ATTACHED:
            file = "attached files"
        elif file and (named := _ATTACHED_FILE.fullmatch(text)):
            file = named[1]
        if file:
            yield AddedText("user", file, text, at)
            file = "" if text.strip() == _ATTACHED_END else file
        elif added := [*read_added(text, at)]:
            yield from added
        else:
            typed.append(text)
    if typed:
        yield UserText("\n".join(typed), at)


def read_results(parts: Sequence[ContentPart], at: float | None) -> list[ToolResult]:
    """Return the results of tools; the images after one belong to it."""
    results: list[ToolResult] = []
    for part in parts:
        if response := part.function_response:
            text = response.text
            results.append(ToolResult(response.id, is_ok(None, text), text, at=at))
        elif part.is_image and results:
            images = results[-1].images + 1
            results[-1] = msgspec.structs.replace(results[-1], images=images)
    return results


def parts_of(content: msgspec.Raw) -> Sequence[ContentPart]:
    """Decode a content: a text, a part, or a list of both."""
    decoded = _content.decode(content) if content else None
    parts = decoded if isinstance(decoded, list) else [decoded]
    return [ContentPart(part) if isinstance(part, str) else part for part in parts if part]


def is_ok(status: str | None, output: str) -> bool | None:
    """By the exit code: the shell tool has status success whatever the command's exit code was."""
    if code := _EXIT_CODE.search(output[-EXIT_CODE_TAIL_CHARS:]):
        return int(code[1]) == 0
    return None if status is None else status == "success"
