"""What leaves a machine: figures and names, and nothing else unless a setting allows it."""

import asyncio
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

from brimline.context.inbox import Message
from brimline.daemon.uplink.outbox import Outbox
from brimline.daemon.uplink.privacy import project_name
from brimline.settings import UplinkSettings
from brimline.store.base import (
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    Write,
)
from brimline.store.rows import (
    CallRow,
    CompactionRow,
    HandoffRow,
    SessionRow,
    SignalRow,
    ThreadRow,
)
from brimline.store.sqlite import SqliteStore

SECRET = "Geheimnis"
# Fields with ids and names, which are sent. A new text field must be added here, or is a secret.
NAMES = {
    SessionRow: {"id", "agent", "model", "version", "parent", "became", "manager_id"},
    ThreadRow: {"session", "thread", "source", "state", "model"},
    CallRow: {"session", "thread", "call", "model"},
    CompactionRow: {"session", "thread", "trigger", "model", "version"},
    SignalRow: {"session", "thread", "kind"},
    HandoffRow: {"id", "session", "sha256", "author"},
    Message: {"id", "session", "urgency", "state"},
}
FIXED = {"session": "s", "id": "s", "kind": "level", "urgency": "sequential", "state": "delivered"}


def row_full_of_secrets(kind: type[Any]) -> Any:
    """Return a row in which every text that is no name holds a secret."""
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if name in FIXED:
            values[name] = FIXED[name]
        elif hint in (str, str | None):
            values[name] = f"a {name}" if name in NAMES[kind] else f"/{name}/{SECRET} {name}"
        elif "int" in str(hint) or "float" in str(hint):
            values[name] = 7
        else:
            assert hint is bool, (kind, name, hint)
            values[name] = True
    return kind(**values)


def writes_of_a_session() -> list[Write]:
    rows = {kind: row_full_of_secrets(kind) for kind in NAMES}
    return [
        PutSession(rows[SessionRow]),
        PutThread(rows[ThreadRow]),
        PutCall(rows[CallRow]),
        PutCompaction(rows[CompactionRow]),
        RecordSignal(rows[SignalRow], (rows[Message],)),
        PutHandoff(rows[HandoffRow]),
        QueueMessage(msgspec.structs.replace(rows[Message], id="fleet-m")),
    ]


def sent_bytes(path: Path, writes: list[Write], **settings: Any) -> bytes:
    """Return what a machine with these rows sends."""

    async def collect() -> bytes:
        store = await SqliteStore.open(path)
        try:
            assert all(await store.write(writes))
            outbox = Outbox(store, UplinkSettings(**settings), "http://localhost")
            assert await outbox.begin_round() == 1
            parts = await outbox.next_batch(100, now=7.0)
            return msgspec.json.encode([part.outgoing for part in parts])
        finally:
            await store.close()

    return asyncio.run(collect())


def test_session_full_of_secrets_is_sent_without_them(tmp_path: Path) -> None:
    sent = sent_bytes(tmp_path / "x.db", writes_of_a_session(), projects="hash")
    assert SECRET.encode() not in sent
    for name in (b"a thread", b"a model", b"a call", b"a trigger", b"a author", b'"level"'):
        assert name in sent


def test_project_is_sent_by_its_name_and_a_title_if_allowed(tmp_path: Path) -> None:
    writes: list[Write] = [
        PutSession(SessionRow("s", "claude", 7.0, project=f"/home/{SECRET}/shop", title="Fix it")),
        PutThread(ThreadRow("s", "a1", 0, 1, "hook", "measured", title="Look at the tests")),
    ]
    plain = sent_bytes(tmp_path / "x.db", writes)
    assert b'"project":"shop"' in plain
    assert SECRET.encode() not in plain
    titled = sent_bytes(tmp_path / "y.db", writes, titles=True)
    for title in (b"Fix it", b"Look at the tests"):
        assert title not in plain
        assert title in titled


def test_branch_is_sent_by_its_name_or_as_a_hash_with_the_projects_path(tmp_path: Path) -> None:
    call = CallRow("s", "main", "c", 0, 0, 1, 1, 1, 1, branch="feature/shop")
    thread = ThreadRow("s", "main", 0, 1, "transcript", "measured", branch="feature/shop")

    def sent_branch(path: str, **settings: Any) -> object:
        writes: list[Write] = [PutSession(SessionRow("s", "claude", 7.0, project=path))]
        writes += [PutCall(call), PutThread(thread)]
        [sent] = msgspec.json.decode(sent_bytes(tmp_path / f"{len(path)}.db", writes, **settings))
        assert sent["threads"][0]["branch"] == sent["calls"][0]["branch"]
        return sent["calls"][0]["branch"]

    assert sent_branch("/a/shop") == "feature/shop"
    one, other = (sent_branch(path, projects="hash") for path in ("/bb/shop", "/ccc/shop"))
    assert one != other
    assert "shop" not in f"{one}{other}"


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b", "b"), ("/a/b/", "b"), ("b", "b"), ("/", None), ("", None)]
)
def test_name_of_a_project_is_the_last_part_of_its_path(path: str, name: str | None) -> None:
    assert project_name(path, "name") == name


def test_hash_of_a_project_is_that_of_its_whole_path() -> None:
    one, other = (project_name(path, "hash") for path in ("/a/shop", "/b/shop"))
    assert one != other
    assert one == project_name("/a/shop", "hash")
    assert project_name(None, "hash") is None
