"""What Claude Code answers, to the request and to the command, as one ClientAnswer."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

import msgspec

from brimline.agents.content import SystemKind
from brimline.context.token_estimate import estimate
from brimline.files.foreign_json import JsonDecoder

Source: TypeAlias = Literal["get_context_usage", "/context"]
RowKind: TypeAlias = Literal["used", "deferred", "other"]
Count = Annotated[int, msgspec.Meta(ge=0)]

MESSAGES = "Messages"
SYSTEM_PROMPT = "System prompt"
SYSTEM_TOOLS = "System tools"
MCP_TOOLS = "MCP tools"
BUILT_IN = "built-in"  # the source of a skill that comes with the client
# Sources of a size that is the user's auto-compact window, not the model's window: 2.1.325 reports
# 150,000 if CLAUDE_CODE_AUTO_COMPACT_WINDOW is that.
USER_SOURCES = ("env", "settings")


class Category(msgspec.Struct, frozen=True):
    """A part of what a session holds; what is `deferred` is not loaded yet, and does not count."""

    name: str
    tokens: int
    deferred: bool = False


class FreshPart(msgspec.Struct, frozen=True):
    """A part of a fresh session that people can name: an MCP server, a memory file, a skill.

    `tools` are those of a server, and `definitions` what these take of its tokens. Of tools that
    are deferred only the names are in `tokens`, by an estimate. `is_built_in`: it comes with the
    client.
    """

    kind: SystemKind
    name: str
    tokens: int
    tools: int = 0
    definitions: int = 0
    is_built_in: bool = False


class ClientAnswer(msgspec.Struct, frozen=True):
    """What the client reported; None where it reports nothing.

    `estimated`: its API did not count, and it guessed. `memory_files` are the paths that it read,
    `without` the MCP servers that were not connected yet. `parts` is empty if it reports only
    categories.
    """

    source: Source
    model: str | None
    categories: tuple[Category, ...]
    window: int | None = None
    limit: int | None = None
    auto_compact: bool | None = None
    estimated: bool = False
    memory_files: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    parts: tuple[FreshPart, ...] = ()

    @property
    def tokens(self) -> int:
        """What is loaded: without free space, the compaction's buffer and deferred tools."""
        return sum(one.tokens for one in self.categories if not one.deferred)

    @property
    def has_system_prompt(self) -> bool:
        """Without a system prompt, the client could not count at all."""
        return any(one.name == SYSTEM_PROMPT for one in self.categories)


class _Row(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    tokens: Count
    kind: str | None = None
    is_deferred: bool = False

    @property
    def row_kind(self) -> RowKind:
        """Whether the row is loaded, deferred or no content; older clients show it by the name."""
        if self.is_deferred or self.kind == "deferred" or self.name.endswith("(deferred)"):
            return "deferred"
        if self.kind is not None:
            return "used" if self.kind == "used" else "other"
        return "other" if self.name.lower().endswith(("free space", "buffer")) else "used"


class _File(msgspec.Struct, frozen=True):
    path: str
    tokens: Count = 0


class _McpTool(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    server_name: str
    tokens: Count = 0
    is_loaded: bool = False


class _McpInstructions(msgspec.Struct, frozen=True, rename="camel"):
    server_name: str
    tokens: Count = 0


class _CustomAgent(msgspec.Struct, frozen=True, rename="camel"):
    agent_type: str
    tokens: Count = 0


class _Skill(msgspec.Struct, frozen=True):
    name: str
    source: str = ""
    tokens: Count = 0


class _Skills(msgspec.Struct, frozen=True, rename="camel"):
    skill_frontmatter: list[_Skill] = []


class _Requested(msgspec.Struct, frozen=True, rename="camel"):
    categories: list[_Row]
    model: str | None = None
    raw_max_tokens: int | None = None
    autocompact_source: str | None = None
    auto_compact_threshold: int | None = None
    is_auto_compact_enabled: bool | None = None
    memory_files: list[_File] = []


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    """What the categories consist of; figures do not depend on it."""

    mcp_tools: list[_McpTool] = []
    mcp_instructions: list[_McpInstructions] = []
    agents: list[_CustomAgent] = []
    skills: _Skills = _Skills()


class _Printed(msgspec.Struct, frozen=True):
    categories: list[_Row]
    model: str | None = None
    raw_max_tokens: int | None = None
    memory_files: list[_File] = []


_NAMED_CATEGORIES: dict[str, SystemKind] = {
    SYSTEM_PROMPT: "system prompt",
    SYSTEM_TOOLS: "built-in tools",
}
_requested = JsonDecoder(_Requested)
_details = JsonDecoder(_Details)
_printed = JsonDecoder(_Printed)


def parse_request_answer(data: bytes | msgspec.Raw, without: tuple[str, ...] = ()) -> ClientAnswer:
    """Parse the answer to `get_context_usage`; raises MalformedJson."""
    report = _requested.decode(data)
    # The client reports a threshold even if it does not enforce it; it then leaves out the buffer.
    # 2.1.325 reported 167,000 for Haiku 4.5, and a session ran to 189,937.
    enforced = any(row.name.lower().endswith("buffer") for row in report.categories)
    return ClientAnswer(
        "get_context_usage",
        report.model,
        _categories(report.categories),
        window=None if report.autocompact_source in USER_SOURCES else report.raw_max_tokens,
        limit=report.auto_compact_threshold if enforced else None,
        auto_compact=report.is_auto_compact_enabled,
        estimated=_is_estimated(report.categories),
        memory_files=tuple(file.path for file in report.memory_files),
        without=without,
        parts=tuple(_parts(report, _details.decode_or_none(data) or _Details())),
    )


def _parts(report: _Requested, details: _Details) -> Iterator[FreshPart]:
    for name, kind in _NAMED_CATEGORIES.items():
        tokens = sum(row.tokens for row in report.categories if row.name == name)
        if tokens:
            yield FreshPart(kind, "", tokens)
    yield from _servers(report, details)
    for file in report.memory_files:
        yield FreshPart("memory file", file.path, file.tokens)
    for skill in details.skills.skill_frontmatter:
        yield FreshPart("skill", skill.name, skill.tokens, is_built_in=skill.source == BUILT_IN)
    for agent in details.agents:
        yield FreshPart("agent", agent.agent_type, agent.tokens)


def _servers(report: _Requested, details: _Details) -> Iterator[FreshPart]:
    """Yield the MCP servers; of deferred tools the model gets nothing but their names.

    Without deferred tools every tool is loaded, also if `isLoaded` is false (2.1.326).
    """
    deferred = any(
        row.row_kind == "deferred" and row.name.startswith(MCP_TOOLS) for row in report.categories
    )
    sent, definitions = Counter[str](), Counter[str]()
    for each in details.mcp_instructions:
        sent[each.server_name] += each.tokens
    for tool in details.mcp_tools:
        is_named_only = deferred and not tool.is_loaded
        sent[tool.server_name] += estimate(f"{tool.name}\n") if is_named_only else tool.tokens
        definitions[tool.server_name] += 0 if is_named_only else tool.tokens
    tools = Counter(tool.server_name for tool in details.mcp_tools)
    for server in sorted(sent):
        yield FreshPart("MCP server", server, sent[server], tools[server], definitions[server])


def parse_command_answer(
    data: bytes | msgspec.Raw, without: tuple[str, ...] = (), configured: bool = False
) -> ClientAnswer:
    """Parse the `context_usage` of `/context`; `configured`: the window is the user's own."""
    report = _printed.decode(data)
    return ClientAnswer(
        "/context",
        report.model,
        _categories(report.categories),
        window=None if configured else report.raw_max_tokens,
        estimated=_is_estimated(report.categories),
        memory_files=tuple(file.path for file in report.memory_files),
        without=without,
    )


def _categories(rows: list[_Row]) -> tuple[Category, ...]:
    parts = ((row, row.row_kind) for row in rows)
    return tuple(
        Category(row.name, row.tokens, part == "deferred") for row, part in parts if part != "other"
    )


def _is_estimated(rows: list[_Row]) -> bool:
    """The API counts an empty conversation too; a client that estimates leaves it out."""
    return not any(row.name == MESSAGES for row in rows)
