"""A process in the place of Claude Code that says what a test wants it to say."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from brimline.agents.fresh_session.client import ClaudeCommand
from brimline.agents.transcripts.source import Places

Json = dict[str, Any]

PROGRAM = """\
import json, sys, time
plan = json.load(open({plan!r}))
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)


def say(text):
    print(text, flush=True)


def done(end):
    if end is not None:
        print(end["stderr"], file=sys.stderr)
        sys.exit(end["code"])


if sys.argv[1:] == ["--version"]:
    say(plan["version"])
    time.sleep(plan["version_takes"])
elif "/context" in sys.argv:
    for line in plan["printed"]:
        say(line)
    done(plan["end"])
else:
    for line in plan["noise"]:
        say(line)
    for line in sys.stdin:
        asked = json.loads(line)
        subtype, name = asked["request"]["subtype"], asked["request_id"]
        with open({log!r}, "a") as log:
            print(" ", subtype, file=log)
        if subtype == plan["dies_at"]:
            done(plan["end"])
        told = plan["answers"].get(subtype)
        if told:
            answer = told.pop(0) if len(told) > 1 else told[0]
            response = {{**answer, "request_id": name}}
            say(json.dumps({{"type": "control_response", "response": response}}))
"""


def success(answer: object) -> Json:
    """The answer to a request."""
    return {"subtype": "success", "response": answer}


def refusal(why: str) -> Json:
    """A request refused."""
    return {"subtype": "error", "error": why}


USED: list[Json] = [
    {"id": "system_prompt", "name": "System prompt", "tokens": 1_534, "kind": "used"},
    {"id": "system_tools", "name": "System tools", "tokens": 5_285, "kind": "used"},
]
DEFERRED: Json = {
    "name": "System tools (deferred)",
    "tokens": 3_646,
    "kind": "deferred",
    "isDeferred": True,
}
MESSAGES: Json = {"name": "Messages", "tokens": 9, "kind": "used"}
BESIDE: list[Json] = [
    {"name": "Autocompact buffer", "tokens": 33_000, "kind": "buffer"},
    {"name": "Free space", "tokens": 958_108, "kind": "free"},
]
USAGE: Json = {
    "categories": [*USED, DEFERRED, MESSAGES, *BESIDE],
    "totalTokens": 6_828,
    "maxTokens": 1_000_000,
    "rawMaxTokens": 1_000_000,
    "autocompactSource": "model-default",
    "autoCompactThreshold": 967_000,
    "isAutoCompactEnabled": True,
    "model": "claude-opus-5-5",
    "memoryFiles": [],
}
"""What Claude Code 2.1.325 says of a fresh session, shortened."""

DETAILS: Json = {
    "memoryFiles": [{"path": "/p/CLAUDE.md", "type": "Project", "tokens": 508}],
    "mcpTools": [
        {"name": "mcp__tides__high", "serverName": "tides", "tokens": 100, "isLoaded": False},
        {"name": "mcp__sails__up", "serverName": "sails", "tokens": 500, "isLoaded": True},
        {"name": "mcp__sails__down", "serverName": "sails", "tokens": 400, "isLoaded": False},
    ],
    "mcpInstructions": [{"serverName": "tides", "tokens": 310}],
    "agents": [{"agentType": "pilot", "source": "projectSettings", "tokens": 25}],
    "skills": {
        "skillFrontmatter": [
            {"name": "knots", "source": "projectSettings", "tokens": 20},
            {"name": "init", "source": "built-in", "tokens": 22},
        ]
    },
}
"""What it says of the parts of its categories, with servers, skills and an agent."""

PRINTED: Json = {
    "model": "claude-opus-5-5",
    "total_tokens": 6_828,
    "raw_max_tokens": 1_000_000,
    "categories": [*USED, DEFERRED, MESSAGES, *BESIDE],
    "memory_files": [],
}

ACCOUNT: Json = {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY"}
ANSWERS: dict[str, list[Json]] = {
    "initialize": [success({"account": {**ACCOUNT, "apiProvider": "firstParty"}})],
    "mcp_status": [success({"mcpServers": []})],
    "get_context_usage": [success(USAGE)],
}


class Machine:
    """A home, a project and a `claude` that does as it is told; `started` is how it was used."""

    def __init__(self, root: Path) -> None:
        self.home, self.project, self.bin = root / "home", root / "project", root / "bin"
        for folder in (self.home / ".claude", self.project, self.bin):
            folder.mkdir(parents=True)
        self.log = root / "started"
        self.path = self.bin / "claude"
        self.env = {"PATH": f"{self.bin}{os.pathsep}{os.defpath}", "HOME": str(self.home)}

    @property
    def places(self) -> Places:
        """Where to look."""
        return Places(self.home, self.env)

    @property
    def client(self) -> ClaudeCommand:
        """The client, with the patience of a test."""
        return ClaudeCommand(str(self.path), self.project, self.env, timeout_s=30.0)

    @property
    def started(self) -> list[str]:
        """How the client was started, and below each start what it was asked."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def install(
        self,
        answers: dict[str, list[Json]] | None = None,
        *,
        version: str = "2.1.325 (Claude Code)",
        version_takes: float = 0,
        printed: list[str] | None = None,
        noise: list[str] | None = None,
        dies_at: str = "",
        end: Json | None = None,
    ) -> None:
        """Put a client there that answers like this, and is silent where nothing is said."""
        plan = self.log.with_suffix(".json")
        told = {
            "version": version,
            "version_takes": version_takes,
            "answers": ANSWERS | (answers or {}),
            "printed": printed or [],
            "noise": noise or [],
            "dies_at": dies_at,
            "end": end,
        }
        plan.write_text(json.dumps(told))
        program = PROGRAM.format(plan=str(plan), log=str(self.log))
        self.write(f"#!{sys.executable} -IS\n{program}")

    def write(self, program: str) -> None:
        """Put any program in the client's place."""
        self.path.write_text(program)
        self.path.chmod(0o755)
