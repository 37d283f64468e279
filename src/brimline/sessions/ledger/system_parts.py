"""What the system part of a context is made of, and what of it the agent called."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

import msgspec

from brimline.agents.content import SystemKind
from brimline.agents.fresh_session import FreshPart
from brimline.context.events import MAIN
from brimline.redaction import redact
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import ContextPart, Mask, plain_name
from brimline.sessions.ledger.part_tokens import Entry, split
from brimline.sessions.ledger.session_ledger import ThreadLedger
from brimline.terminal.text import count_of

_SLASH_COMMAND = re.compile(r"/([\w:.-]+)(?!\S)")

PartKey = tuple[SystemKind, str]


class SystemPart(msgspec.Struct, frozen=True):
    """A part of what the client sends with every call.

    `name` is that of an MCP server, a memory file, a skill or an agent, else empty. `tools` are
    those of a server or of the client, `called` how many of them the agent called, `calls` how
    often; a skill and an agent are called by their name. `is_estimated`: the transcript has only
    the total, and the client's own answer for a fresh session says how it is divided.
    """

    kind: SystemKind
    name: str
    tokens: int
    tools: int = 0
    called: int = 0
    calls: int = 0
    is_estimated: bool = False


def find_system_parts(
    ledger: ThreadLedger, fresh: Sequence[FreshPart] = (), mask: Mask = redact
) -> list[SystemPart]:
    """Return the parts that the client put before a thread's conversation, the largest first.

    `fresh` divides what a main thread's transcript has as one piece.
    """
    groups = _group(ledger.carried)
    whole = groups.pop(WHOLE, None)
    estimated = set[PartKey]()
    if whole is not None:
        divided = list(_divide(whole, fresh, groups)) if ledger.thread == MAIN else []
        for key, name, tokens, tools in divided:
            group = groups.setdefault(key, _Group(name))
            group.tokens += tokens
            group.tool_count = tools
            estimated.add(key)
        if not divided:
            groups[WHOLE] = whole
    used = count_uses(ledger.steps, {name for kind, name in groups if kind == "skill"})
    parts = [
        group.part(kind, mask, used.get((kind, key), Counter()), (kind, key) in estimated)
        for (kind, key), group in groups.items()
        if group.tokens
    ]
    return sorted(parts, key=lambda part: part.tokens, reverse=True)


WHOLE: PartKey = ("system and tools", "")


class _Group:
    """Adds up the entries of one part."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tokens = 0
        self.tools: set[str] = set()
        self.tool_count = 0

    def part(
        self, kind: SystemKind, mask: Mask, used: Counter[str], is_estimated: bool
    ) -> SystemPart:
        return SystemPart(
            kind,
            mask(self.name),
            self.tokens,
            tools=len(self.tools) or self.tool_count,
            called=len(used),
            calls=used.total(),
            is_estimated=is_estimated,
        )


def _group(entries: Iterable[Entry]) -> dict[PartKey, _Group]:
    groups: dict[PartKey, _Group] = {}
    for entry in entries:
        part = entry.part
        kind, name = _kind_and_name(part)
        group = groups.setdefault((kind, plain_name(name)), _Group(name))
        group.tokens += entry.tokens
        if kind in ("MCP server", "built-in tools"):
            group.tools.update(part.names)
    return groups


def _kind_and_name(part: ContextPart) -> tuple[SystemKind, str]:
    if part.category == "memory files":
        return "memory file", part.file or part.what
    if part.server:
        return "MCP server", part.server
    kind = part.kind or "other"
    return kind, part.names[0] if part.names and kind in ("skill", "agent") else ""


def _divide(
    whole: _Group, fresh: Sequence[FreshPart], groups: dict[PartKey, _Group]
) -> Iterator[tuple[PartKey, str, int, int]]:
    """Yield the parts of a piece by a client's answer, without those that have a record."""
    kinds = {kind for kind, _ in groups}
    weights: list[tuple[FreshPart, int]] = []
    for part in fresh:
        if part.kind == "MCP server":
            has_record = ("MCP server", plain_name(part.name)) in groups
            weights.append((part, part.definitions if has_record else part.tokens))
        elif part.kind not in kinds:
            weights.append((part, part.tokens))
    shares = split(whole.tokens, [weight for _, weight in weights])
    for (part, weight), tokens in zip(weights, shares, strict=True):
        if weight:
            yield (part.kind, plain_name(part.name)), part.name, tokens, part.tools


def count_uses(steps: Iterable[Step], skills: Container[str]) -> dict[PartKey, Counter[str]]:
    """Return how often each tool of a server or the client, each skill and agent was called.

    Of what a person typed, only the commands of these skills count: paths begin like them.
    """
    uses: dict[PartKey, Counter[str]] = {}

    def add(kind: SystemKind, name: str, tool: str) -> None:
        uses.setdefault((kind, plain_name(name)), Counter())[tool] += 1

    for step in steps:
        for part in step.outputs:
            if part.category == "tool calls":
                add("MCP server" if part.server else "built-in tools", part.server, part.tool)
                if part.kind is not None and part.names:
                    add(part.kind, part.names[0], part.names[0])
        for part in step.inputs:  # a person started the skill
            is_text = part.category in ("user words", "injected context")
            command = _SLASH_COMMAND.match(part.what) if is_text else None
            if command and plain_name(command[1]) in skills:
                add("skill", command[1], command[1])
    return uses


class PartRow(msgspec.Struct, frozen=True):
    """A line for people: all skills are one, all agents too; `called` is how many were called."""

    what: str
    tokens: int
    called: str


def summarise_parts(parts: Sequence[SystemPart]) -> list[PartRow]:
    """Return lines for people, the largest first."""
    rows = [_row(part) for part in parts if part.kind not in ("skill", "agent")]
    for kind in ("skill", "agent"):
        group = [part for part in parts if part.kind == kind]
        if group:
            is_named = all(part.name for part in group)
            what = count_of(len(group), kind) if is_named else f"{kind}s"
            called = f"{sum(part.calls > 0 for part in group)}" if is_named else ""
            rows.append(PartRow(what, sum(part.tokens for part in group), called))
    return sorted(rows, key=lambda row: row.tokens, reverse=True)


def _row(part: SystemPart) -> PartRow:
    match part.kind:
        case "MCP server" | "built-in tools":
            tools = count_of(part.tools, "tool") if part.tools else "tools"
            server = f"MCP server {part.name}: " if part.name else "built-in: "
            return PartRow(server + tools, part.tokens, f"{part.called}")
        case "memory file":
            return PartRow(part.name, part.tokens, "")
        case "other":
            return PartRow("environment and other texts", part.tokens, "")
        case _:
            return PartRow(part.kind, part.tokens, "")
