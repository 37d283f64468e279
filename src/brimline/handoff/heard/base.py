"""What listens to an agent's records, and what most agents have in common."""

from typing import Protocol

import msgspec

from brimline.handoff.digest import Todo, ToolUse, TranscriptDigest

ABSENT = msgspec.Raw()


class Listener(Protocol):
    """Writes down what one agent's records tell."""

    notes: TranscriptDigest
    """What was told so far; begun anew where the conversation was."""

    def hear(self, record: bytes) -> None:
        """Take in one JSON object; a kind that tells nothing is passed over.

        Raises what `sources.lines.MALFORMED` names where it is not as expected.
        """
        ...


class Item(msgspec.Struct, frozen=True):
    """One to-do of a list; what it says is called differently from agent to agent."""

    content: str = ""
    step: str = ""
    description: str = ""
    status: str = "pending"

    def todo(self) -> Todo:
        """As we keep it."""
        return Todo(self.content or self.step or self.description, self.status)


class Arguments(msgspec.Struct, frozen=True):
    """What the tools that we know are given; each has a few of these.

    `path` is Pi's name for a file, `filePath` opencode's, `file_path` that of the others.
    """

    command: str | list[str] | None = None
    cmd: str | list[str] | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    camel_path: str | None = msgspec.field(default=None, name="filePath")
    path: str | None = None
    todos: list[Item] = msgspec.field(default_factory=list[Item])

    @property
    def line(self) -> str:
        """The command as one would type it, without the shell that Codex puts around it."""
        told = self.cmd if self.command is None else self.command
        if not isinstance(told, list):
            return told or ""
        match told:
            case [_, "-lc" | "-c", script]:
                return script
            case _:
                return " ".join(told)

    @property
    def file(self) -> str:
        """The file that a tool changes."""
        return self.file_path or self.notebook_path or self.camel_path or self.path or ""


class Tools(msgspec.Struct, frozen=True):
    """The names of an agent's tools, by what they do; of the others only failures are noted."""

    commands: frozenset[str]
    changes: frozenset[str]
    lists: frozenset[str]
    looks: frozenset[str]
    """Tools that show something: their failures tell little."""

    def deed(self, name: str, arguments: Arguments) -> ToolUse | None:
        """What the use of a tool is; None where it is not worth a note."""
        if name in self.commands:
            return ToolUse.of(name, arguments.line) if arguments.line else None
        if name in self.changes:
            return ToolUse.of(name, files=(arguments.file,)) if arguments.file else None
        if name in self.looks or name in self.lists:
            return None
        return ToolUse(name)

    def told(self, name: str) -> bool:
        """Whether its arguments are looked at."""
        return name in self.commands or name in self.changes or name in self.lists


class Part(msgspec.Struct, frozen=True):
    """A piece of a content."""

    type: str = ""
    text: str | None = None


_content = msgspec.json.Decoder(str | list[Part] | None)
_arguments = msgspec.json.Decoder(Arguments)


def arguments_of(data: msgspec.Raw | str) -> Arguments:
    """A tool's arguments; what is not as expected tells nothing."""
    try:
        return _arguments.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Arguments()


def text_of(content: msgspec.Raw) -> str:
    """The text of a content, which is one text or has it in its pieces."""
    if not content:
        return ""
    told = _content.decode(content)
    if told is None or isinstance(told, str):
        return told or ""
    return "\n".join(part.text for part in told if part.text)
