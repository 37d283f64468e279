"""Kilo CLI: how it differs from opencode, of which it is a fork."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.content import ToolCall
from brimline.agents.transcripts.source import Places
from brimline.context.events import Call
from brimline.sessions.files import detect_agent
from run.homes import home_of

Json = dict[str, Any]

FIXTURES = Path(__file__).parent.parent / "fixtures"
EXPORT = '{"info": {"id": "ses_1", "slug": "a", "version": "%s"}, "messages": []}'
STREAM = "tool-loop/stream-1.jsonl"


def database(path: Path, *tables: str) -> bytes:
    """Return the beginning of a database with these tables."""
    with closing(sqlite3.connect(path)) as opened:
        for table in tables:
            opened.execute(f"CREATE TABLE `{table}` (id text)")
    return path.read_bytes()[:4096]


@pytest.mark.parametrize("agent", ["kilo", "opencode"])
def test_fork_and_original_are_mistaken_for_each_other(agent: str, tmp_path: Path) -> None:
    own = ("kilo_board", "workspace") if agent == "kilo" else ("session", "message")
    heads = {
        "transcript": database(tmp_path / "a.db", *own),
        "stream": (FIXTURES / agent / STREAM).read_bytes(),
    }
    for form, head in heads.items():
        assert detect_agent(head, "a") == (agent, form)
    export = EXPORT % ("7.7.9" if agent == "kilo" else "1.18.34")
    assert detect_agent(export.encode(), "a") == (agent, "transcript")
    session = json.dumps(json.loads(export)["info"], indent=2)
    assert detect_agent(session.encode(), "a") == (agent, "transcript")


VERSION = {"package": "vite", "version": "7.0.0"}
TABLE = "CREATE TABLE `kilo_board` (id text)"
PART = {"part": {"id": "prt_1", "sessionID": "ses_1"}}


@pytest.mark.parametrize("of_tool", [VERSION, {"text": TABLE}, PART])
def test_content_of_a_session_is_taken_for_a_mark(of_tool: Json, tmp_path: Path) -> None:
    """What a tool was given, or wrote, may look like what only Kilo CLI writes."""
    info = {"id": "ses_1", "model": {"id": "m"}, "version": "1.18.34"}
    part = {"type": "tool", "tool": "x", "state": {"input": of_tool}}
    export = {"info": info, "messages": [{"info": {"role": "user"}, "parts": [part]}]}
    assert detect_agent(json.dumps(export).encode(), "a") == ("opencode", "transcript")
    use = {"type": "tool_use", "sessionID": "ses_1", "part": {"id": "prt_1", **part}}
    assert detect_agent(json.dumps(use).encode(), "a") == ("opencode", "stream")
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened, opened:
        opened.execute("CREATE TABLE session (id text)")
        opened.execute("CREATE TABLE message (data text)")
        opened.execute("INSERT INTO message VALUES (?)", (json.dumps(of_tool),))
    data = (tmp_path / "a.db").read_bytes()
    assert detect_agent(data, "a") == ("opencode", "transcript")


def test_settings_of_another_client_count(tmp_path: Path) -> None:
    """Its own configuration goes before opencode's, a variable before both."""

    def write(path: str, reserved: int) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"compaction": {"reserved": reserved}}))

    def reserve(env: dict[str, str] | None = None) -> int | None:
        places = Places(tmp_path, env or {})
        return get_agent("kilo").source.settings(places, str(tmp_path / "p")).input_reserve

    write(".config/opencode/opencode.json", 1)
    assert reserve() is None
    write(".config/kilo/kilo.json", 2)
    assert reserve() == 2
    write("p/.kilo/kilo.jsonc", 3)
    assert reserve() == 3
    assert reserve({"KILO_CONFIG_CONTENT": '{"compaction": {"reserved": 4}}'}) == 4
    assert reserve({"OPENCODE_CONFIG_CONTENT": '{"compaction": {"reserved": 5}}'}) == 3


@pytest.mark.parametrize(
    ("tool", "server"), [("board_post", ""), ("kilo_local_recall", ""), ("github_search", "github")]
)
def test_own_tool_is_one_of_a_server(tool: str, server: str) -> None:
    part = {"type": "tool", "tool": tool, "callID": "c", "state": {"status": "completed"}}
    record = {"info": {"role": "assistant"}, "parts": [part]}
    pieces = get_agent("kilo").content_reader().read_record(json.dumps(record).encode())
    assert [piece.server for piece in pieces if isinstance(piece, ToolCall)] == [server]


def test_cost_of_a_subagent_counts_twice(tmp_path: Path) -> None:
    """The cost of a message includes that of the subagent that it started: it is not used."""
    home = home_of("kilo", "subagent", tmp_path)
    agent = get_agent("kilo")
    transcripts = list(agent.transcripts(Places(home, {})))
    events = [event for one in transcripts for event in agent.source.read(one)]
    calls = [event for event in events if isinstance(event, Call)]
    assert len(transcripts) == 2
    assert [call.cost for call in calls] == [None] * 4
