"""The content of opencode's messages, and of its `run --format json` output."""

from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    ABSENT,
    ErrorMessage,
    ErrorText,
    Location,
    Piece,
    ReplyText,
    RunOutcome,
    ToolNames,
    ToolResult,
    UserText,
)

TOOLS = ToolNames(
    commands=frozenset({"bash"}),
    edits=frozenset({"edit", "multiedit", "write"}),
    todos=frozenset({"todowrite"}),
    reads=frozenset({"glob", "grep", "list", "read", "todoread", "webfetch", "websearch"}),
)


class _Metadata(msgspec.Struct, frozen=True):
    exit: int | None = None


class _Times(msgspec.Struct, frozen=True):
    end: float | None = None


class _ToolState(msgspec.Struct, frozen=True):
    status: str = ""
    input: msgspec.Raw = ABSENT
    output: str | None = None
    error: str | None = None
    metadata: _Metadata | None = None
    time: _Times | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the tool worked: a command that was completed may have failed."""
        if self.metadata is not None and self.metadata.exit is not None:
            return self.metadata.exit == 0
        return {"completed": True, "error": False}.get(self.status)

    @property
    def ended_at(self) -> float | None:
        return self.time.end / 1_000 if self.time and self.time.end is not None else None


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    synthetic: bool | None = None
    tool: str = ""
    call: str = msgspec.field(default="", name="callID")
    state: _ToolState = _ToolState()
    cost: float | None = None


class _OpencodeError(msgspec.Struct, frozen=True):
    name: str = ""
    data: ErrorMessage = ErrorMessage()

    @property
    def text(self) -> str:
        return self.data.message or self.name


class _Path(msgspec.Struct, frozen=True):
    cwd: str | None = None


class _Info(msgspec.Struct, frozen=True):
    role: str = ""
    path: _Path = _Path()
    error: _OpencodeError | None = None


class _OpencodeEntry(msgspec.Struct, frozen=True):
    info: _Info
    parts: list[_Part] = []


class _OpencodeLine(msgspec.Struct, frozen=True):
    type: str
    part: _Part = _Part()
    error: _OpencodeError = _OpencodeError()


_entry = msgspec.json.Decoder(_OpencodeEntry)
_line = msgspec.json.Decoder(_OpencodeLine)


class OpencodeContent:
    """Reads messages with one or more of their parts, as an export has them."""

    usage_follows_reply = False
    silent_prefixes = ()
    outcome_marks = (b'"type":"step_finish"', b'"type":"error"')

    def read_record(self, record: bytes) -> Iterator[Piece]:
        entry = _entry.decode(record)
        yield Location(entry.info.path.cwd)
        for part in entry.parts:
            if part.type == "tool":
                yield from _tool(part)
            elif part.type == "text" and not part.synthetic:
                yield UserText(part.text) if entry.info.role == "user" else ReplyText(part.text)
        if error := entry.info.error:
            yield ErrorText(error.text)

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line; a step that is finished recovered from errors."""
        entry = _line.decode(line)
        match entry.type:
            case "text":
                yield ReplyText(entry.part.text)
            case "tool_use":
                yield from _tool(entry.part)
            case "step_finish":
                yield RunOutcome(cost=entry.part.cost, failed=False)
            case "error":
                yield ErrorText(entry.error.text)
                yield RunOutcome(failed=True)
            case _:
                pass


def _tool(part: _Part) -> Iterator[Piece]:
    state = part.state
    yield from TOOLS.read_call(part.tool, part.call, state.input, state.ended_at)
    output = state.output or state.error or ""
    yield ToolResult(part.call, state.ok, output, at=state.ended_at)


CONTENT_READER = OpencodeContent
