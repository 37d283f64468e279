"""`brimline mcp` with the client of the official SDK: a process that a real client would start."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from brimline.testing.fake_model.prompt import CHARACTERS_PER_TOKEN
from server.filled_session import write_filled_session
from server.running import Running

from .terminal import User

pytestmark = pytest.mark.anyio

FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
FIGURES = "35K of 200K (17.7%), 21.2% of the limit 167K"
MAX_DEFINITION_TOKENS, MAX_STATUS_TOKENS = 350, 120
MAX_MB = 30


def start(daemon: Running, session: str, source: str = "startup") -> None:
    """Report a session's start by the real hook client: its parent is this process."""
    path = write_filled_session(daemon.home, session)
    daemon.client(
        {
            "session_id": session,
            "hook_event_name": "SessionStart",
            "source": source,
            "transcript_path": str(path),
            "cwd": "/project",
        }
    )
    daemon.until("/v1/sessions", lambda views: session in str(views))


@asynccontextmanager
async def serving(env: dict[str, str], cwd: Path | None = None) -> AsyncGenerator[ClientSession]:
    """A client that has started the server, and so is the process above it."""
    words = ["-m", "brimline", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=words, env=env, cwd=cwd)
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        yield client


async def ask(client: ClientSession, tool: str, **arguments: Any) -> str:
    """Return the text of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    assert not result.is_error, content.text
    return content.text


async def refusal(client: ClientSession, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    assert result.is_error, content.text
    return content.text


async def test_definitions_and_status_are_short(daemon: Running) -> None:
    """As the fake model counts them, and by 3 characters per token."""
    start(daemon, FIRST)
    async with serving(daemon.environment) as client:
        tools = (await client.list_tools()).tools
        status = await ask(client, "context")
    assert [tool.name for tool in tools] == ["context", "handoff"]
    sent = [{"name": t.name, "description": t.description, "input_schema": t.input_schema}
            for t in tools]  # fmt: skip
    size = len(json.dumps(sent, separators=(",", ":")))
    assert size / CHARACTERS_PER_TOKEN <= size / 3 <= MAX_DEFINITION_TOKENS
    assert len(status) / 3 <= MAX_STATUS_TOKENS


async def test_agent_gets_its_own_figure_also_after_a_clear(daemon: Running) -> None:
    start(daemon, FIRST)
    env = daemon.environment | {"CLAUDE_CODE_SESSION_ID": FIRST}
    async with serving(env) as client:
        assert (await ask(client, "context")).startswith(FIGURES)
        write_filled_session(daemon.home, SECOND, calls=9)
        start_after_clear(daemon)
        assert not (await ask(client, "context")).startswith(FIGURES)


def start_after_clear(daemon: Running) -> None:
    path = daemon.home / ".claude" / "projects" / "-project" / f"{SECOND}.jsonl"
    hook = {"session_id": SECOND, "hook_event_name": "SessionStart", "source": "clear",
            "transcript_path": str(path), "cwd": "/project"}  # fmt: skip
    daemon.client(hook)
    daemon.until("/v1/sessions", lambda views: SECOND in str(views))


async def test_breakdown_has_the_largest_pieces_and_waste(daemon: Running) -> None:
    start(daemon, FIRST)
    async with serving(daemon.environment) as client:
        text = await ask(client, "context", detail="breakdown")
        wrong = await refusal(client, "context", detail="all")
    assert wrong == "detail: expected breakdown: got 'all'"
    _, _, *pieces = text.splitlines()
    largest, waste = pieces[:10], pieces[10:]
    assert "20K system and tools" in largest[0]
    assert sum("tool results: " in line for line in largest) >= 5
    assert waste[0].startswith("Waste: ")


async def test_document_is_written_and_given_back_after_a_compaction(daemon: Running) -> None:
    start(daemon, FIRST)
    daemon.command("setup", "claude")
    async with serving(daemon.environment) as client:
        assert await ask(client, "handoff", action="state") == "No handoff yet."
        saved = await ask(client, "handoff", action="write", text="Next: test the login.")
        assert saved == "Saved 21 characters; you get them after the next compaction."
        assert await ask(client, "handoff", action="state") == "Handoff: fresh, 0 calls since."
        read = await ask(client, "handoff", action="read")
        assert read.splitlines()[-1] == "Next: test the login."
        assert "empty" in await refusal(client, "handoff", action="write")
    (document,) = (daemon.state / "handoffs").iterdir()
    assert document.stat().st_mode & 0o077 == 0
    compacted = {"session_id": FIRST, "hook_event_name": "SessionStart", "source": "compact"}
    assert "Next: test the login." in daemon.hook(compacted)


async def test_other_session_can_be_read_and_not_written(daemon: Running) -> None:
    start(daemon, FIRST)
    write_filled_session(daemon.home, SECOND, calls=9)
    daemon.until("/v1/sessions", lambda views: len(views) == 2)
    async with serving(daemon.environment) as client:
        other = await ask(client, "context", session=SECOND)
        assert not other.startswith(FIGURES)
        reason = await refusal(client, "handoff", action="write", text="x", session=SECOND)
        assert reason == "a document can be written for your own session only"
        assert await ask(client, "handoff", action="read", session=SECOND) == "no handoff yet"


async def test_two_sessions_of_the_client_are_an_error_until_one_is_named(daemon: Running) -> None:
    start(daemon, FIRST)
    start(daemon, SECOND)
    async with serving(daemon.environment) as client:
        for tool, arguments in (
            ("context", {}),
            ("handoff", {"action": "write", "text": "x"}),
        ):
            reason = await refusal(client, tool, **arguments)
            assert "this may be any of 2 sessions" in reason
            assert FIRST in reason
        assert (await ask(client, "context", session=FIRST)).startswith(FIGURES)
        await ask(client, "handoff", action="write", text="x", session=FIRST)


async def test_recall_finds_what_a_session_read(daemon: Running) -> None:
    start(daemon, FIRST)
    async with serving(daemon.environment) as client:
        found = await ask(client, "handoff", action="recall", text='"the file of step 3"')
        assert "I read the file of step 3." in found
        assert "expected the words" in await refusal(client, "handoff", action="recall")


async def test_files_answer_without_a_daemon(user: User) -> None:
    write_filled_session(user.home, FIRST)
    env = user.env | {"CLAUDE_CONFIG_DIR": str(user.home / ".claude")}
    async with serving(env | {"CLAUDE_CODE_SESSION_ID": FIRST}, user.cwd) as client:
        text = await ask(client, "context", detail="breakdown")
        assert text.startswith(FIGURES)
        assert "20K system and tools" in text
        refused = await refusal(client, "handoff", action="write", text="x")
        assert "brimline serve" in refused
    async with serving(env, user.cwd) as client:
        assert "no session found here" in await refusal(client, "context")


@pytest.fixture
def server(user: User) -> subprocess.Popen[bytes]:
    """The server itself, for what no client of the SDK sends."""
    words = [sys.executable, "-m", "brimline", "mcp"]
    return subprocess.Popen(
        words, env=user.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )


def exchange(server: subprocess.Popen[bytes], line: bytes) -> Any:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(line + b"\n")
    return json.loads(server.stdout.readline())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b'{"id":1,"method":"\xff"}', -32700),
        (b"[]", -32600),
        (b'{"id":1,"method":2}', -32600),
        (b'{"id":1,"method":"server/discover","params":{}}', -32601),
        (b'{"id":1,"method":"tools/call","params":{"name":"rm"}}', -32602),
        (b'{"id":1,"method":"tools/call","params":{"name":"context","arguments":[]}}', -32602),
        (b'{"id":1,"method":"tools/call"}', -32602),
    ],
)
async def test_wrong_message_gets_an_error_and_the_next_one_an_answer(
    server: subprocess.Popen[bytes], line: bytes, code: int
) -> None:
    assert exchange(server, line)["error"]["code"] == code
    assert server.stdin is not None
    server.stdin.write(b'\n{"method":"notifications/initialized"}\n{"id":3,"result":{}}\n')
    assert exchange(server, b'{"id":"a","method":"ping"}')["result"] == {}
    server.communicate()
    assert server.returncode == 0


async def test_server_is_small(server: subprocess.Popen[bytes]) -> None:
    """`bench/agent_tools.py` measures how fast it starts."""
    hello = b'{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'
    assert exchange(server, hello)["result"]["protocolVersion"] == "2025-06-18"
    exchange(server, b'{"id":2,"method":"tools/list"}')
    assert psutil.Process(server.pid).memory_info().rss < MAX_MB << 20
    server.communicate()
