"""The content of Copilot CLI's sessions, and of its `--output-format json` output."""

import re
from collections.abc import Iterator

import msgspec

from brimline.agents.content import (
    MAX_ENTRIES,
    AddedText,
    ContextCleared,
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
    SystemPrompt,
    TodoList,
    ToolCall,
    ToolResult,
    UserText,
)
from brimline.agents.copilot.records import STREAM_END, CompactionComplete, WorkingFolder
from brimline.agents.file_edits import patched_files
from brimline.agents.tagged_text import Elements
from brimline.agents.tools import UNRECORDED_TOOLS, ToolNames, listed_skill
from brimline.agents.transcripts.source import parse_branch, parse_time
from brimline.context.events import MAIN
from brimline.files.foreign_json import ABSENT, JsonDecoder

TOOLS = ToolNames(
    commands=frozenset({"bash", "powershell"}),
    edits=frozenset({"create", "edit"}),
    todos=frozenset(),  # it keeps them in a database, by SQL
    reads=frozenset({"glob", "grep", "rg", "view"}),
    subagents=frozenset({"task"}),
    skills=frozenset({"skill"}),
)
PATCH_TOOL = "apply_patch"  # of OpenAI's models
_TAGS = "(current_datetime|system_reminder|reminder|tagged_files|pr_context)"
_ADDED = Elements(rf"<{_TAGS}>", rf"</{_TAGS}>\s*")
_INSTRUCTIONS = Elements("<(custom_instruction)>", r"</(custom_instruction)>\s*")
# Of 1.0.102. It begins a line, so that the time is linear: the lines in it begin with blanks.
_SKILL = re.compile(r"^<skill>\n  <name>(.+)</name>\n(?:  .*\n)*</skill>\n?", re.MULTILINE)
_HOOK_TAG = "system_reminder"  # around the text of a hook


class _Attachment(msgspec.Struct, frozen=True):
    type: str = ""
    mime: str = msgspec.field(default="", name="mimeType")


class _UserMessage(msgspec.Struct, frozen=True, rename="camel"):
    """`content` is what the user wrote, `transformed_content` what the model got."""

    content: str = ""
    transformed_content: str = ""
    attachments: list[_Attachment] = []
    is_autopilot_continuation: bool = False


class _ToolRequest(msgspec.Struct, frozen=True, rename="camel"):
    tool_call_id: str = ""
    name: str = ""
    arguments: msgspec.Raw = ABSENT
    mcp_server_name: str = ""


class _Reply(msgspec.Struct, frozen=True, rename="camel"):
    content: str = ""
    reasoning_text: str = ""
    tool_requests: list[_ToolRequest] = []


class _Result(msgspec.Struct, frozen=True):
    """What a tool returned; the images of `view` were in no request (1.0.102)."""

    content: str = ""


class _Completed(msgspec.Struct, frozen=True, rename="camel"):
    tool_call_id: str = ""
    success: bool | None = None
    result: _Result | None = None
    error: ErrorMessage | None = None


class _HookOutput(msgspec.Struct, frozen=True, rename="camel"):
    additional_context: str = ""
    decision: str | None = None
    reason: str = ""


class _HookEnd(msgspec.Struct, frozen=True, rename="camel"):
    hook_type: str = ""
    output: _HookOutput | None = None


class _Named(msgspec.Struct, frozen=True):
    """A skill, a notification or the system prompt."""

    name: str = ""
    content: str = ""


class _Started(msgspec.Struct, frozen=True):
    context: WorkingFolder = WorkingFolder()


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    timestamp: str | None = None
    agent_id: str | None = None
    data: msgspec.Raw = ABSENT
    exit_code: int | None = None


_line = JsonDecoder(_Line)
_user = JsonDecoder(_UserMessage)
_reply = JsonDecoder(_Reply)
_completed = JsonDecoder(_Completed)
_hook = JsonDecoder(_HookEnd)
_named = JsonDecoder(_Named)
_started = JsonDecoder(_Started)
_folder = JsonDecoder(WorkingFolder)
_complete = JsonDecoder(CompactionComplete)
_error = JsonDecoder(ErrorMessage)
_patch = JsonDecoder(str)


class CopilotContent:
    """Reads one thread of a session.

    A compaction replaces what was there when it began: the summary's call runs in the background.
    The summary is preceded by all prompts of the user.
    """

    usage_follows_reply = False
    resends_reasoning = True
    silent_prefixes = (
        b'{"type":"assistant.message_delta"',
        b'{"type":"assistant.reasoning_delta"',
        b'{"type":"assistant.tool_call_delta"',
        b'{"type":"session.background_tasks_changed"',
        b'{"type":"tool.execution_partial_result"',
        b'{"type":"tool.shell_output"',
    )
    outcome_marks = (b'"result"',)

    def __init__(self) -> None:
        self._kept: list[Piece] | None = None  # since a compaction began
        self._stop_feedback = ""
        self._prompts: list[UserText] = []
        self._instructions: list[AddedText] = []

    def read_record(self, record: bytes) -> Iterator[Piece]:
        line = _line.decode(record)
        pieces = list(self._read_event(line, parse_time(line.timestamp)))
        if line.type == "session.compaction_start":
            self._kept = [*self._instructions, *self._prompts]
        elif line.type == "session.compaction_complete":
            self._kept = None
        elif self._kept is not None:
            self._kept += pieces
        yield from pieces

    def _read_event(self, line: _Line, at: float | None) -> Iterator[Piece]:
        match line.type:
            case "session.start" | "session.resume":
                yield _location(_started.decode(line.data).context)
            case "session.context_changed":
                yield _location(_folder.decode(line.data))
            case "system.message":
                yield from self._read_instructions(_named.decode(line.data).content, at)
            case "user.message":
                yield from self._read_prompt(_user.decode(line.data), at)
            case "assistant.message":
                yield from _read_reply(_reply.decode(line.data), at)
            case "tool.execution_complete":
                yield _read_result(_completed.decode(line.data), at)
            case "hook.end":
                yield from self._read_hook(_hook.decode(line.data), at)
            case "skill.invoked":
                skill = _named.decode(line.data)
                yield listed_skill(skill.name, skill.content, at)
            case "system.notification":
                yield AddedText("client", "notification", _named.decode(line.data).content, at)
            case "session.compaction_complete":
                yield from self._read_compaction(_complete.decode(line.data), at)
            case "session.context_cleared" if line.agent_id is None:
                yield ContextCleared()
            case "session.error":
                yield ErrorText(_error.decode(line.data).message, at)
            case _:
                pass

    def _read_prompt(self, message: _UserMessage, at: float | None) -> Iterator[Piece]:
        """What the user wrote, and what was added to it; also the reason not to end a turn."""
        is_feedback = bool(message.content) and message.content == self._stop_feedback
        if is_feedback or message.is_autopilot_continuation:
            by = "hook" if is_feedback else "client"
            yield AddedText(by, "agentStop" if is_feedback else "autopilot", message.content, at)
        else:
            prompt = UserText(message.content, at)
            self._prompts = [*self._prompts[1 - MAX_ENTRIES :], prompt]
            yield prompt
        for tag, text in _ADDED.split(message.transformed_content)[1]:
            yield AddedText("hook" if tag == _HOOK_TAG else "client", tag, text, at)
        images = sum(each.mime.startswith("image/") for each in message.attachments)
        if images:
            yield Images(images, at)

    def _read_instructions(self, prompt: str, at: float | None) -> Iterator[Piece]:
        """The system prompt, and the user's files within it, which it does not name."""
        rest, elements = _INSTRUCTIONS.split(prompt)
        skills = [listed_skill(match[1], match[0]) for match in _SKILL.finditer(rest)]
        own = AddedText("tools", "system prompt", _SKILL.sub("", rest), kind="system prompt")
        yield SystemPrompt((UNRECORDED_TOOLS, own, *skills))
        texts = [text for _, text in elements]
        instructions = [
            AddedText("memory", f"custom instructions {number}", text, at)
            for number, text in enumerate(texts, 1)
        ]
        if texts != [each.text for each in self._instructions]:  # it may be recorded again
            self._instructions = instructions
            yield from instructions

    def _read_hook(self, hook: _HookEnd, at: float | None) -> Iterator[AddedText]:
        """Yield the text of a session's start; other hooks' is in what they were run for."""
        output = hook.output or _HookOutput()
        if hook.hook_type == "agentStop":
            self._stop_feedback = output.reason if output.decision == "block" else ""
        elif hook.hook_type == "sessionStart" and output.additional_context:
            yield AddedText("hook", hook.hook_type, output.additional_context, at)

    def _read_compaction(self, data: CompactionComplete, at: float | None) -> Iterator[Piece]:
        if not data.is_applied:
            return
        yield KeptContent(tuple(self._kept or ()))
        yield SummaryText(data.summary_content, at)

    def read_line(self, line: bytes) -> Iterator[Piece]:
        event = _line.decode(line)
        if event.type == STREAM_END:
            yield RunOutcome(failed=event.exit_code != 0)
        elif event.type == "session.error":
            yield ErrorText(_error.decode(event.data).message)
        elif event.type == "assistant.message" and (event.agent_id or MAIN) == MAIN:
            yield from _read_reply(_reply.decode(event.data), None)


def _location(folder: WorkingFolder) -> Location:
    return Location(folder.cwd, parse_branch(folder.branch))


def _read_reply(reply: _Reply, at: float | None) -> Iterator[Piece]:
    if reply.reasoning_text:
        yield Reasoning(reply.reasoning_text, at)
    if reply.content:
        yield ReplyText(reply.content, at)
    for request in reply.tool_requests:
        yield from _read_call(request, at)


def _read_call(request: _ToolRequest, at: float | None) -> Iterator[ToolCall | TodoList]:
    if request.name == PATCH_TOOL:
        patch = _patch.decode_or_none(request.arguments) or bytes(request.arguments).decode()
        files = patched_files(patch)
        yield ToolCall(
            PATCH_TOOL, request.tool_call_id, "edit", files=files, arguments=patch, at=at
        )
        return
    yield from TOOLS.read_call(
        request.name, request.tool_call_id, request.arguments, at, request.mcp_server_name
    )


def _read_result(done: _Completed, at: float | None) -> ToolResult:
    result = done.result or _Result()
    output = result.content or (done.error.message if done.error else "")
    return ToolResult(done.tool_call_id, done.success, output, at=at)


CONTENT_READER = CopilotContent
