"""What the real Claude Code sends with every call, by its own answer and by its transcript."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from brimline.agents.transcripts.source import Places
from brimline.sessions.ledger.session_ledger import read_ledgers
from brimline.sessions.ledger.system_parts import SystemPart, find_system_parts
from brimline.sessions.target import files_of_path
from brimline.testing.fake_model import Reply, Scenario, ToolCall
from brimline.testing.fake_model.prompt import estimate, text_of

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
