"""Claude Code: the content of a transcript's records."""

import re

import msgspec

from brimline.handoff.digest import API, TranscriptDigest, kept, renew
from brimline.handoff.heard.base import ABSENT, Tools, arguments_of, text_of
from brimline.transcripts.source import parse_time

TOOLS = Tools(
    commands=frozenset({"Bash", "PowerShell"}),
    changes=frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"}),
    lists=frozenset({"TodoWrite"}),
    looks=frozenset(
        {"AskUserQuestion", "BashOutput", "EnterPlanMode", "Glob", "Grep", "LS", "NotebookRead"}
        | {"Read", "Skill", "TaskGet", "TaskList", "TaskOutput", "ToolSearch"}
        | {"WebFetch", "WebSearch"}
    ),
)

REJECTED = "The user doesn't want to proceed with this tool use."
SAID = "the user said:\n"
CANCELLED = "Cancelled: parallel tool call"
BACKGROUND = "Command running in background"
OPENS, CLOSES = "<tool_use_error>", "</tool_use_error>"
NOT_SAID = ("[Request interrupted", "This session is being continued from a previous conversation")
"""How a text begins that the client wrote in the user's name."""

CLEAR = "/clear"

_TAGGED = re.compile(
    r"<(system-reminder|task-notification|ci-monitor-event|ide_[a-z_]+|local-command-[a-z]+"
    r"|bash-[a-z]+|command-[a-z]+)>.*?</\1>",
    re.DOTALL,
)
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_GIVEN = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_CREATED = re.compile(r"#(\w+)")


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    id: str = ""
    name: str = ""
    input: msgspec.Raw = ABSENT
    tool_use_id: str = ""
    content: msgspec.Raw = ABSENT
    is_error: bool | None = None


class _Message(msgspec.Struct, frozen=True):
    content: str | list[_Block] = ""
    model: str | None = None

    @property
    def blocks(self) -> list[_Block]:
        return [_Block("text", self.content)] if isinstance(self.content, str) else self.content


class _Origin(msgspec.Struct, frozen=True):
    kind: str = ""


class _Attachment(msgspec.Struct, frozen=True):
    type: str = ""
    prompt: msgspec.Raw = ABSENT


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    origin: _Origin | str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    message: msgspec.Raw = ABSENT
    attachment: msgspec.Raw = ABSENT

    @property
    def by_user(self) -> bool:
        """Whether a person wrote it, and not the client in the user's name."""
        kind = self.origin.kind if isinstance(self.origin, _Origin) else self.origin
        return not self.is_meta and not self.is_compact_summary and kind in (None, "", "human")


class _Task(msgspec.Struct, frozen=True, rename="camel"):
    subject: str | None = None
    task_id: str = ""
    status: str | None = None
    plan: str | None = None


_record = msgspec.json.Decoder(_Record)
_message = msgspec.json.Decoder(_Message)
_attached = msgspec.json.Decoder(_Attachment)
_task = msgspec.json.Decoder(_Task)


class ClaudeListener:
    """Listens to the main thread alone, not to subagents."""

    def __init__(self) -> None:
        self.notes = TranscriptDigest()
        self._created: dict[str, str] = {}

    def hear(self, record: bytes) -> None:
        """Take in one record."""
        line = _record.decode(record)
        if line.is_sidechain:
            return
        match line.type:
            case "assistant" if line.message:
                self._reply(line, _message.decode(line.message))
            case "user" if line.message:
                self._prompt(line, _message.decode(line.message))
            case "attachment" if line.attachment:
                self._attachment(_attached.decode(line.attachment))
            case _:
                return
        self.notes.stands(line.cwd, line.git_branch)

    def _reply(self, line: _Record, message: _Message) -> None:
        for block in message.blocks:
            text = block.text or ""
            if line.is_api_error_message:
                self.notes.fails(API, text)
            elif block.type == "text" and message.model != "<synthetic>":
                self.notes.spoke(text)
            elif block.type == "tool_use":
                self._uses(block)

    def _prompt(self, line: _Record, message: _Message) -> None:
        for block in message.blocks:
            if block.type == "tool_result":
                self._result(block, parse_time(line.timestamp))
            elif block.type == "text" and line.by_user:
                self._asked(block.text or "")

    def _attachment(self, attachment: _Attachment) -> None:
        """What a user typed while the agent was at work reaches it as an attachment."""
        if attachment.type == "queued_command":
            self._asked(text_of(attachment.prompt))

    def _asked(self, text: str) -> None:
        words = kept(text.strip())
        name, given = _COMMAND.search(words), _GIVEN.search(words)
        if name and name[1].strip() == CLEAR:
            self.notes = TranscriptDigest()
        elif name and given and given[1].strip():
            self.notes.asked(f"{name[1].strip()} {given[1].strip()}")
        elif not words.startswith(NOT_SAID):
            self.notes.asked(_TAGGED.sub("", words))

    def _uses(self, block: _Block) -> None:
        match block.name:
            case "TaskCreate":
                renew(self._created, block.id, kept(_task.decode(block.input).subject or ""))
            case "TaskUpdate":
                task = _task.decode(block.input)
                self.notes.todo(task.task_id, task.subject, task.status)
            case "ExitPlanMode":
                self.notes.planned(_task.decode(block.input).plan or "")
            case name:
                self._tool(name, block)

    def _tool(self, name: str, block: _Block) -> None:
        arguments = arguments_of(block.input if TOOLS.told(name) else ABSENT)
        if name in TOOLS.lists:
            self.notes.listed([item.todo() for item in arguments.todos])
        if deed := TOOLS.deed(name, arguments):
            self.notes.begins(block.id, deed)

    def _result(self, block: _Block, at: float | None) -> None:
        text = text_of(block.content).removeprefix(OPENS).removesuffix(CLOSES)
        subject = self._created.pop(block.tool_use_id, None)
        if subject is not None and (number := _CREATED.search(text)):
            self.notes.todo(number[1], subject, "pending")
        elif text.startswith(REJECTED):
            self.notes.drops(block.tool_use_id)
            self.notes.asked(text.partition(SAID)[2])
        elif text.startswith(CANCELLED):
            self.notes.drops(block.tool_use_id)
        else:
            ok = None if text.startswith(BACKGROUND) else not block.is_error
            self.notes.ends(block.tool_use_id, ok, text, at)


LISTENER = ClaudeListener
