"""The content of opencode's messages, and of its `run --format json` output."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from brimline.agents.content import (
    AddedText,
    ErrorMessage,
    ErrorText,
    Images,
    KeptContent,
    Location,
    Piece,
    Reasoning,
    ReplyText,
    RunOutcome,
    SummaryText,
    ToolResult,
    UserText,
)
from brimline.agents.tools import ToolNames
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"bash"}),
    edits=frozenset({"edit", "multiedit", "write"}),
    todos=frozenset({"todowrite"}),
    reads=frozenset({"glob", "grep", "list", "read", "todoread", "webfetch", "websearch"}),
    subagents=frozenset({"task"}),
)
# Own tools with an underscore in their names; in all others it follows the MCP server's.
OWN_TOOLS = frozenset(
    (
        *("apply_patch", "plan_enter", "plan_exit"),
        # of Kilo CLI 7.7.9
        *(
            "agent_manager",
            "agent_manager_models",
            "background_process",
            "board_post",
            "board_read",
        ),
        *("browser_open", "cancel_wakeup", "cron_create", "cron_delete", "cron_list"),
        *("kilo_local_recall", "link_pr", "notify_user", "schedule_wakeup", "send_file"),
    )
)

# What the client writes before the content of a file that the user attached.
_ATTACHED = re.compile(r'Called the \w+ tool with the following input: \{"\w+":"([^"]+)"')


class _Metadata(msgspec.Struct, frozen=True):
    exit: int | None = None
    interrupted: bool | None = None
    output: msgspec.Raw = ABSENT


class _Times(msgspec.Struct, frozen=True):
    end: float | None = None


class _AttachedMedia(msgspec.Struct, frozen=True):
    mime: str = ""

    @property
    def is_image(self) -> bool:
        return self.mime.startswith("image/")


class _ToolState(msgspec.Struct, frozen=True):
    status: str = ""
    input: msgspec.Raw = ABSENT
    output: str | None = None
    error: str | None = None
    metadata: _Metadata | None = None
    time: _Times | None = None
    attachments: list[_AttachedMedia] | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the tool worked: a command that was completed may have failed."""
        if self.metadata is not None and self.metadata.exit is not None:
            return self.metadata.exit == 0
        return {"completed": True, "error": False}.get(self.status)

    @property
    def text(self) -> str:
        """The result as the model gets it: of an interrupted tool, what it wrote until then."""
        if self.metadata is not None and self.metadata.interrupted and self.metadata.output:
            return _text.decode(self.metadata.output) or ""
        return self.output or self.error or ""

    @property
    def ended_at(self) -> float | None:
        return parse_time(self.time.end) if self.time else None


class _Part(_AttachedMedia, frozen=True):
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
    summary: object = None  # true on a compaction's reply, and an object on a prompt
    path: _Path = _Path()
    error: _OpencodeError | None = None


class _OpencodeEntry(msgspec.Struct, frozen=True):
    info: _Info
    parts: list[_Part] = []
    kept_records: int = msgspec.field(default=0, name="keptRecords")


class _OpencodeLine(msgspec.Struct, frozen=True):
    type: str
    part: _Part = _Part()
    error: _OpencodeError = _OpencodeError()


_entry = JsonDecoder(_OpencodeEntry)
_text = JsonDecoder(str | None)
_line = JsonDecoder(_OpencodeLine)


class OpencodeContent:
    """Reads messages with one or more of their parts, as an export has them."""

    client = "opencode"  # whose words are in prompts beside the user's
    usage_follows_reply = False
    resends_reasoning = True
    silent_prefixes = ()
    outcome_marks = (b'"step_finish"', b'"error"')

    def read_record(self, record: bytes) -> Iterator[Piece]:
        entry = _entry.decode(record)
        yield Location(entry.info.path.cwd)
        if entry.kept_records:
            yield KeptContent(records=entry.kept_records)
        if entry.info.role == "user":
            yield from _prompt(entry.parts, self.client)
        else:
            yield from _reply(entry.parts, is_summary=entry.info.summary is True)
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


def _prompt(parts: Sequence[_Part], client: str) -> Iterator[Piece]:
    """Yield what the user wrote, and what the client added: files, reminders."""
    file = ""  # that the user attached
    for part in parts:
        if part.type == "file" and part.is_image:
            yield Images(1)
        elif part.type == "text" and part.synthetic:
            attached = _ATTACHED.match(part.text)
            file = attached[1] if attached else file
            yield AddedText("user" if file else "client", file or client, part.text)
        elif part.type == "text":
            file = ""
            yield UserText(part.text)


def _reply(parts: Sequence[_Part], is_summary: bool) -> Iterator[Piece]:
    for part in parts:
        if part.type == "tool":
            yield from _tool(part)
        elif part.type == "reasoning":
            yield Reasoning(part.text)
        elif part.type == "text":
            yield SummaryText(part.text) if is_summary else ReplyText(part.text)


def _tool(part: _Part) -> Iterator[Piece]:
    state = part.state
    server = _server_of(part.tool)
    yield from TOOLS.read_call(part.tool, part.call, state.input, state.ended_at, server)
    images = sum(each.is_image for each in state.attachments or ())
    yield ToolResult(part.call, state.ok, state.text, at=state.ended_at, images=images)


def _server_of(tool: str) -> str:
    """Return the MCP server of a tool, which opencode names `server_tool`."""
    server, mark, _ = tool.partition("_")
    return server if mark and tool not in OWN_TOOLS else ""


CONTENT_READER = OpencodeContent
