"""The content of Claude Code's transcripts, and of its `stream-json` and `json` output."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from brimline.agents.claude.attachments import ATTACHED_BY, Attachment
from brimline.agents.content import (
    MAX_ENTRIES,
    AddedText,
    Content,
    ContextCleared,
    ErrorText,
    Images,
    Location,
    Piece,
    PlanText,
    Reasoning,
    ReplyText,
    RunOutcome,
    SummaryText,
    TodoChange,
    ToolCall,
    ToolResult,
    UserText,
    count_images,
    joined_text,
    size_of,
    strings_in,
    text_of,
)
from brimline.agents.tagged_text import Elements
from brimline.agents.tools import ToolNames, server_of
from brimline.agents.transcripts.source import parse_time
from brimline.context.tracker import SYNTHETIC
from brimline.context.usage import ZERO, Usage
from brimline.files.bounded_dict import BoundedDict
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"Bash", "PowerShell"}),
    edits=frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"}),
    todos=frozenset({"TodoWrite"}),
    reads=frozenset(
        {"AskUserQuestion", "BashOutput", "EnterPlanMode", "Glob", "Grep", "LS", "NotebookRead"}
        | {"Read", "Skill", "TaskGet", "TaskList", "TaskOutput", "ToolSearch"}
        | {"WebFetch", "WebSearch"}
    ),
    subagents=frozenset({"Agent", "Task"}),
    skills=frozenset({"Skill"}),
)

# Texts by which the client reports the fate of a tool call.
REJECTED = "The user doesn't want to proceed with this tool use."
USER_REASON = "the user said:\n"
CANCELLED = "Cancelled: parallel tool call"
BACKGROUND = "Command running in background"
ERROR_START, ERROR_END = "<tool_use_error>", "</tool_use_error>"

CLIENT_TEXTS = (
    "[Request interrupted",
    "This session is being continued from a previous conversation",
)
CLEAR = "/clear"

# What the client adds without a record of its text. Of the files that the agent had read, it reads
# up to five again after a compaction; since 2.1.91 they are attachments.
RESTORED = "files that the client read again"

REMINDER_BYTES = len("<system-reminder>\n\n</system-reminder>")

_TAGS = (
    "(system-reminder|task-notification|ci-monitor-event|ide_[a-z_]+|local-command-[a-z]+"
    "|bash-[a-z]+|command-[a-z]+)"
)
_ADDED = Elements(f"<{_TAGS}>", f"</{_TAGS}>")
_TASK_NUMBER = re.compile(r"#(\w+)")


class _ClaudeBlock(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = ABSENT
    tool_use_id: str = ""
    content: Content = None
    is_error: bool | None = None


class _ClaudeMessage(msgspec.Struct, frozen=True):
    content: str | list[_ClaudeBlock] = ""
    model: str | None = None

    @property
    def blocks(self) -> list[_ClaudeBlock]:
        return (
            [_ClaudeBlock("text", self.content)] if isinstance(self.content, str) else self.content
        )


class _MessageOrigin(msgspec.Struct, frozen=True):
    kind: str = ""


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    origin: _MessageOrigin | str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    message: _ClaudeMessage | None = None
    attachment: Attachment | None = None
    rendered: msgspec.Raw = ABSENT  # an attachment as it is sent, since 2.1.325
    rendered_role: str | None = None

    @property
    def rendered_bytes(self) -> int:
        """How many bytes of an attachment are sent; a message of the system has no tags."""
        size = sum(size_of(text) for text in strings_in(self.rendered))
        return max(0, size - REMINDER_BYTES) if self.rendered_role == "system" else size

    @property
    def by_client(self) -> bool:
        """Whether the client wrote it in the user's name."""
        kind = self.origin.kind if isinstance(self.origin, _MessageOrigin) else self.origin
        is_other = kind not in (None, "", "human")
        return bool(self.is_meta) or bool(self.is_compact_summary) or is_other


class _Task(msgspec.Struct, frozen=True, rename="camel"):
    subject: str | None = None
    task_id: str = ""
    status: str | None = None
    plan: str | None = None


class _ModelUsage(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    cost: float = msgspec.field(default=0.0, name="costUSD")

    def usage(self) -> Usage:
        return Usage(
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            self.output_tokens,
        )


class _ClaudeLine(msgspec.Struct, frozen=True):
    type: str
    parent_tool_use_id: str | None = None
    message: _ClaudeMessage | None = None
    is_error: bool | None = None
    result: str | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None
    since_last: dict[str, _ModelUsage] | None = msgspec.field(
        default=None, name="model_usage_since_last_result"
    )


_record = JsonDecoder(_Record)
_task = JsonDecoder(_Task)
_line = JsonDecoder(_ClaudeLine)


class ClaudeContent:
    """Reads one thread: the main one, or a subagent's."""

    usage_follows_reply = False
    resends_reasoning = True
    silent_prefixes = (
        b'{"type":"user",',
        b'{"type":"stream_event","event":{"type":"content_block_',
    )
    outcome_marks = (b'"result"',)

    def __init__(self, is_subagent: bool = False) -> None:
        self._is_subagent = is_subagent
        # subjects by the id of the TaskCreate call
        self._new_tasks = BoundedDict[str, str](MAX_ENTRIES)
        self._location = Location()
        self._has_replied = False
        self._has_attachments = False  # since 2.1.91
        self._total_cost = 0.0

    def read_record(self, record: bytes) -> Iterator[Piece]:
        entry = _record.decode(record)
        if bool(entry.is_sidechain) != self._is_subagent:
            return
        at = parse_time(entry.timestamp)
        match entry.type:
            case "assistant" if entry.message:
                yield from self._recorded_reply(entry, entry.message, at)
            case "user" if entry.message:
                for block in entry.message.blocks:
                    yield from self._user_block(entry, block, at)
            case "attachment" if entry.attachment:
                attachment, self._has_attachments = entry.attachment, True
                if attachment.type == "queued_command":  # typed while the agent was working
                    yield from _user_text(text_of(attachment.prompt), at)
                elif attachment.type == "prompt_snapshot":
                    yield from attachment.snapshot()
                else:
                    yield from _as_rendered(list(attachment.added(at)), entry, at)
            case _:
                return
        location = Location(entry.cwd, entry.git_branch)
        if location != self._location:
            self._location = location
            yield location

    def read_line(self, line: bytes) -> Iterator[Piece]:
        entry = _line.decode(line)
        if entry.type == "result":
            yield from self._result(entry)
        elif entry.type == "assistant" and entry.message and entry.parent_tool_use_id is None:
            for piece in self._reply(entry.message, None):
                self._has_replied = self._has_replied or isinstance(piece, ReplyText)
                yield piece

    def _recorded_reply(
        self, entry: _Record, message: _ClaudeMessage, at: float | None
    ) -> Iterator[Piece]:
        if entry.is_api_error_message:
            yield from (ErrorText(block.text or "", at) for block in message.blocks)
        elif message.model != SYNTHETIC:
            yield from self._reply(message, at)

    def _user_block(self, entry: _Record, block: _ClaudeBlock, at: float | None) -> Iterator[Piece]:
        if block.type == "tool_result":
            yield from self._tool_result(block, at)
        elif block.type == "image":
            yield Images(1, at)
        elif block.type == "text" and entry.is_compact_summary:
            yield SummaryText(block.text or "", at)
            if not self._has_attachments:
                yield AddedText("client", RESTORED, "", at, is_recorded=False)
        elif block.type == "text" and entry.by_client:
            yield AddedText("client", "message", block.text or "", at)
        elif block.type == "text":
            yield from _user_text(block.text or "", at)

    def _reply(self, message: _ClaudeMessage, at: float | None) -> Iterator[Piece]:
        for block in message.blocks:
            if block.type == "text":
                yield ReplyText(block.text or "", at)
            elif block.type == "thinking":
                yield Reasoning(block.thinking, at)
            elif block.type == "tool_use":
                yield from self._tool_call(block, at)

    def _tool_call(self, block: _ClaudeBlock, at: float | None) -> Iterator[Piece]:
        if block.name not in ("TaskCreate", "TaskUpdate", "ExitPlanMode"):
            yield from TOOLS.read_call(block.name, block.id, block.input, at)
            return
        yield ToolCall(block.name, block.id, "todo", arguments=block.input, at=at)
        task = _task.decode_or_none(block.input) or _Task()
        if block.name == "TaskCreate":
            self._new_tasks[block.id] = task.subject or ""
        elif block.name == "TaskUpdate":
            yield TodoChange(task.task_id, task.subject, task.status)
        else:
            yield PlanText(task.plan or "")

    def _tool_result(self, block: _ClaudeBlock, at: float | None) -> Iterator[Piece]:
        text = joined_text(block.content).removeprefix(ERROR_START).removesuffix(ERROR_END)
        if text.startswith((REJECTED, CANCELLED)):
            yield ToolResult(block.tool_use_id, None, text, "cancelled", at=at)
        else:
            ok = None if text.startswith(BACKGROUND) else not block.is_error
            images = count_images(block.content)
            yield ToolResult(block.tool_use_id, ok, text, at=at, images=images)
            for part in block.content if isinstance(block.content, list) else ():
                if part.type == "tool_reference":
                    yield _found_tool(part.tool_name, at)
        subject = self._new_tasks.pop(block.tool_use_id, None)
        if subject is not None and (number := _TASK_NUMBER.search(text)):
            yield TodoChange(number[1], subject, "pending")
        elif text.startswith(REJECTED):
            yield UserText(text.partition(USER_REASON)[2], at)

    def _result(self, line: _ClaudeLine) -> Iterator[Piece]:
        """A result repeats the reply, unless it is all that is printed (`json` output)."""
        if line.result and line.is_error:
            yield ErrorText(line.result)
        elif line.result and not self._has_replied:
            yield ReplyText(line.result)
        models = None if line.since_last is None else line.since_last.values()
        yield RunOutcome(
            cost=self._cost_since(line) if models is None else sum(model.cost for model in models),
            turns=line.num_turns,
            failed=line.is_error,
            billed=None if models is None else sum((model.usage() for model in models), ZERO),
        )

    def _cost_since(self, line: _ClaudeLine) -> float | None:
        """The cost since the result before.

        Of a resumed session `total_cost_usd` includes what came before; only older versions, which
        do not report the usage since the last result, leave us with it.
        """
        if line.total_cost_usd is None:
            return None
        before, self._total_cost = self._total_cost, line.total_cost_usd
        return line.total_cost_usd - before


def _found_tool(name: str, at: float | None) -> AddedText:
    """A tool that a search found: its definition is sent from now on, and not recorded."""
    return AddedText(
        *("tools", f"tool {name}", "", at, server_of(name)),
        is_recorded=False,
        kind="built-in tools",
        names=(name,),
    )


def _user_text(text: str, at: float | None) -> Iterator[Piece]:
    """Separate what the user typed from what the client added to it."""
    text = text.strip()
    command, arguments = _element(text, "command-name"), _element(text, "command-args")
    if command == CLEAR:
        yield ContextCleared()
    elif command and arguments:
        yield UserText(f"{command} {arguments}", at)
    elif text.startswith(CLIENT_TEXTS):
        yield AddedText("client", "message", text, at)
    else:
        typed, added = _ADDED.split(text)
        yield UserText(typed, at)
        if added:
            words = "".join(text for _, text in added)
            yield AddedText("client", command or "reminder", words, at)


def _as_rendered(
    added: Sequence[AddedText], record: _Record, at: float | None
) -> Iterator[AddedText]:
    """Yield the texts of an attachment with the size of what the client puts around them.

    Of an attachment without a text of its own, such as the environment, only the size is known.
    """
    kind = record.attachment.type if record.attachment else ""
    around = record.rendered_bytes - sum(size_of(each.text) for each in added)
    if around <= 0:
        yield from added
    elif not added:
        yield AddedText(ATTACHED_BY.get(kind, "client"), kind, "", at, head_bytes=around)
    else:
        for each in added:
            yield msgspec.structs.replace(each, head_bytes=around // len(added))


def _element(text: str, name: str) -> str:
    content, closing, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return content.strip() if closing else ""


CONTENT_READER = ClaudeContent
SUBAGENT_CONTENT_READER = partial(ClaudeContent, is_subagent=True)
