"""What the agents' content readers share about tools: names, arguments, definitions."""

from collections.abc import Iterator

import msgspec

from brimline.agents.content import AddedText, Todo, TodoList, ToolCall, ToolKind
from brimline.files.foreign_json import JsonDecoder


class TodoItem(msgspec.Struct, frozen=True):
    """A to-do on the wire; the agents name its text differently."""

    content: str = ""
    description: str = ""
    step: str = ""
    title: str = ""
    status: str = "pending"

    def todo(self) -> Todo:
        """The to-do as a piece."""
        text = self.content or self.description or self.step or self.title
        return Todo(text, self.status)


class ToolArguments(msgspec.Struct, frozen=True):
    """The arguments of the tools that we know; each tool has a few of these.

    A file is `path` in Pi, `filePath` in opencode, `file_path` in the others. A subagent's kind is
    `agent_type` in Copilot CLI, `subagent_type` in the others.
    """

    command: str | list[str] | None = None
    cmd: str | list[str] | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    camel_path: str | None = msgspec.field(default=None, name="filePath")
    path: str | None = None
    todos: list[TodoItem] = msgspec.field(default_factory=list[TodoItem])
    skill: str | None = None
    subagent_type: str | None = None
    agent_type: str | None = None

    @property
    def command_line(self) -> str:
        """The command as one would type it, without the shell that Codex puts around it."""
        command = self.cmd if self.command is None else self.command
        if not isinstance(command, list):
            return command or ""
        match command:
            case [_, "-lc" | "-c", script]:
                return script
            case _:
                return " ".join(command)

    @property
    def file(self) -> str:
        """The file that the tool changes."""
        return self.file_path or self.notebook_path or self.camel_path or self.path or ""


class ToolNames(msgspec.Struct, frozen=True):
    """An agent's tools by kind; `reads` only show something. All others are of kind `other`."""

    commands: frozenset[str]
    edits: frozenset[str]
    todos: frozenset[str]
    reads: frozenset[str]
    subagents: frozenset[str] = frozenset()
    skills: frozenset[str] = frozenset()

    def read_call(
        self,
        tool: str,
        call_id: str,
        arguments: msgspec.Raw,
        at: float | None,
        server: str = "",
    ) -> Iterator[ToolCall | TodoList]:
        """Yield a call, and the to-do list that it writes."""
        kind: ToolKind = "subagent" if tool in self.subagents else "other"
        command, files, uses = "", (), ""
        if tool in self.subagents or tool in self.skills:
            asked = decode_arguments(arguments)
            uses = asked.subagent_type or asked.agent_type or asked.skill or ""
        if tool in self.commands:
            kind, command = "command", decode_arguments(arguments).command_line
        elif tool in self.edits or tool in self.reads:
            kind, file = "edit" if tool in self.edits else "read", decode_arguments(arguments).file
            files = (file,) if file else ()
        elif tool in self.todos:
            kind, items = "todo", decode_arguments(arguments).todos
            yield TodoList(tuple(item.todo() for item in items))
        yield ToolCall(
            tool,
            call_id,
            kind,
            command,
            files,
            arguments=arguments,
            at=at,
            server=server,
            uses=uses,
        )


class ToolDefinition(msgspec.Struct, frozen=True):
    """The definition of a tool in the request."""

    name: str = ""


def read_tool(definition: msgspec.Raw) -> AddedText:
    """Return the definition of a tool as a part of what is sent with every call."""
    tool = _tool.decode_or_none(definition) or ToolDefinition()
    return defined_tool(tool.name, bytes(definition).decode("utf-8", "replace"))


def defined_tool(name: str, text: str) -> AddedText:
    """Return what is sent of a tool; its name may be unknown."""
    names = (name,) if name else ()
    return AddedText(
        "tools", f"tool {name}", text, server=server_of(name), kind="built-in tools", names=names
    )


def listed_skill(name: str, text: str, at: float | None = None) -> AddedText:
    """Return a skill's entry in a list, or its text."""
    return AddedText("tools", f"skill {name}", text, at, kind="skill", names=(name,))


# What a client sends beside the system prompt that it records.
UNRECORDED_TOOLS = AddedText(
    "tools", "tools and other texts", "", is_recorded=False, kind="tools and unrecorded texts"
)


_arguments = JsonDecoder(ToolArguments)
_tool = JsonDecoder(ToolDefinition)


def decode_arguments(data: msgspec.Raw | str) -> ToolArguments:
    """Decode a tool's arguments; empty ones if they are malformed."""
    return _arguments.decode_or_none(data) or ToolArguments()


def server_of(tool: str) -> str:
    """Return the MCP server of a tool; empty if it is the client's own.

    Claude Code and Codex write `mcp__server__tool`.
    """
    prefix, _, rest = tool.partition("mcp__")
    return rest.partition("__")[0] if not prefix else ""
