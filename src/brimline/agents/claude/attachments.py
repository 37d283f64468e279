"""What Claude Code attaches to messages: lists of tools, memory files, what hooks add.

Since 2.1.325 also the system prompt with its tools.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from brimline.agents.content import AddedBy, AddedText, SystemKind, SystemPrompt, strings_in
from brimline.agents.tools import ToolDefinition, defined_tool, server_of
from brimline.files.foreign_json import ABSENT, JsonDecoder

COUNTDOWN = "total_tokens_reminder"
_COUNTDOWN = re.compile(r"<total_tokens>([0-9]{1,12}) tokens left</total_tokens>")

# Who adds the text of an attachment; the client itself adds the others.
ATTACHED_BY: dict[str, AddedBy] = {
    "agent_listing_delta": "tools",
    "date": "tools",
    "deferred_tools_delta": "tools",
    "environment": "tools",
    "mcp_instructions_delta": "tools",
    "model": "tools",
    "skill_listing": "tools",
    "async_hook_response": "hook",
    "hook_additional_context": "hook",
    "hook_blocking_error": "hook",
    "hook_success": "hook",
    "nested_memory": "memory",
    "edited_text_file": "client",
    "file": "user",
}


class _SnapshotTool(ToolDefinition, frozen=True):
    """A tool of a snapshot: its `schema` is what is sent, with the name and description again."""

    schema: msgspec.Raw = ABSENT


class _MemoryFile(msgspec.Struct, frozen=True):
    path: str = ""
    content: str = ""


class Attachment(msgspec.Struct, frozen=True, rename="camel"):
    """What the client attaches to the user's next message; each type has a few of these."""

    type: str = ""
    prompt: msgspec.Raw = ABSENT
    hook_name: str = ""
    path: str = ""
    filename: str = ""
    content: msgspec.Raw = ABSENT
    snippet: msgspec.Raw = ABSENT
    text: msgspec.Raw = ABSENT
    files: msgspec.Raw = ABSENT
    skills: msgspec.Raw = ABSENT
    system_prompt: msgspec.Raw = ABSENT
    tools: list[msgspec.Raw] = []
    added_names: list[str] = []
    added_types: list[str] = []
    names: list[str] = []
    added_lines: list[str] = []
    added_blocks: list[str] = []

    def snapshot(self) -> Iterator[SystemPrompt]:
        """The system prompt, its countdown, and the definition of each tool (since 2.1.325).

        A session's first snapshot, before its first call, has no tools yet.
        """
        if not self.tools:
            return
        texts = list(strings_in(self.system_prompt))
        countdowns = [text for text in texts if _COUNTDOWN.fullmatch(text)]
        prompt = "\n".join(text for text in texts if text not in countdowns)
        parts = [AddedText("tools", "system prompt", prompt, kind="system prompt")]
        parts += [_countdown("tools", text, kind="system prompt") for text in countdowns]
        for raw in self.tools:
            tool = _tool.decode_or_none(raw) or _SnapshotTool()
            text = bytes(tool.schema or raw).decode("utf-8", "replace")
            parts.append(defined_tool(tool.name, text))
        yield SystemPrompt(tuple(parts))

    def added(self, at: float | None) -> Iterator[AddedText]:
        """Yield what of it the model reads, without the words that the client puts around it."""
        if self.type == "instructions":  # since 2.1.325
            for file in _memory_files.decode_or_none(self.files) or []:
                yield AddedText("memory", file.path, file.content, at)
            return
        if self.type == "nested_memory" and (file := _memory_file.decode_or_none(self.content)):
            # not its `rawContent`, with the comments and the front matter that are not sent
            yield AddedText("memory", file.path or self.path, file.content, at)
            return
        if self.type == COUNTDOWN:
            yield _countdown("client", "".join(strings_in(self.text)), at)
            return
        by = ATTACHED_BY.get(self.type, "client")
        name = self.hook_name or self.path or self.filename or self.type
        fields = (self.content, self.snippet, self.text, self.files, self.skills)
        text = "\n".join(text for field in fields for text in strings_in(field))
        if self.type == "skill_listing":
            yield from _listed("skill", self.names, _split_listing(text, self.names), at)
        elif self.type == "agent_listing_delta":
            yield from _listed("agent", self.added_types, self.added_lines, at)
            return
        elif text:
            yield AddedText(by, name, text, at)
        servers: dict[str, list[str]] = {}
        for line in self.added_lines:
            servers.setdefault(server_of(line), []).append(line)
        if self.type == "mcp_instructions_delta":
            for server, block in zip(self.added_names, self.added_blocks, strict=False):
                servers.setdefault(server, []).append(block)
        for server, lines in servers.items():
            tools, text = tuple(lines) if self.added_lines else (), "\n".join(lines)
            yield AddedText(
                by, server or name, text, at, server, kind="built-in tools", names=tools
            )


_memory_files = JsonDecoder(list[_MemoryFile])
_memory_file = JsonDecoder(_MemoryFile)
_tool = JsonDecoder(_SnapshotTool)


def _listed(
    kind: SystemKind, names: Sequence[str], texts: Sequence[str], at: float | None
) -> Iterator[AddedText]:
    """Yield the entries of a list of skills or agents; the whole if it is not of their names."""
    if len(names) != len(texts):
        names, texts = ("",), ("\n".join(texts),)
    for name, text in zip(names, texts, strict=True):
        what, named = (f"{kind} {name}", (name,)) if name else (f"list of {kind}s", ())
        yield AddedText("tools", what, text, at, kind=kind, names=named)


def _split_listing(text: str, names: Sequence[str]) -> list[str]:
    """Split a list at the lines that begin with the names, in their order; whole without names."""
    if not names:  # before 2.1.325
        return [text] if text else []
    lines, starts, place = f"\n{text}\n", list[int](), 0
    for name in names:
        # The name may be the beginning of another; a description follows it, or nothing.
        found = (lines.find(f"\n- {name}{end}", place) for end in ":\n")
        place = min((start for start in found if start >= 0), default=-1)
        if place < 0:
            return [text]
        starts.append(place)
        place += len(name)
    return [text[start:end] for start, end in pairwise((*starts, len(text)))]


def _countdown(
    by: AddedBy, text: str, at: float | None = None, kind: SystemKind = "other"
) -> AddedText:
    """Return what the client tells the model is left.

    By an internal setting it is the truth, a constant, or a budget that starts again with each
    prompt (2.1.325).
    """
    match = _COUNTDOWN.search(text)
    left = int(match[1]) if match else None
    return AddedText(by, "countdown of the client", text, at, kind=kind, tokens_left=left)
