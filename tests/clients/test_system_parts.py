"""What real clients send with every call, by their transcripts and Claude Code's own answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.agents.transcripts.source import Places
from brimline.sessions.ledger.session_ledger import read_ledgers
from brimline.sessions.ledger.system_parts import SystemPart, find_system_parts
from brimline.sessions.target import files_of_path
from brimline.testing.fake_model import Reply, Scenario, ToolCall
from brimline.testing.fake_model.prompt import estimate, text_of

from . import codex, copilot, kimi
from .claude import run_claude
from .run import ClientRun, Place
from .test_baseline import only_baseline, run_baseline, server_command

pytestmark = pytest.mark.clients

# The tools of a server, and how long the text of each is. The client takes about 500 tokens, which
# the API adds to tools, off the count of all servers (2.1.326); the fake model adds none.
SERVERS = {"tides": (1, 40), "sails": (12, 10), "charts": (20, 6)}
DEFERRED = "default"
LOADED = "0"


def make_project(folder: Path) -> Place:
    """A project with three MCP servers, a memory file, a skill and an agent."""
    place = Place(folder)
    place.make()
    servers = {name: server_command(name, *size) for name, size in SERVERS.items()}
    (place.home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    (place.project / "CLAUDE.md").write_text("Be brief. " * 200)
    for kind, name, text in (("skills", "knots/SKILL", "Tie it."), ("agents", "pilot", "Guide.")):
        file = place.project / ".claude" / kind / f"{name}.md"
        file.parent.mkdir(parents=True)
        called = name.partition("/")[0]
        file.write_text(f"---\nname: {called}\ndescription: Helps a ship.\n---\n{text}")
    return place


def sent_by_server(run: ClientRun) -> Counter[str]:
    """The tokens of each server in the first request: definitions, instructions and names."""
    lines = run.requests.read_text(encoding="utf-8").splitlines()
    requests = [json.loads(line) for line in lines]
    body = next(each["body"] for each in requests if each["path"].startswith("/v1/messages?"))
    messages = [each["content"] for each in body["messages"] if each["role"] == "system"]
    lines = text_of(messages).splitlines()
    tokens = Counter[str]()
    for name in SERVERS:
        for tool in body["tools"]:
            if tool["name"].startswith(f"mcp__{name}__"):
                tokens[name] += estimate(json.dumps(tool))
        for line in lines:
            if line.startswith((f"mcp__{name}__", f"## {name}", f"Ask {name} about")):
                tokens[name] += estimate(line)
    return tokens


def is_close(ours: int, sent: int) -> bool:
    return abs(ours - sent) <= max(0.15 * sent, 150)


def parts_of(run: ClientRun) -> dict[tuple[str, str], SystemPart]:
    """What the transcript says."""
    places = Places(home=run.home, env={})
    path = run.transcripts[-1]
    (ledger,) = read_ledgers(files_of_path(str(path), places), places)
    return {(part.kind, part.name): part for part in find_system_parts(ledger.threads[0])}


@pytest.mark.parametrize("search", [DEFERRED, LOADED])
def test_each_server_is_what_was_sent(tmp_path: Path, search: str) -> None:
    """Both the answer and the transcript have each server's tokens, as loaded or as names."""
    place = make_project(tmp_path)
    environment = {} if search == DEFERRED else {"ENABLE_TOOL_SEARCH": search}
    answer = only_baseline(run_baseline(tmp_path, **environment))
    answered = {part.name: part for part in answer.parts if part.kind == "MCP server"}
    call = ToolCall("mcp__sails__tide_3", {"harbour": "Kiel"})
    scenario = Scenario(main=(Reply(tools=(call,)),))
    options = ("--allowedTools", "mcp__sails__tide_3")
    run = run_claude(scenario, tmp_path, "hi", *options, environment=environment)
    assert run.exit_code == 0, run.stderr
    sent, recorded = sent_by_server(run), parts_of(run)
    for name, (tools, _) in SERVERS.items():
        part = recorded["MCP server", name]
        assert is_close(answered[name].tokens, sent[name]), (name, answered[name], sent)
        assert is_close(part.tokens, sent[name]), (name, part, sent)
        assert (answered[name].tools, part.tools) == (tools, tools)
    calls = {name: recorded["MCP server", name].calls for name in SERVERS}
    assert calls == {"tides": 0, "sails": 1, "charts": 0}
    named = {(part.kind, part.name) for part in answer.parts}
    memory = ("memory file", str(place.project / "CLAUDE.md"))
    assert {("skill", "knots"), ("agent", "pilot"), memory} <= named
    assert {("skill", "knots"), ("agent", "pilot"), memory} <= set(recorded)


def test_disabled_parts_are_no_longer_sent(tmp_path: Path) -> None:
    """What `brimline tools` advises works: each change, in this project, takes its part away."""
    place = make_project(tmp_path)
    state = json.loads((place.home / ".claude.json").read_text())
    # What `/mcp disable tides` writes; that command needs a terminal.
    state["projects"] = {str(place.project): {"disabledMcpServers": ["tides"]}}
    (place.home / ".claude.json").write_text(json.dumps(state))
    local = {"skillOverrides": {"knots": "off"}, "permissions": {"deny": ["Agent(pilot)"]}}
    (place.project / ".claude/settings.local.json").write_text(json.dumps(local))
    run = run_claude(Scenario(), tmp_path, "hi")
    parts = set(parts_of(run))
    assert ("MCP server", "sails") in parts
    removed = {("MCP server", "tides"), ("skill", "knots"), ("agent", "pilot")}
    assert not removed & parts


SYSTEM_TEXT = '["", {"type": "text"'  # a block of the Messages API
WORDS = "The tide comes in and goes out again. " * 20  # shows how many tokens prose takes


def listed_in(run: ClientRun) -> Iterator[tuple[str, int]]:
    """What the first request has: a text of the client, or a tool, and its tokens."""
    for block in run.of("main")[0].blocks:
        yield json.dumps(block.content), block.tokens


def test_prompt_of_codex_is_what_was_sent(tmp_path: Path) -> None:
    """Its rollout has the system prompt, and names the servers; the tools take the rest."""
    place = Place(tmp_path)
    place.make()
    (place.project / "AGENTS.md").write_text("Be brief. " * 200)
    settings: list[str] = []
    for name, size in SERVERS.items():
        server = f"mcp_servers.{name}."
        entry = server_command(name, *size)
        settings += [f"{server}{key}={json.dumps(value)}" for key, value in entry.items()]
    call = ToolCall("tide_3", {"harbour": "Kiel"}, namespace="mcp__sails")
    scenario = Scenario(main=(Reply(tools=(call,)), Reply(text=WORDS)), list_blocks=True)
    run = codex.run_codex(scenario, tmp_path, "Please look.", *settings)
    sent, recorded = dict(listed_in(run)), parts_of(run)
    prompt = sum(tokens for text, tokens in sent.items() if "You are Codex" in text)
    tools = sum(tokens for text, tokens in sent.items() if '"type": "message"' not in text)
    assert is_close(recorded["system prompt", ""].tokens, prompt)
    assert is_close(recorded["tools and unrecorded texts", ""].tokens, tools)
    calls = {name: recorded["MCP server", name].calls for name in SERVERS}
    assert calls == {"tides": 0, "sails": 1, "charts": 0}


def test_every_part_of_kimi_is_what_was_sent(tmp_path: Path) -> None:
    """Its records have the system prompt with memory files and skills, and each tool."""
    place = Place(tmp_path)
    place.make()
    memory, skill = place.project / "AGENTS.md", place.project / ".kimi-code/skills/knots/SKILL.md"
    memory.write_text("Be brief. " * 200)
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: knots\ndescription: Helps a ship.\n---\nTie it.")
    servers = {name: server_command(name, *size) for name, size in SERVERS.items()}
    (place.home / ".kimi-code").mkdir()
    (place.home / ".kimi-code/mcp.json").write_text(json.dumps({"mcpServers": servers}))
    call = ToolCall("mcp__sails__tide_3", {"harbour": "Kiel"})
    scenario = Scenario(main=(Reply(tools=(call,)), Reply(text="Done.")), list_blocks=True)
    run = kimi.run_kimi(scenario, tmp_path, "Please look.")
    sent, recorded = dict(listed_in(run)), parts_of(run)
    for name, (tools, _) in SERVERS.items():
        part = recorded["MCP server", name]
        tokens = sum(each for text, each in sent.items() if f"mcp__{name}__" in text)
        assert is_close(part.tokens, tokens), (name, part, tokens)
        assert (part.tools, part.calls) == (tools, int(name == "sails"))
    assert is_close(recorded["memory file", str(memory)].tokens, estimate(memory.read_text()))
    assert ("skill", "knots") in recorded


def test_prompt_of_copilot_is_what_was_sent(tmp_path: Path) -> None:
    """Its events have the system prompt with the skills; the tools take the rest."""
    place = Place(tmp_path)
    place.make()
    skill = place.project / ".github/skills/knots/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: knots\ndescription: Helps a ship.\n---\nTie it. " + WORDS)
    scenario = Scenario(
        main=(Reply(tools=(ToolCall("skill", {"skill": "knots"}),)), Reply(text=WORDS)),
        list_blocks=True,
    )
    run = copilot.run_copilot(scenario, tmp_path, "Please look.")
    sent, recorded = dict(listed_in(run)), parts_of(run)
    tools = sum(tokens for text, tokens in sent.items() if '"description"' in text)
    assert is_close(recorded["tools and unrecorded texts", ""].tokens, tools)
    prompt = sum(tokens for text, tokens in sent.items() if text.startswith(SYSTEM_TEXT))
    skills = sum(part.tokens for key, part in recorded.items() if key[0] == "skill")
    ours = recorded["system prompt", ""].tokens + skills - estimate(WORDS)
    assert is_close(ours, prompt)
    assert recorded["skill", "knots"].calls == 1
