"""The content of Codex's rollouts, and of its `exec --json` output."""

import re
from collections.abc import Iterator
from itertools import zip_longest

import msgspec

from brimline.agents.codex.records import NULL, CodexLine
from brimline.agents.content import (
    AddedBy,
    AddedText,
    ErrorMessage,
    ErrorText,
    Images,
    KeptContent,
    Location,
    Piece,
    PlanText,
    Reasoning,
    ReplyText,
    RunOutcome,
    SummaryText,
    SystemPrompt,
    TextPart,
    TodoList,
    ToolCall,
    ToolKind,
    ToolResult,
    UserText,
    text_of,
)
from brimline.agents.file_edits import patched_files
from brimline.agents.tools import (
    UNRECORDED_TOOLS,
    TodoItem,
    ToolDefinition,
    decode_arguments,
    server_of,
)
from brimline.agents.transcripts.source import parse_time
from brimline.files.foreign_json import ABSENT, JsonDecoder

COMMANDS = frozenset({"exec_command", "local_shell", "shell", "shell_command", "container.exec"})
WAITS = frozenset({"wait", "write_stdin"})
SUBAGENTS = frozenset(
    {"close_agent", "followup_task", "resume_agent", "send_input", "send_message", "spawn_agent"}
    | {"wait_agent"}
)
MCP = "mcp__"  # begins the namespace of an MCP server's tools, or their names
SUMMARY = "Another language model started to solve this problem"  # begins a summary of Codex's own
REQUEST = "## My request for Codex:"  # follows the context that an editor added
FAILED = ("exec_command failed", "apply_patch verification failed", "Script failed")
ABORTED = "aborted by user"
RESULT_HEAD_CHARS = 16_384  # exit code and job are looked for in this much of a result

# A text that the client added begins with its name.
_CLIENT_TEXT = re.compile(
    r"\s*(?:<([a-z_]+)>\n|# AGENTS\.md instructions(?: for (.+))?|</?image\b)"
)
_DEVELOPER_TEXT = re.compile(r"\s*<([\w -]+)>")
SKILLS, TOOLS = "skills_instructions", "tools"
# The developer's texts that list tools; all others are instructions.
_TOOL_LISTS = frozenset({"apps_instructions", "plugins_instructions", SKILLS, TOOLS})
# A line of the list of namespaces whose tools are searched for (0.169).
_NAMESPACE = re.compile(rf"^- {MCP}(\w+): .*(?:\n(?!- |</).*)*\n?", re.MULTILINE)
_SCRIPT_COMMAND = re.compile(r'\bcmd"?\s*:\s*("(?:[^"\\]|\\.)*")')
_EXIT_CODE = re.compile(r"(?:exited with code|Exit code:|\"?exit_code\"?:)\s*(-?\d{1,10})")
_JOB = re.compile(r"running with (?:session|cell) ID (\w+)")


class _Action(msgspec.Struct, frozen=True):
    """The command of a local shell, or what a web search looked for."""

    command: list[str] = []
    query: str | None = None
    url: str | None = None
    pattern: str | None = None


class _Provenance(msgspec.Struct, frozen=True):
    hook: bool = False


class _ContentSource(msgspec.Struct, frozen=True):
    """Where a block of a message comes from (since 0.166)."""

    provenance: _Provenance = _Provenance()


class _Passthrough(msgspec.Struct, frozen=True):
    content_item_metadata: list[_ContentSource] = []


class _Item(msgspec.Struct, frozen=True):
    type: str = ""
    role: str | None = None
    content: msgspec.Raw = ABSENT
    name: str = ""
    namespace: str | None = None
    id: str | None = None
    call_id: str | None = None
    arguments: str | dict[str, object] = ""
    input: str = ""
    tools: list[msgspec.Raw] = []
    action: _Action | None = None
    output: msgspec.Raw = ABSENT
    message: str | None = None
    item: msgspec.Raw = ABSENT
    cwd: str | None = None
    base_instructions: TextPart | None = None
    summary: msgspec.Raw = ABSENT
    metadata: msgspec.Raw = msgspec.field(
        default=ABSENT, name="internal_chat_message_metadata_passthrough"
    )

    @property
    def argument_text(self) -> str:
        """The arguments as a JSON text, as most items have them."""
        arguments = self.arguments
        return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


class _Compacted(msgspec.Struct, frozen=True):
    """The summary of a local compaction, and the items that replace the conversation.

    `compaction_response_id` is null if no call was made for it; older versions do not write it.
    """

    message: str = ""
    replacement_history: list[_Item] | None = None
    compaction_response_id: str | msgspec.UnsetType | None = msgspec.UNSET


class _FoundTool(ToolDefinition, frozen=True):
    """What a search found: a tool, or a server with its tools."""

    tools: tuple[ToolDefinition, ...] = ()


class _Plan(msgspec.Struct, frozen=True):
    plan: list[TodoItem] = []
    explanation: str | None = None


class _WrappedOutput(msgspec.Struct, frozen=True):
    """The output of 2025: a JSON text and the exit code."""

    output: str
    metadata: msgspec.Raw = ABSENT


class _Wait(msgspec.Struct, frozen=True):
    session_id: int | str = ""
    cell_id: int | str = ""


class _Change(msgspec.Struct, frozen=True):
    path: str = ""


class _LineItem(msgspec.Struct, frozen=True):
    type: str = ""
    id: str = ""
    text: str = ""
    command: str = ""
    query: str = ""
    server: str = ""
    tool: str = ""
    message: str = ""
    changes: list[_Change] | None = None


class _CodexLine(msgspec.Struct, frozen=True):
    type: str
    item: _LineItem = _LineItem()
    error: ErrorMessage = ErrorMessage()


_record = JsonDecoder(CodexLine)
_item = JsonDecoder(_Item)
_compacted = JsonDecoder(_Compacted)
_parts = JsonDecoder(str | list[TextPart] | None)
_passthrough = JsonDecoder(_Passthrough | None)
_tool = JsonDecoder(_FoundTool)
_plan = JsonDecoder(_Plan)
_wrapped = JsonDecoder(_WrappedOutput)
_wait = JsonDecoder(_Wait)
_part = JsonDecoder(TextPart)
_string = JsonDecoder(str)
_line = JsonDecoder(_CodexLine)


class CodexContent:
    """Reads the items of a rollout; the events that repeat them are skipped."""

    usage_follows_reply = True
    resends_reasoning = True
    silent_prefixes = ()
    outcome_marks = (b'"turn.completed"', b'"turn.failed"')

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Yield the pieces of one record; in 2025 an item stood bare on its line."""
        entry = _record.decode(record)
        at = parse_time(entry.timestamp)
        match entry.type:
            case "response_item":
                yield from _read_item(_item.decode(entry.payload), at)
            case "event_msg":
                yield from _read_event(_item.decode(entry.payload), at)
            case "compacted":
                yield from _replacement(_compacted.decode(entry.payload), at)
            case "session_meta" | "turn_context":
                item = _item.decode(entry.payload)
                yield Location(item.cwd)
                if item.base_instructions is not None and item.base_instructions.text:
                    yield _system_prompt(item.base_instructions.text)
            case _ if entry.payload == NULL:
                yield from _read_item(_item.decode(record), at)
            case _:
                pass

    def read_line(self, line: bytes) -> Iterator[Piece]:
        """Yield the pieces of one stream line: a command when it starts, the rest when done.

        A failed turn is a failure; an `error` line alone may be a retry.
        """
        entry = _line.decode(line)
        match entry.type:
            case "turn.completed":
                yield RunOutcome(failed=False)
            case "turn.failed":
                yield ErrorText(entry.error.message)
                yield RunOutcome(failed=True)
            case "item.started" if entry.item.type == "command_execution":
                yield ToolCall("shell", entry.item.id, "command", entry.item.command)
            case "item.completed":
                yield from _read_completed(entry.item)
            case _:
                pass


def _system_prompt(text: str) -> SystemPrompt:
    """The tools are first: they are what the call that writes a summary lacks."""
    prompt = AddedText("tools", "system prompt", text, kind="system prompt")
    return SystemPrompt((UNRECORDED_TOOLS, prompt))


def _read_event(event: _Item, at: float | None) -> Iterator[Piece]:
    if event.type in ("error", "stream_error"):
        yield ErrorText(event.message or "", at)
    elif event.type == "item_completed" and event.item:
        item = _part.decode(event.item)
        if item.type == "Plan":
            yield PlanText(item.text or "")


def _read_item(item: _Item, at: float | None) -> Iterator[Piece]:
    match item.type:
        case "message":
            yield from _message(item, at)
        case "function_call" | "custom_tool_call" | "local_shell_call":
            yield from _tool_call(item, at)
        case "function_call_output" | "custom_tool_call_output":
            text = text_of(item.output)
            result = _tool_result(item.call_id or "", _unwrap(text), at)
            head_bytes, images = len(text) - len(result.output), _count_images(item.output)
            yield msgspec.structs.replace(result, head_bytes=max(0, head_bytes), images=images)
        case "web_search_call":
            action = item.action or _Action()
            query = action.query or action.url or action.pattern or ""
            arguments = msgspec.json.encode({"query": query}).decode()
            yield ToolCall("web_search", item.id or "", "read", arguments=arguments, at=at)
            yield ToolResult(item.id or "", at=at, is_hosted=True)
        case "tool_search_call":
            yield ToolCall(
                "tool_search", item.call_id or "", "read", arguments=item.argument_text, at=at
            )
        case "tool_search_output":  # each is a tool, or all tools of an MCP server (0.166)
            for raw in item.tools:
                tool, text = _tool.decode(raw), bytes(raw).decode("utf-8", "replace")
                names = tuple(each.name for each in tool.tools) or (tool.name,)
                server = server_of(tool.name)
                yield AddedText(
                    "tools", tool.name, text, at, server, kind="built-in tools", names=names
                )
        case "reasoning":
            yield Reasoning("\n".join(filter(None, map(text_of, (item.summary, item.content)))), at)
        case "compaction" | "context_compaction" | "compaction_summary":
            yield SummaryText(None, at)
        case _:
            pass


def _replacement(compacted: _Compacted, at: float | None) -> Iterator[Piece]:
    """Yield what a compaction left; a summary of the provider's is encrypted, or not recorded.

    By `features.token_budget` (0.169) it drops the conversation without a call, and has no summary.
    """
    pieces = [
        piece for item in compacted.replacement_history or () for piece in _read_item(item, at)
    ]
    yield KeptContent(
        tuple(piece for piece in pieces if not isinstance(piece, SummaryText)),
        summary_call=compacted.compaction_response_id or None,
    )
    summaries = [piece for piece in pieces if isinstance(piece, SummaryText)]
    if compacted.message or compacted.compaction_response_id is not None:
        yield from summaries or [SummaryText(compacted.message or None, at)]
    else:
        yield from summaries


def _message(item: _Item, at: float | None) -> Iterator[Piece]:
    """A message; the blocks of the client, of a hook and of a memory file are not the user's."""
    if item.role == "assistant":
        yield ReplyText(text_of(item.content), at)
        return
    words: list[str] = []
    for block, source in zip_longest(_blocks(item.content), _sources(item), fillvalue=None):
        text = (block and block.text) or ""
        if source is not None and source.provenance.hook:
            yield AddedText("hook", "hook", text, at)
        elif item.role != "user":
            yield from _developer_texts(text, at)
        elif text.startswith(SUMMARY):
            yield SummaryText(text, at)
        elif match := _CLIENT_TEXT.match(text):
            yield _client_text(match, text, at)
        else:
            words.append(text)
    if images := _count_images(item.content):
        yield Images(images, at)
    context, _, request = "\n".join(filter(None, words)).partition(REQUEST)
    if request:
        yield AddedText("client", "editor context", context, at)
    if item.role == "user" and (request or context):
        yield UserText(request or context, at)


def _developer_texts(text: str, at: float | None) -> Iterator[AddedText]:
    match = _DEVELOPER_TEXT.match(text)
    name = match[1] if match else "developer message"
    by: AddedBy = "tools" if name in _TOOL_LISTS else "client"
    if name == TOOLS:
        for entry in _NAMESPACE.finditer(text):
            yield AddedText(by, entry[1], entry[0], at, entry[1], kind="built-in tools")
        text = _NAMESPACE.sub("", text)
    yield AddedText(by, name, text, at, kind="skill" if name == SKILLS else "other")


def _client_text(match: re.Match[str], text: str, at: float | None) -> AddedText:
    tag, folder = match.groups()
    if tag is None and "AGENTS.md" in match[0]:
        return AddedText("memory", f"{folder}/AGENTS.md" if folder else "AGENTS.md", text, at)
    by: AddedBy = "subagent" if tag == "subagent_notification" else "client"
    return AddedText(by, tag or "image", text, at)


def _blocks(content: msgspec.Raw) -> list[TextPart]:
    blocks = _parts.decode(content) if content else None
    return [TextPart(text=blocks)] if isinstance(blocks, str) else blocks or []


def _sources(item: _Item) -> list[_ContentSource]:
    metadata = _passthrough.decode(item.metadata) if item.metadata else None
    return metadata.content_item_metadata if metadata else []


def _count_images(content: msgspec.Raw) -> int:
    if b'"input_image"' not in bytes(content):
        return 0
    return sum(block.type == "input_image" for block in _blocks(content))


def _tool_call(item: _Item, at: float | None) -> Iterator[Piece]:
    """A call; a patch, a script and a command may all change files."""
    kind: ToolKind
    tool, call_id, arguments = item.name, item.call_id or "", item.argument_text or item.input
    if item.namespace and item.namespace.startswith(MCP):
        tool = f"{item.namespace.removesuffix('__')}__{tool}"
    command, files, job = "", (), ""
    if tool == "update_plan":
        plan = _plan.decode_or_none(arguments) or _Plan()
        yield TodoList(tuple(step.todo() for step in plan.plan))
        yield PlanText(plan.explanation or "")
        kind = "todo"
    elif tool in WAITS:
        wait = _wait.decode_or_none(arguments) or _Wait()
        kind, job = "wait", str(wait.session_id or wait.cell_id)
    elif tool == "exec":
        kind = "command"
        commands = _SCRIPT_COMMAND.findall(item.input)
        command = "; ".join(_string.decode_or_none(text) or "" for text in commands)
        files = patched_files(item.input)
    elif tool == "apply_patch":
        files = patched_files(arguments)
        kind = "edit" if files else "other"
    else:
        tool = tool or "shell"
        command = _command(item)
        kind, files = "command" if command else "other", patched_files(command)
        kind = "subagent" if tool in SUBAGENTS else kind
    yield ToolCall(tool, call_id, kind, command, files, job, arguments, at)


def _command(item: _Item) -> str:
    if item.action is not None:
        return decode_arguments(msgspec.json.encode(item.action).decode()).command_line
    return decode_arguments(item.argument_text).command_line if item.name in COMMANDS else ""


def _tool_result(call_id: str, text: str, at: float | None) -> ToolResult:
    head, separator, output = text.partition("Output:\n")
    if text.startswith(ABORTED):
        return ToolResult(call_id, None, text, "cancelled", at=at)
    if job := _JOB.search(head[-RESULT_HEAD_CHARS:]):
        return ToolResult(call_id, None, text, "running", job[1], at)
    ok = _is_ok(head if separator else text[:RESULT_HEAD_CHARS])
    return ToolResult(call_id, ok, output if separator else text, at=at)


def _is_ok(head: str) -> bool | None:
    if head.startswith(FAILED):
        return False
    codes = _EXIT_CODE.findall(head)
    return int(codes[-1]) == 0 if codes else None


def _unwrap(text: str) -> str:
    """A tool's output; in 2025 it was a text within a JSON text."""
    if not text.startswith('{"output"'):
        return text
    wrapped = _wrapped.decode_or_none(text)
    if wrapped is None:
        return text
    return f"{bytes(wrapped.metadata).decode('utf-8', 'replace')}\nOutput:\n{wrapped.output}"


def _read_completed(item: _LineItem) -> Iterator[Piece]:
    match item.type:
        case "agent_message":
            yield ReplyText(item.text)
        case "file_change":
            files = tuple(change.path for change in item.changes or ())
            yield ToolCall("patch", item.id, "edit", files=files)
        case "mcp_tool_call":
            yield ToolCall(f"{item.server}.{item.tool}", item.id, server=item.server)
        case "web_search":
            arguments = msgspec.json.encode({"query": item.query}).decode()
            yield ToolCall("web_search", item.id, "read", arguments=arguments)
        case "error":
            yield ErrorText(item.message)
        case _:
            pass


CONTENT_READER = CodexContent
