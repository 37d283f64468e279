"""The parts of what a client sends with every call: their tokens, and what was called of them."""

from pathlib import Path

from brimline.agents import get_agent
from brimline.agents.content import AddedText, read_content
from brimline.agents.fresh_session import FreshPart
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import Call
from brimline.sessions.ledger.context_parts import ContextPart
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from brimline.sessions.ledger.system_parts import (
    PartRow,
    SystemPart,
    count_uses,
    find_system_parts,
    summarise_parts,
)

from ..machine import call, packed, record, user_record
from .test_explain import call as sent_call
from .test_explain import session_ledger

FRESH = (
    FreshPart("system prompt", "", 1_000),
    FreshPart("built-in tools", "", 5_000),
    FreshPart("MCP server", "my tides", 2_000, tools=4, definitions=1_500),
    FreshPart("skill", "knots", 500),
    FreshPart("memory file", "/p/CLAUDE.md", 1_500),
)


def main_ledger(*items: Call | ContextPart) -> ThreadLedger:
    return session_ledger(*items).threads[0]


def test_one_piece_stays_one_without_an_answer() -> None:
    ledger = main_ledger(sent_call("a", 20_000))
    assert find_system_parts(ledger) == [SystemPart("system and tools", "", 20_000)]


def test_one_piece_is_divided_as_the_client_divides_a_fresh_session() -> None:
    """The parts are scaled to what was measured, and marked as estimated."""
    ledger = main_ledger(sent_call("a", 20_000))
    parts = find_system_parts(ledger, FRESH)
    assert [(part.kind, part.name, part.tokens) for part in parts] == [
        ("built-in tools", "", 10_000),
        ("MCP server", "my tides", 4_000),
        ("memory file", "/p/CLAUDE.md", 3_000),
        ("system prompt", "", 2_000),
        ("skill", "knots", 1_000),
    ]
    assert all(part.is_estimated for part in parts)


def test_what_has_a_record_is_not_in_the_divided_piece() -> None:
    """Of a server whose names are recorded only the definitions are in the piece."""
    names = ContextPart("system and tools", "tides", 400, server="my_tides", names=("a", "b"))
    memory = ContextPart("memory files", "CLAUDE.md", 400, file="CLAUDE.md")
    ledger = main_ledger(names, memory, sent_call("a", 8_248))
    parts = {part.kind: part for part in find_system_parts(ledger, FRESH)}
    recorded = {entry.part.what: entry.tokens for entry in ledger.entries}
    whole = recorded["system prompt and tools"]
    assert abs(parts["built-in tools"].tokens - whole * 5_000 / 8_000) <= 1
    definitions = round(whole * 1_500 / 8_000)
    assert abs(parts["MCP server"].tokens - definitions - recorded["tides"]) <= 1
    assert parts["MCP server"].tools == 2
    assert (parts["memory file"].name, parts["memory file"].is_estimated) == ("CLAUDE.md", False)


def test_recorded_server_without_definitions_is_marked_as_estimated() -> None:
    """Its tools are deferred: the record has all that is sent of it."""
    names = ContextPart("system and tools", "tides", 400, server="my_tides", names=("a", "b"))
    ledger = main_ledger(names, sent_call("a", 8_248))
    deferred = (FRESH[0], FreshPart("MCP server", "my tides", 500, tools=4))
    parts = {part.kind: part for part in find_system_parts(ledger, deferred)}
    assert not parts["MCP server"].is_estimated
    assert parts["MCP server"].tools == 2
    assert parts["system prompt"].is_estimated


def test_calls_count_for_the_server_the_skill_and_the_agent(tmp_path: Path) -> None:
    """The records of Claude Code: lists of skills and agents, their calls, a typed command."""
    listing = {"type": "skill_listing", "names": ["knots", "sails"]}
    listing |= {"content": "- knots: Ties.\n- well\n- sails: Hoists."}
    agents = {"type": "agent_listing_delta", "addedTypes": ["pilot"], "addedLines": ["- pilot: x"]}
    names = ["WebFetch", "mcp__tides__high", "mcp__tides__low"]
    deferred = {"type": "deferred_tools_delta", "addedNames": names, "addedLines": names}
    uses: list[tuple[str, dict[str, str]]] = [
        ("Skill", {"skill": "knots"}),
        ("Agent", {"subagent_type": "pilot", "prompt": "Go."}),
        ("mcp__tides__high", {}),
        ("mcp__tides__high", {}),
    ]
    blocks = [
        {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(uses)
    ]
    usage = {"input_tokens": 20_000, "output_tokens": 10}
    reply = {"model": "claude-sonnet-4-5", "id": "m1", "content": blocks, "usage": usage}
    path = tmp_path / "session.jsonl"
    lines = [
        user_record("Tie it.", 1),
        *(
            packed(record("attachment", 1, f"a{number}", attachment=each))
            for number, each in enumerate((listing, agents, deferred))
        ),
        packed(record("assistant", 2, "m1", message=reply)),
        user_record("<command-name>/sails</command-name><command-args></command-args>", 3),
        call("m2", 21_000, 4),
    ]
    path.write_bytes(b"".join(lines))
    (ledger,) = read_ledger(Transcript("claude", str(path), 0.0, path.stat().st_size)).threads
    parts = {(part.kind, part.name): part for part in find_system_parts(ledger)}
    tides = parts["MCP server", "tides"]
    assert (tides.tools, tides.called, tides.calls) == (2, 1, 2)
    assert parts["skill", "knots"].calls == parts["skill", "sails"].calls == 1
    assert parts["agent", "pilot"].calls == 1
    assert parts["built-in tools", ""].tools == 1
    entries = {entry.part.what: entry.part.size for entry in ledger.entries}
    assert entries["skill knots"] == len("- knots: Ties.\n- well\n")


def test_skills_and_agents_are_a_line_each() -> None:
    parts = [
        SystemPart("MCP server", "tides", 300, tools=2, called=1, calls=9),
        SystemPart("skill", "knots", 200, called=1, calls=4),
        SystemPart("skill", "sails", 50),
        SystemPart("agent", "pilot", 100),
        SystemPart("other", "", 20),
        SystemPart("memory file", "CLAUDE.md", 10),
    ]
    assert summarise_parts(parts) == [
        PartRow("MCP server tides: 2 tools", 300, "1"),
        PartRow("2 skills", 250, "1"),
        PartRow("1 agent", 100, "0"),
        PartRow("environment and other texts", 20, ""),
        PartRow("CLAUDE.md", 10, ""),
    ]
    assert summarise_parts([SystemPart("skill", "", 300)]) == [PartRow("skills", 300, "")]


def test_list_of_skills_without_names_is_one_part(tmp_path: Path) -> None:
    """Before 2.1.325 the record of a list has no names."""
    listing = {"type": "skill_listing", "content": "- knots: Ties.\n- sails: Hoists."}
    path = tmp_path / "session.jsonl"
    attached = packed(record("attachment", 1, attachment=listing))
    path.write_bytes(user_record("Tie it.", 1) + attached + call("m1", 20_000, 2))
    (ledger,) = read_ledger(Transcript("claude", str(path), 0.0, path.stat().st_size)).threads
    (skills,) = (part for part in find_system_parts(ledger) if part.kind == "skill")
    assert (skills.name, skills.tokens > 0) == ("", True)


def test_name_that_another_begins_with_is_a_skill_of_its_own(tmp_path: Path) -> None:
    """A skill without a description has nothing after its name."""
    texts = ["- knots-2: Ties.\n- well\n", "- knots\n", "- my:sails: Hoists.\n- knots: not this"]
    names = ["knots-2", "knots", "my:sails"]
    listing = {"type": "skill_listing", "names": names, "content": "".join(texts)}
    path = tmp_path / "session.jsonl"
    attached = packed(record("attachment", 1, attachment=listing))
    path.write_bytes(user_record("Tie it.", 1) + attached + call("m1", 20_000, 2))
    pieces = read_content(path.read_bytes().splitlines(), get_agent("claude").content_reader())
    skills = [piece for piece in pieces if isinstance(piece, AddedText) and piece.kind == "skill"]
    assert [(skill.names, skill.text) for skill in skills] == [
        (("knots-2",), texts[0]),
        (("knots",), texts[1]),
        (("my:sails",), texts[2]),
    ]


def test_only_a_skill_that_is_carried_is_called_by_its_command() -> None:
    """Paths and the client's own commands begin with a slash too."""
    skill = ContextPart("system and tools", "knots", 400, kind="skill", names=("my:knots",))
    texts = ("/home/me/x.py fails", "/compact now", "/my:knots/x", "/my:knots. Now")
    commands = ("/my:knots", "/my:knots bowline")
    words = [ContextPart("user words", text, 40) for text in (*texts, *commands)]
    ledger = main_ledger(skill, *words, sent_call("a", 20_000))
    uses = count_uses(ledger.steps, {"my_knots"})
    assert {key: counts.total() for key, counts in uses.items()} == {("skill", "my_knots"): 2}
    (knots,) = (part for part in find_system_parts(ledger) if part.kind == "skill")
    assert knots.calls == 2


def test_other_texts_have_a_name_in_the_table() -> None:
    parts = [SystemPart("system prompt", "", 900), SystemPart("other", "", 100)]
    assert summarise_parts(parts) == [
        PartRow("system prompt", 900, ""),
        PartRow("environment and other texts", 100, ""),
    ]
