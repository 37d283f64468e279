"""opencode: its database beside a live writer, its older storage, its exports, its stream."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.opencode.conversation import NOTHING as NO_CONTENT
from brimline.agents.opencode.conversation import OVERLAP_MS
from brimline.agents.opencode.database import PAGE, sessions
from brimline.agents.opencode.json_storage import MAX_MESSAGE_BYTES
from brimline.agents.opencode.paths import memory_files, transcripts
from brimline.agents.opencode.records import OpencodeTokens
from brimline.agents.opencode.transcript import usage_of
from brimline.agents.opencode.transcript_source import SOURCE, OpencodeStreamParser
from brimline.agents.transcripts.database import ask
from brimline.agents.transcripts.document import MAX_DOCUMENT_BYTES
from brimline.agents.transcripts.source import (
    MALFORMED,
    START,
    Cursor,
    Lookalike,
    Places,
    Source,
    Transcript,
)
from brimline.context import tracker
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Compacted,
    Ended,
    Rewound,
    SessionSeen,
    Trimmed,
    Unmetered,
)
from brimline.context.tracker import Session, fold, main_thread
from brimline.context.usage import Usage
from brimline.context.window import RegistryModel
from brimline.errors import UnexpectedJson, UnreadableTranscript

Json = dict[str, object]

SCHEMA = """
CREATE TABLE session (
    id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL,
    version text NOT NULL, revert text, summary_diffs text,
    time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE message (
    id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL
);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE TABLE part (
    id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL
);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
"""

WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "die":
        import os
        os._exit(1)
    database.execute(line)
    print("done", flush=True)
database.close()
"""


def tokens(sent: int, output: int = 5, reasoning: int = 0, read: int = 0, write: int = 0) -> Json:
    total = sent + output + reasoning + read + write
    row: Json = {"total": total, "input": sent, "output": output, "reasoning": reasoning}
    return {**row, "cache": {"read": read, "write": write}}


NOTHING = tokens(0, output=0)


def reply(sent: int = 10, /, **more: object) -> Json:
    """A finished reply."""
    times = {"created": 1_000, "completed": 1_500}
    row = {"role": "assistant", "modelID": "m", "tokens": tokens(sent), "finish": "stop"}
    return {**row, "time": times, "parentID": "msg_0", **more}


def prompt(**more: object) -> Json:
    """A prompt; its summary is an object."""
    return {"role": "user", "summary": {"diffs": []}, "time": {"created": 1}, **more}


class Database:
    """A database like opencode's, in its own folder."""

    def __init__(self, home: Path, name: str = "opencode.db") -> None:
        self.home = home
        self.path = home / ".local/share/opencode" / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.run("PRAGMA journal_mode = WAL")
        with closing(sqlite3.connect(self.path)) as opened:
            opened.executescript(SCHEMA)

    def run(self, statement: str, *values: object) -> None:
        """Run and commit one statement, then close the database."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as opened:
            opened.execute(statement, values)

    def session(self, id: str, parent: str | None = None, updated: int = 2_000) -> None:
        values = (id, parent, "/p", f"title of {id}", "1.18.18", None, None, 1_000, updated)
        self.run("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *values)

    def message(
        self, id: str, data: Json | str, session: str = "ses_1", updated: int = 1_000
    ) -> None:
        """Store a message or a new copy of it."""
        text = data if isinstance(data, str) else json.dumps(data)
        created = int("".join(c for c in id if c.isdigit()) or 0)
        values = (id, session, created, updated, text)
        self.run("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", *values)

    def part(self, id: str, message: str, data: object) -> None:
        values = (id, message, "ses_1", 1, 1, data)
        self.run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", *values)

    def transcript(self, session: str | None = "ses_1", thread: str = MAIN) -> Transcript:
        path = str(self.path)
        return Transcript("opencode", path, 0, 0, session=session, thread=thread)

    def files(self) -> dict[str, tuple[int, int]]:
        """Return names, sizes and times of the files in its folder."""
        return {
            entry.name: (entry.stat().st_size, entry.stat().st_mtime_ns)
            for entry in os.scandir(self.path.parent)
        }


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A database with one session of one prompt and two replies."""
    new_database = Database(tmp_path)
    new_database.session("ses_1")
    new_database.message("msg_1", prompt())
    new_database.message("msg_2", reply(10))
    new_database.message("msg_3", reply(20), updated=1_500)
    return new_database


@contextmanager
def writer(database: Database) -> Generator[tuple[IO[str], IO[str]], None, None]:
    """Another process that has the database open, as opencode has."""
    command = [sys.executable, "-c", WRITER, str(database.path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        to_process, from_process = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        from_process.readline()
        yield to_process, from_process
        to_process.close()


def tell(process: tuple[IO[str], IO[str]], statement: str) -> None:
    """Let the other process run a statement."""
    process[0].write(statement + "\n")
    process[0].flush()
    process[1].readline()


def read(transcript: Transcript, cursor: Cursor = START) -> tuple[list[AnyEvent], Cursor]:
    """Return all events after a cursor, and the next cursor."""
    reader = SOURCE.read(transcript, cursor)
    return list(reader), reader.cursor


def calls(events: Iterable[AnyEvent]) -> list[tuple[str, int]]:
    """Return id and sent tokens of each call."""
    return [(event.id, event.usage.sent) for event in events if isinstance(event, Call)]


def test_database_session_gives_itself_and_a_call_per_reply(database: Database) -> None:
    events, _ = read(database.transcript())
    seen, call, _ = events
    assert seen == SessionSeen(
        at=1.0,
        session="ses_1",
        agent="opencode",
        project="/p",
        version="1.18.18",
        title="title of ses_1",
        records_compactions=True,
    )
    assert call == Call(at=1.5, id="msg_2", model="m", usage=Usage(10, 0, 0, 5))
    assert calls(events) == [("msg_2", 10), ("msg_3", 20)]


def test_call_has_the_branch_of_the_sessions_workspace(database: Database) -> None:
    """Not every version has workspaces, and nearly no session is in one."""
    database.run("ALTER TABLE session ADD COLUMN workspace_id text")

    def branches() -> set[str | None]:
        return {e.branch for e in read(database.transcript())[0] if isinstance(e, Call)}

    assert branches() == {None}
    database.run("CREATE TABLE workspace (id text PRIMARY KEY, branch text)")
    database.run("INSERT INTO workspace VALUES ('wrk_1', 'opencode/brave-fox')")
    assert branches() == {None}
    database.run("UPDATE session SET workspace_id = 'wrk_1'")
    assert branches() == {"opencode/brave-fox"}


def test_output_includes_reasoning_and_held_is_the_total(database: Database) -> None:
    row = tokens(1, output=2, reasoning=3, read=4, write=5)
    database.message("msg_4", reply(tokens=row))
    (call,) = [e for e in read(database.transcript())[0] if isinstance(e, Call)][-1:]
    assert call.usage == Usage(1, 4, 5, 5, 3)
    assert call.usage.held == row["total"]


@pytest.mark.parametrize(
    ("provider", "cost", "window"),
    [
        pytest.param("openai", 0, 372_000, id="a ChatGPT plan"),
        pytest.param("openai", 0.25, 1_050_000, id="an API key"),
        pytest.param("github-copilot", 0, 1_050_000, id="another plan"),
    ],
)
def test_window_is_that_of_the_provider(
    database: Database, provider: str, cost: float, window: int
) -> None:
    """opencode 1.18.18 sets every price to 0 if a ChatGPT plan pays."""
    answer = reply(30, modelID="gpt-5.6-sol", providerID=provider, cost=cost)
    database.message("msg_4", answer, updated=1_600)
    session = fold(Session(), read(database.transcript())[0])
    reading = tracker.read(session, session.threads[MAIN], "transcript")
    assert reading.window is not None
    assert reading.window.tokens == window


def test_messages_from_before_their_session_are_copies_of_a_fork(database: Database) -> None:
    database.session("ses_2")
    copied = reply(10, time={"created": 500, "completed": 1_500})
    database.message("msg_8", copied, "ses_2")
    database.message("msg_9", reply(20), "ses_2")
    events, _ = read(database.transcript("ses_2"))
    copies = {event.id: event.is_copy for event in events if isinstance(event, Call)}
    assert copies == {"msg_8": True, "msg_9": False}


def test_running_or_failed_reply_is_no_call(database: Database) -> None:
    database.message("msg_4", reply(tokens=NOTHING, error={"name": "x"}))
    database.message("msg_5", {"role": "assistant"})
    assert len(calls(read(database.transcript())[0])) == 2


def test_reading_creates_no_file(database: Database) -> None:
    before = database.files()
    assert list(before) == ["opencode.db"]
    read(database.transcript())
    list(transcripts(Places(database.home, {})))
    assert database.files() == before


def test_committed_rows_of_a_writer_are_read_without_changing_files(database: Database) -> None:
    with writer(database) as process:
        tell(process, "UPDATE message SET time_updated = 9000 WHERE id = 'msg_3'")
        before = database.files()
        assert {"opencode.db", "opencode.db-wal", "opencode.db-shm"} == set(before)
        assert read(database.transcript())[1].offset == 9_000
        assert database.files() == before


def test_reader_neither_waits_for_nor_sees_an_open_transaction(database: Database) -> None:
    with writer(database) as process:
        tell(process, "BEGIN IMMEDIATE")
        tell(process, "UPDATE message SET time_updated = 9000 WHERE id = 'msg_3'")
        assert read(database.transcript())[1].offset == 1_500
        tell(process, "COMMIT")
        assert read(database.transcript())[1].offset == 9_000


def test_writer_can_write_and_checkpoint_during_a_read(database: Database) -> None:
    with writer(database) as process:
        tell(process, "UPDATE message SET time_updated = 1001 WHERE id = 'msg_1'")
        reader = iter(SOURCE.read(database.transcript()))
        next(reader)
        next(reader)
        tell(process, "UPDATE message SET time_updated = 9000 WHERE id = 'msg_3'")
        tell(process, "PRAGMA wal_checkpoint(TRUNCATE)")
        assert database.files()["opencode.db-wal"][0] == 0
        assert len(list(reader)) == 1


def test_log_of_a_dead_writer_is_read_with_and_without_its_index(database: Database) -> None:
    with writer(database) as process:
        tell(process, "UPDATE message SET time_updated = 9000 WHERE id = 'msg_3'")
        tell(process, "die")
    assert read(database.transcript())[1].offset == 9_000
    database.path.with_name("opencode.db-shm").unlink()
    before = database.files()
    assert "opencode.db-wal" in before
    assert read(database.transcript())[1].offset == 9_000
    assert database.files() == before


def test_reads_beside_a_fast_writer_never_fail_or_go_back(database: Database) -> None:
    flood = """
import select, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA wal_autocheckpoint = 20")
print("ready", flush=True)
number = 2000
while not select.select([sys.stdin], [], [], 0)[0]:
    number += 1
    database.execute("BEGIN")
    for id in ("msg_1", "msg_2", "msg_3"):
        database.execute("UPDATE message SET time_updated = ? WHERE id = ?", (number, id))
    database.execute("COMMIT")
"""
    query = "SELECT min(time_updated), max(time_updated) FROM message"
    last, changes = 0, 0
    with subprocess.Popen(
        [sys.executable, "-c", flood, str(database.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        cast("IO[bytes]", process.stdout).readline()
        while changes < 100:
            low, high = ask(str(database.path), lambda opened: opened.execute(query).fetchone())
            assert low == high or high < 2000
            assert high >= last
            last, changes = high, changes + (high > last)
        cast("IO[bytes]", process.stdin).close()


def test_endless_torn_reads_are_an_error(database: Database) -> None:
    times = iter(range(2, 9))

    def query(opened: sqlite3.Connection) -> list[tuple[int]]:
        os.utime(database.path, (1, next(times)))
        return opened.execute("SELECT 1").fetchall()

    with pytest.raises(UnreadableTranscript, match="changes faster"):
        ask(str(database.path), query)
    assert ask(str(database.path), lambda opened: opened.execute("SELECT 1").fetchall()) == [(1,)]


def test_error_during_a_change_is_retried(database: Database) -> None:
    times = iter(range(2, 9))

    def query(opened: sqlite3.Connection) -> list[tuple[int]]:
        if next(times) < 4:
            os.utime(database.path, (1, next(times)))
            opened.execute("SELECT x")
        return opened.execute("SELECT 1").fetchall()

    assert ask(str(database.path), query) == [(1,)]


def test_unexpected_sqlite_error_keeps_its_message(database: Database) -> None:
    with pytest.raises(UnreadableTranscript, match="Incorrect number of bindings"):
        ask(str(database.path), lambda opened: opened.execute("SELECT ?"))


def test_locked_database_is_an_error_within_a_second(database: Database) -> None:
    database.run("PRAGMA journal_mode = DELETE")
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("PRAGMA cache_size = 0")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE message SET time_updated = 9000")
        waits_ms: list[int] = []

        def query(opened: sqlite3.Connection) -> None:
            waits_ms.append(opened.execute("PRAGMA busy_timeout").fetchone()[0])
            opened.execute("SELECT * FROM message")

        with pytest.raises(UnreadableTranscript, match="locked by its writer"):
            ask(str(database.path), query)
        assert 0 < sum(waits_ms) < 1_000
        with pytest.raises(UnreadableTranscript, match="locked by its writer") as raised:
            read(database.transcript())
        assert raised.value.hint == "Try again later."
        (listed,) = transcripts(Places(database.home, {}))
        assert (listed.session, listed.path) == (None, str(database.path))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("DROP TABLE session", "no such table: session"),
        ("DROP TABLE message", "no such table: message"),
        ("ALTER TABLE message RENAME COLUMN data TO content", "no such column: data"),
    ],
)
def test_unexpected_tables_are_an_error_with_a_hint(
    database: Database, change: str, reason: str
) -> None:
    database.run(change)
    with pytest.raises(UnreadableTranscript, match=reason) as raised:
        read(database.transcript())
    assert "Start the client once" in str(raised.value)


def test_optional_columns_may_be_missing(database: Database) -> None:
    for column in ("parent_id", "directory", "title", "version", "revert", "time_updated"):
        database.run(f"ALTER TABLE session DROP COLUMN {column}")
    seen, *_ = read(database.transcript())[0]
    assert seen == SessionSeen(at=1.0, session="ses_1", agent="opencode", records_compactions=True)
    (listed,) = transcripts(Places(database.home, {}))
    assert listed.modified == pytest.approx(database.path.stat().st_mtime)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"SQLite format 3\0" + bytes(range(256)) * 20, "not a database"),
        (b"", "no such table"),
    ],
)
def test_file_that_is_no_database_is_listed_and_an_error_when_read(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (listed,) = transcripts(Places(tmp_path, {}))
    with pytest.raises(UnreadableTranscript, match=reason):
        SOURCE.read(listed)


def test_overwritten_page_is_an_error(database: Database) -> None:
    rows = [(f"msg_{n}", "ses_1", n, 1_000, json.dumps(reply(n))) for n in range(4, 400)]
    with closing(sqlite3.connect(database.path)) as opened:
        opened.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?)", rows)
        opened.commit()
    data = bytearray(database.path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    database.path.write_bytes(data)
    with pytest.raises(UnreadableTranscript, match=r"damaged|tables"):
        read(database.transcript())


def test_folder_pipe_or_missing_database_is_an_error(tmp_path: Path, database: Database) -> None:
    for path in (tmp_path, tmp_path / "none.db"):
        with pytest.raises(UnreadableTranscript):
            sessions(str(path))
        with pytest.raises(UnreadableTranscript):
            SOURCE.read(Transcript("opencode", str(path), 0, 0))
    pipe = tmp_path / "pipe.db"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableTranscript, match="not a file"):
        sessions(str(pipe))
    with pytest.raises(UnreadableTranscript, match="no session 'ses_9'"):
        SOURCE.read(database.transcript("ses_9"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_database_in_a_read_only_folder_is_read_and_an_unreadable_one_an_error() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        database = Database(Path(folder))
        database.session("ses_1")
        with somebody_else():
            assert len(sessions(str(database.path))) == 1
        with writer(database) as process:
            tell(process, "UPDATE session SET time_updated = 9000")
            with somebody_else():
                assert sessions(str(database.path))[0].time.updated == 9_000
            tell(process, "die")
        database.path.with_name("opencode.db-shm").unlink()
        with somebody_else():
            assert sessions(str(database.path))[0].time.updated == 9_000
        database.path.chmod(0o600)
        with somebody_else(), pytest.raises(UnreadableTranscript):
            sessions(str(database.path))


@contextmanager
def somebody_else() -> Generator[None, None, None]:
    """Drop our privileges for a while."""
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_only_changed_messages_are_read_again(database: Database) -> None:
    running = reply(tokens=NOTHING, finish=None)
    database.message("msg_4", running, updated=2_000)
    events, cursor = read(database.transcript())
    assert len(calls(events)) == 2
    assert read(database.transcript(), cursor)[0] == []
    database.message("msg_4", reply(30), updated=2_500)
    events, cursor = read(database.transcript(), cursor)
    assert calls(events) == [("msg_4", 30)]
    assert isinstance(events[0], Call)
    assert read(database.transcript(), cursor)[0] == []


def test_row_with_an_earlier_time_is_not_missed(database: Database) -> None:
    _, cursor = read(database.transcript())
    assert cursor.offset == 1_500
    database.message("msg_4", reply(30), updated=1_400)
    assert calls(read(database.transcript(), cursor)[0]) == [("msg_4", 30)]


def test_messages_before_the_overlap_are_not_fetched(database: Database) -> None:
    database.message("msg_4", reply(30), updated=1_500 + 2 * OVERLAP_MS)
    _, cursor = read(database.transcript())
    reader = SOURCE.read(database.transcript(), cursor)
    assert list(reader) == []
    assert reader.tally.records == 0


def test_following_a_growing_session_gives_the_same_as_one_read(database: Database) -> None:
    cursor, followed = START, Session()
    for number in range(4, 12):
        summary = number == 8
        data = reply(number * 10_000, summary=summary or None)
        database.message(f"msg_{number:02}", data, updated=number * OVERLAP_MS)
        events, cursor = read(database.transcript(), cursor)
        followed = fold(followed, events)
    assert followed == fold(Session(), read(database.transcript())[0])


def test_long_session_is_read_in_order(database: Database) -> None:
    rows = [
        (f"msg_{n}", "ses_1", n, 5_000_000 - n, json.dumps(reply(n)))
        for n in range(4, 2 * PAGE + 4)
    ]
    with closing(sqlite3.connect(database.path)) as opened:
        opened.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?)", rows)
        opened.commit()
    read_calls = calls(read(database.transcript())[0])
    assert read_calls == [
        ("msg_2", 10),
        ("msg_3", 20),
        *((f"msg_{n}", n) for n in range(4, 2 * PAGE + 4)),
    ]


def test_malformed_messages_are_counted_and_the_rest_read(database: Database) -> None:
    database.message("msg_4", {"role": "robot"})
    database.message("msg_5", '{"role": "assist')
    database.message("msg_6", reply(tokens={"input": 1}))
    database.message("msg_7", reply(tokens=tokens(-1)))
    database.run("UPDATE message SET data = 5 WHERE id = 'msg_1'")
    database.run("INSERT INTO message VALUES ('msg_8', 'ses_1', 'x', 'y', x'ff')")
    database.message("msg_9", reply(30))
    reader = SOURCE.read(database.transcript())
    assert calls(reader)[-1] == ("msg_9", 30)
    assert (reader.tally.records, reader.tally.unknown, reader.tally.malformed) == (9, 1, 5)
    assert "msg_5" in " ".join(reader.tally.places)


def compaction(database: Database, **more: object) -> None:
    """A compaction requested by msg_4 and answered by msg_5."""
    database.message("msg_4", prompt())
    database.part("prt_1", "msg_4", json.dumps({"type": "compaction", "auto": True}))
    database.part("prt_2", "msg_4", "{")
    database.part("prt_3", "msg_4", 7)
    row = {"summary": True, "mode": "compaction", "parentID": "msg_4", **more}
    database.message("msg_5", reply(900, **row))


def test_context_after_a_compaction_is_unknown_and_its_summary_call_apart(
    database: Database,
) -> None:
    compaction(database)
    events, cursor = read(database.transcript())
    assert events[-3:] == [
        Call(at=1.5, id="msg_5", model="m", usage=Usage(900, 0, 0, 5), thread="compaction"),
        Ended(at=1.5, thread="compaction"),
        Compacted(at=1.5, trigger="auto"),
    ]
    thread = main_thread(fold(Session(), events))
    assert thread is not None
    assert (thread.current, len(thread.calls), thread.peak_sent) == (None, 2, 20)
    compaction_again = reply(900, summary=True, parentID="msg_4", cost=1)
    database.message("msg_5", compaction_again, updated=2_000)
    assert [type(e) for e in read(database.transcript(), cursor)[0]] == [Call]


@pytest.mark.parametrize(
    "more",
    [
        {"error": {"name": "MessageAbortedError"}},
        {"finish": None, "time": {"created": 1}, "tokens": NOTHING},
    ],
)
def test_failed_or_running_compaction_is_none(database: Database, more: Json) -> None:
    compaction(database, **more)
    events, _ = read(database.transcript())
    assert not [e for e in events if isinstance(e, Compacted)]


def test_compaction_of_a_subagent_ends_only_its_own_cycle(database: Database) -> None:
    database.session("ses_2", parent="ses_1")
    database.message("msg_6", reply(5, summary=True, parentID=None), session="ses_2")
    events, _ = read(database.transcript("ses_1", "ses_2"))
    of_threads = [e for e in events[1:] if not isinstance(e, (SessionSeen, Unmetered))]
    assert [(type(e), e.thread) for e in of_threads] == [
        (Call, "ses_2/compaction"),
        (Ended, "ses_2/compaction"),
        (Compacted, "ses_2"),
    ]
    assert events[-1] == Compacted(at=1.5, thread="ses_2")


def test_undo_goes_back_to_the_call_before_and_redo_forward(database: Database) -> None:
    _, cursor = read(database.transcript())
    for revert, to in (('{"messageID":"msg_3"}', "msg_2"), ('{"messageID":"msg_1"}', None)):
        database.run("UPDATE session SET revert = ?", revert)
        events, cursor = read(database.transcript(), cursor)
        assert events == [Rewound(to=to)]
        assert read(database.transcript(), cursor)[0] == []
    database.run("UPDATE session SET revert = '{'")
    assert read(database.transcript(), cursor)[0] == [Rewound(to="msg_3")]


def test_undo_behind_a_compaction_is_unknown(database: Database) -> None:
    compaction(database)
    database.message("msg_6", '{"role": 1}')
    database.run("UPDATE session SET revert = ?", '{"messageID":"msg_7"}')
    assert read(database.transcript())[0][-1] == Trimmed()


def test_changed_title_is_reported(database: Database) -> None:
    _, cursor = read(database.transcript())
    database.run("UPDATE session SET title = 'new'")
    (seen,) = read(database.transcript(), cursor)[0]
    assert isinstance(seen, SessionSeen)
    assert seen.title == "new"


def test_child_sessions_are_threads_of_their_root_at_any_depth(database: Database) -> None:
    database.session("ses_2", parent="ses_1", updated=5_000)
    database.session("ses_3", parent="ses_2")
    database.session("ses_4", parent="ses_gone")
    database.session("ses_5", parent="ses_5")
    listed = {(t.session, t.thread): t for t in transcripts(Places(database.home, {}))}
    assert set(listed) == {
        ("ses_1", MAIN),
        ("ses_1", "ses_2"),
        ("ses_1", "ses_3"),
        ("ses_gone", "ses_4"),
        ("ses_5", MAIN),
    }
    child = listed["ses_1", "ses_2"]
    assert (child.modified, child.project, child.size) == (5.0, "/p", 0)
    assert next(iter(SOURCE.read(child))) == SessionSeen(
        at=1.0,
        session="ses_1",
        agent="opencode",
        project="/p",
        version="1.18.18",
        records_compactions=True,
    )


def test_session_must_be_named_if_the_database_has_several(database: Database) -> None:
    assert len(calls(read(database.transcript(None))[0])) == 2
    database.session("ses_2")
    with pytest.raises(UnreadableTranscript, match=r"2 sessions[\s\S]*ses_1"):
        SOURCE.read(database.transcript(None))
    database.run("DELETE FROM session")
    with pytest.raises(UnreadableTranscript, match="0 sessions"):
        SOURCE.read(database.transcript(None))


def test_databases_are_listed_by_channel_and_variables(database: Database, tmp_path: Path) -> None:
    shutil.copy(database.path, database.path.with_name("opencode-dev.db"))
    assert len(list(transcripts(Places(tmp_path, {})))) == 2
    assert len(list(transcripts(Places(tmp_path, {"OPENCODE_DB": "opencode-dev.db"})))) == 1
    assert list(transcripts(Places(tmp_path, {"OPENCODE_DB": ":memory:"}))) == []
    elsewhere = {"XDG_DATA_HOME": str(tmp_path / "else")}
    assert list(transcripts(Places(tmp_path, elsewhere))) == []


def stored(path: Path, data: Json | bytes, at: float = 1.0) -> Path:
    """Write a file of the older storage."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data, indent=2).encode())
    os.utime(path, (at, at))
    return path


def info(id: str, **more: object) -> Json:
    return {"id": id, "version": "0.9", "directory": "/p", "title": "t", "time": {}, **more}


@pytest.mark.parametrize("layout", ["storage", "project/p/storage"])
def test_both_layouts_of_the_older_storage_are_followed(tmp_path: Path, layout: str) -> None:
    root = tmp_path / ".local/share/opencode" / layout
    old = layout != "storage"
    own = root / "session" / ("info" if old else "hash") / "ses_1.json"
    messages = root / ("session/message" if old else "message") / "ses_1"
    parts = root / ("session/part/ses_1" if old else "part") / "msg_2"
    stored(own, info("ses_1"))
    stored(own.with_name("ses_2.json"), info("ses_2", parentID="ses_1"))
    stored(own.with_name("ses_3.json"), b"{")
    stored(messages / "msg_1.json", reply(10, id="msg_1"))
    stored(messages / "msg_2.json", prompt(id="msg_2"))
    stored(parts / "prt_1.json", {"type": "compaction", "auto": False})
    stored(parts / "prt_2.json", b"{")
    stored(messages / "msg_3.json", reply(10, summary=True, parentID="msg_2"))
    listed = {(t.session, t.thread): t for t in transcripts(Places(tmp_path, {}))}
    assert set(listed) == {("ses_1", MAIN), ("ses_1", "ses_2")}
    events, cursor = read(listed["ses_1", MAIN])
    assert [type(e) for e in events] == [SessionSeen, Call, Call, Ended, Compacted]
    assert events[-1] == Compacted(at=1.5, trigger="manual")
    stored(messages / "msg_4.json", reply(20), at=2.0)
    assert calls(read(listed["ses_1", MAIN], cursor)[0]) == [("msg_4", 20)]


def test_session_in_database_and_older_storage_is_listed_once(database: Database) -> None:
    root = database.path.parent / "storage/session/hash"
    stored(root / "ses_1.json", info("ses_1"))
    stored(root / "ses_0.json", info("ses_0"))
    listed = [t.session for t in transcripts(Places(database.home, {}))]
    assert listed == ["ses_1", "ses_0"]


def test_malformed_files_of_the_older_storage_are_counted(tmp_path: Path) -> None:
    own = stored(tmp_path / "storage/session/hash/ses_1.json", info("ses_1"))
    large = stored(tmp_path / "storage/message/ses_1/msg_1.json", b"")
    os.truncate(large, MAX_MESSAGE_BYTES + 1)
    stored(tmp_path / "storage/message/ses_1/msg_2.json", b"{")
    (large.parent / "msg_3.json").symlink_to(tmp_path / "nowhere")
    reader = SOURCE.read(Transcript("opencode", str(own), 0, 0))
    assert [type(e) for e in reader] == [SessionSeen]
    assert reader.tally.malformed == 2
    stored(own, b'{"id": "ses_1", "title": 5}')
    with pytest.raises(UnreadableTranscript, match="not an opencode session"):
        SOURCE.read(Transcript("opencode", str(own), 0, 0))


def exported(path: Path, *entries: object, **more: object) -> Transcript:
    document = {"info": info("ses_1", **more), "messages": list(entries)}
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return Transcript("opencode", str(path), 0, 0)


def entry(message: Json, *parts: Json) -> Json:
    return {"info": message, "parts": list(parts)}


def test_compaction_after_an_overflow_says_so(tmp_path: Path) -> None:
    request: Json = {"type": "compaction", "auto": True, "overflow": True}
    transcript = exported(
        tmp_path / "x.json",
        entry(prompt(id="msg_3"), request),
        entry(reply(50, id="msg_4", summary=True, parentID="msg_3")),
    )
    events, _ = read(transcript)
    compaction = Compacted(at=1.5, trigger="auto", overflow=True)
    assert [e for e in events if isinstance(e, Compacted)] == [compaction]


def test_export_gives_the_events_of_the_database_once(tmp_path: Path) -> None:
    finish: Json = {"type": "step-finish", "id": "prt_1", "tokens": tokens(10)}
    compaction_part: Json = {"type": "compaction", "auto": True}
    transcript = exported(
        tmp_path / "x.json",
        entry(prompt(id="msg_1"), {"type": "text"}),
        entry(reply(10, id="msg_2"), {"type": "step-start"}, finish),
        entry(prompt(id="msg_3"), compaction_part),
        entry(reply(50, id="msg_4", summary=True, parentID="msg_3")),
        entry(reply(7)),
    )
    events, cursor = read(transcript)
    assert calls(events) == [("msg_2", 10), ("msg_4", 50), ("4", 7)]
    assert [e for e in events if isinstance(e, Compacted)] == [Compacted(at=1.5, trigger="auto")]
    assert read(transcript, cursor) == ([], cursor)


def test_each_step_of_a_message_is_a_call(tmp_path: Path) -> None:
    steps: list[Json] = [
        {"type": "step-finish", "id": f"prt_{n}", "tokens": tokens(n * 10)} for n in (1, 2, 3)
    ]
    events, _ = read(exported(tmp_path / "x.json", entry(reply(30, id="msg_1"), *steps)))
    assert calls(events) == [("msg_1", 10), ("prt_2", 20), ("prt_3", 30)]


def content_records(transcript: Transcript) -> list[tuple[Json, list[AnyEvent]]]:
    """Return each record's content, without the ones that have events alone."""
    return [
        (json.loads(record.data), list(record.events))
        for record in SOURCE.records(transcript)
        if record.data != NO_CONTENT
    ]


def texts_of(record: Json) -> list[object]:
    return [part.get("text") for part in cast("list[Json]", record["parts"])]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def test_database_gives_a_record_per_message_with_the_events_of_a_read(database: Database) -> None:
    database.part("prt_8", "msg_1", json.dumps(text("two")))
    database.part("prt_7", "msg_1", json.dumps(text("one")))
    database.part("prt_9", "msg_3", json.dumps(text("three")))
    database.part("prt_91", "msg_3", "{")
    compaction(database)
    found = content_records(database.transcript())
    assert [texts_of(record) for record, _ in found] == [["one", "two"], [], ["three"], [None], []]
    assert [calls(events) for _, events in found[:3]] == [[], [("msg_2", 10)], [("msg_3", 20)]]
    every = [event for record in SOURCE.records(database.transcript()) for event in record.events]
    assert every == read(database.transcript())[0]


def test_records_of_a_long_session_are_complete_and_in_order(database: Database) -> None:
    for number in range(1, PAGE + 3):
        database.part(f"prt_{number:06}", "msg_1", json.dumps(text(str(number))))
    (first, _), *_ = content_records(database.transcript())
    assert texts_of(first) == [str(number) for number in range(1, PAGE + 3)]
    assert len(content_records(database.transcript())) == 3


def test_undo_is_the_last_record(database: Database) -> None:
    revert = json.dumps({"messageID": "msg_3"})
    database.run("UPDATE session SET revert = ?", revert)
    *_, last = SOURCE.records(database.transcript())
    assert (last.data, last.events) == (NO_CONTENT, (Rewound(to="msg_2"),))


def test_older_storage_gives_a_record_per_message(tmp_path: Path) -> None:
    root = tmp_path / "storage"
    own = stored(root / "session/hash/ses_1.json", info("ses_1"))
    stored(root / "message/ses_1/msg_2.json", reply(10))
    stored(root / "message/ses_1/msg_1.json", prompt())
    stored(root / "message/ses_1/msg_0.json", b"{")
    stored(root / "part/msg_1/prt_2.json", text("two"))
    stored(root / "part/msg_1/prt_1.json", text("one"))
    found = content_records(Transcript("opencode", str(own), 0, 0))
    assert [texts_of(record) for record, _ in found] == [["one", "two"], []]
    assert [calls(events) for _, events in found] == [[], [("msg_2", 10)]]


def test_each_step_of_a_message_is_a_record(tmp_path: Path) -> None:
    """The parts of a step belong to its call; what follows the last step, to the last call."""
    parts: list[Json] = []
    for n in (1, 2):
        finish: Json = {"type": "step-finish", "id": f"prt_{n}", "tokens": tokens(n * 10)}
        parts += [text(str(n)), finish]
    found = content_records(
        exported(tmp_path / "x.json", entry(reply(20, id="msg_1"), *parts, text("end")), {}, 5)
    )
    assert [texts_of(record) for record, _ in found] == [["1", None], ["2", None, "end"]]
    assert [calls(events) for _, events in found] == [[("msg_1", 10)], [("prt_2", 20)]]


def test_steps_in_the_database_are_calls_by_the_ids_of_their_parts(database: Database) -> None:
    for n in (1, 2):
        finish = {"type": "step-finish", "tokens": tokens(n * 10)}
        database.part(f"prt_{n}", "msg_3", json.dumps(finish))
    found = content_records(database.transcript())
    assert [calls(events) for _, events in found[2:]] == [[("msg_3", 10)], [("prt_2", 20)]]


def test_failed_reply_has_no_content_and_an_aborted_one_has(tmp_path: Path) -> None:
    """The client leaves a failed reply out of later prompts."""
    failed = reply(10, id="msg_1", error={"name": "APIError"})
    aborted = reply(10, id="msg_2", error={"name": "MessageAbortedError"})
    transcript = exported(tmp_path / "x.json", entry(failed, text("a")), entry(aborted, text("b")))
    assert [texts_of(record) for record, _ in content_records(transcript)] == [["b"]]
    assert calls(e for r in SOURCE.records(transcript) for e in r.events) == [
        ("msg_1", 10),
        ("msg_2", 10),
    ]


@pytest.mark.parametrize(("kept_from", "kept_records"), [("msg_2", 2), (None, None), ("x", None)])
def test_compaction_says_how_many_records_it_kept(
    tmp_path: Path, kept_from: str | None, kept_records: int | None
) -> None:
    request: Json = {"type": "compaction", "auto": True}
    if kept_from is not None:
        request["tail_start_id"] = kept_from
    transcript = exported(
        tmp_path / "x.json",
        entry(reply(10, id="msg_1"), text("a")),
        entry(reply(10, id="msg_2"), text("b")),
        entry(prompt(id="msg_3"), request),
        entry(reply(50, id="msg_4", summary=True, parentID="msg_3"), text("c")),
    )
    assert content_records(transcript)[-1][0].get("keptRecords") == kept_records


def test_truncated_export_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"info": {"id": "ses_1"', encoding="utf-8")
    assert list(SOURCE.records(Transcript("opencode", str(path), 0, 0))) == []


def test_memory_files_are_those_of_the_first_name_up_to_the_repository(tmp_path: Path) -> None:
    project = tmp_path / "above/repository/project"
    (project.parent / ".git").mkdir(parents=True)
    names = ("AGENTS.md", "../AGENTS.md", "../../AGENTS.md", "CLAUDE.md")
    for name in names:
        stored(project / name, b"Be brief.")
    user = stored(tmp_path / ".claude/CLAUDE.md", b"Be brief.")
    places = Places(tmp_path, {})
    own = [project / "AGENTS.md", project.parent / "AGENTS.md"]
    assert memory_files(places, str(project)) == [str(file) for file in (user, *own)]
    (project / "AGENTS.md").unlink()
    (project.parent / "AGENTS.md").unlink()
    user = stored(tmp_path / ".config/opencode/AGENTS.md", b"Be brief.")
    assert memory_files(places, str(project)) == [str(user), str(project / "CLAUDE.md")]
    assert memory_files(places, None) == [str(user)]


def test_export_can_be_read_from_stdin_but_not_a_database(
    tmp_path: Path, database: Database
) -> None:
    transcript = exported(tmp_path / "x.json", entry(reply(10, id="msg_1")))
    data = Path(transcript.path).read_bytes()
    assert list(SOURCE.parse(BytesIO(data))) == read(transcript)[0]
    with pytest.raises(UnreadableTranscript, match="it is an opencode database"):
        SOURCE.parse(database.path.open("rb"))


def test_source_satisfies_the_protocol_and_is_registered() -> None:
    source: Source = SOURCE
    assert source.agent == "opencode"
    assert isinstance(source.stream(), OpencodeStreamParser)


def test_malformed_entries_of_an_export_are_counted_by_number(tmp_path: Path) -> None:
    transcript = exported(
        tmp_path / "x.json", {"info": 1}, entry({"role": "robot"}), entry(reply(5, id="msg_1"))
    )
    reader = SOURCE.read(transcript)
    assert calls(reader) == [("msg_1", 5)]
    assert (reader.tally.unknown, reader.tally.malformed) == (1, 1)
    assert reader.tally.places[0].startswith("message 0")


def test_truncated_export_is_malformed_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"info": {"id": "ses_1"}, "mess', encoding="utf-8")
    reader = SOURCE.read(Transcript("opencode", str(path), 0, 0))
    assert (list(reader), reader.tally.malformed, reader.cursor) == ([], 1, START)
    os.truncate(path, MAX_DOCUMENT_BYTES + 1)
    with pytest.raises(UnreadableTranscript, match="256 MiB"):
        list(SOURCE.read(Transcript("opencode", str(path), 0, 0)))


def step(message: str, id: str, sent: int, **more: object) -> Json:
    row = {"id": id, "messageID": message, "type": "step-finish", "tokens": tokens(sent)}
    line: Json = {"type": "step_finish", "timestamp": 1500, "sessionID": "ses_1", "part": row}
    return {**line, **more}


def feed(lines: Iterable[Json]) -> list[AnyEvent]:
    parser = OpencodeStreamParser()
    return [e for line in lines for e in parser.feed(json.dumps(line).encode()) or ()]


@pytest.mark.parametrize(("cost", "dollars"), [(0.125, 0.125), (0, None), (None, None)])
def test_call_has_the_cost_that_opencode_computed(
    database: Database, cost: float | None, dollars: float | None
) -> None:
    """opencode writes 0 for a model without a price."""
    part = {"id": "prt_1", "messageID": "msg_1", "type": "step-finish", "tokens": tokens(30)}
    line = step("msg_1", "prt_1", 30, part={**part, "cost": cost})
    streamed = [event.cost for event in feed([line]) if isinstance(event, Call)]
    database.message("msg_4", reply(30, cost=cost), updated=1_600)
    stored = [e.cost for e in read(database.transcript())[0] if isinstance(e, Call)]
    assert streamed == stored[-1:] == [dollars]


CONTINUE: Json = {
    "type": "text",
    "timestamp": 1500,
    "sessionID": "ses_1",
    "part": {"messageID": "msg_4", "metadata": {"compaction_continue": True}},
}

STREAM: list[Json] = [
    {"type": "step_start", "sessionID": "ses_1", "part": {}},
    step("msg_1", "prt_1", 10),
    {"type": "text", "sessionID": "ses_1", "part": {"text": "hello"}},
    step("msg_2", "prt_2", 20),
    step("msg_2", "prt_3", 25),
    {"type": "tool_use", "sessionID": "ses_1", "part": 1},
    step("msg_3", "prt_4", 15),
    CONTINUE,
    step("msg_5", "prt_5", 5),
]


def test_each_finished_step_of_the_stream_is_a_call() -> None:
    events = feed(STREAM)
    assert events[0] == SessionSeen(session="ses_1", agent="opencode", records_compactions=True)
    assert events[1] == Call(at=1.5, id="msg_1", usage=Usage(10, 0, 0, 5))
    expected = [("msg_1", 10), ("msg_2", 20), ("prt_3", 25), ("msg_3", 15), ("msg_5", 5)]
    assert calls(events) == expected


def test_streamed_summary_is_no_call_of_the_session() -> None:
    """Only the text after the summary shows that the call before it wrote one."""
    session = fold(Session(), feed(STREAM))
    main, summary = session.threads[MAIN], session.threads["compaction"]
    assert (list(main.calls), list(summary.calls)) == (
        ["msg_1", "msg_2", "prt_3", "msg_5"],
        ["msg_3"],
    )
    assert [(c.before, c.after, c.calls) for c in main.compactions] == [(30, 5, 3)]
    assert summary.ended


@pytest.mark.parametrize(
    ("counts", "version", "output"),
    [
        ({"total": 115}, "1.18.5", 5),
        ({"total": 115}, None, 5),
        ({"total": 118}, "1.2.10", 8),
        ({}, "1.2.10", 5),
        ({}, "0.15.2", 5),
        ({}, "1.16.0", 8),
        ({"total": 7}, "1.2.10", 5),
        ({}, "local", 8),
        ({}, None, 8),
        ({"output": 2}, "1.2.10", 5),
    ],
)
def test_reasoning_counts_once(counts: Json, version: str | None, output: int) -> None:
    """opencode 1.2 counts the reasoning in the output, 1.16 beside it; a total shows which."""
    row = {"input": 100, "output": 5, "reasoning": 3, "cache": {"read": 10, "write": 0}, **counts}
    usage = usage_of(msgspec.convert(row, OpencodeTokens), version)
    assert usage == Usage(100, 10, 0, output, 3)


@pytest.mark.parametrize(("version", "held"), [("1.2.10", 15), ("1.18.5", 18)])
def test_old_exports_have_the_reasoning_in_the_output(version: str, held: int) -> None:
    counts = {"input": 10, "output": 5, "reasoning": 3, "cache": {"read": 0, "write": 0}}
    info = {"id": "msg_1", **reply(), "tokens": counts}
    export: Json = {
        "info": {"id": "ses_1", "version": version},
        "messages": [{"info": info, "parts": []}],
    }
    session = fold(Session(), SOURCE.parse(BytesIO(json.dumps(export).encode())))
    assert session.threads[MAIN].total.held == held


def test_streamed_compaction_without_a_call_has_no_summary() -> None:
    assert feed([CONTINUE])[1:] == [Compacted(at=1.5, trigger="auto")]


def test_known_lines_give_nothing_unknown_none_and_no_usage_no_call() -> None:
    assert OpencodeStreamParser().feed(b'{"type":"reasoning"}') == ()
    assert OpencodeStreamParser().feed(b'{"type":"new"}') is None
    assert (
        feed([step("msg_1", "prt_1", 0, part={"messageID": "msg_1", "tokens": NOTHING})])[1:] == []
    )
    assert feed([step("", "", 0, part={"tokens": tokens(1)})])[1:] == []
    with pytest.raises(UnexpectedJson):
        feed([step("msg_1", "prt_1", 0, part={"tokens": 5})])


def test_own_databases_exports_files_and_streams_are_recognised(database: Database) -> None:
    assert SOURCE.recognise(database.path.read_bytes()[:64]) == "transcript"
    assert SOURCE.recognise(b'{\n  "info": {\n    "id": "ses_1",') == "transcript"
    assert SOURCE.recognise(b'{\n  "id": "ses_1",\n') == "transcript"
    assert SOURCE.recognise(b"noise\n" + json.dumps(STREAM[0]).encode()) == "stream"
    assert SOURCE.recognise(database.path.read_bytes()[: 64 << 10]) == "transcript"
    for other in (
        b"",
        b'{"type":"text","sessionID":"other"}',
        b'{"type":"assistant","sessionID":"ses_1"}',
        b'{"sessionId":"s","projectHash":"h"}',
        b'{"info":{"id":"x"}}',
        b"[" * 100_000,
    ):
        assert SOURCE.recognise(other) is None


def test_database_with_other_tables_is_only_alike(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE sessions (id TEXT)")
    match = SOURCE.recognise(path.read_bytes())
    assert isinstance(match, Lookalike)
    assert (match.form, "tables" in match.doubt) == ("transcript", True)


MODELS = '{"provider":{"p":{"models":{"m":{"limit":{"context":100,"output":8,"input":90}}}}}'


def test_windows_outputs_and_switch_come_from_commented_settings(tmp_path: Path) -> None:
    text = '{ // c\n "compaction": {"auto": false, "reserved": 7,}, /* d */ ' + MODELS[1:] + ",}"
    stored(tmp_path / ".config/opencode/opencode.jsonc", text.encode())
    client_settings = SOURCE.settings(Places(tmp_path, {}))
    assert (client_settings.auto_compact, client_settings.windows, client_settings.max_outputs) == (
        False,
        {"p/m": 100},
        {"p/m": 8},
    )
    assert (client_settings.input_limits, client_settings.input_reserve) == ({"p/m": 90}, 7)


def test_environment_overrides_project_and_user_settings(tmp_path: Path) -> None:
    def window(**env: str) -> int | None:
        client_settings = SOURCE.settings(Places(tmp_path, env), str(tmp_path / "a/b"))
        return client_settings.windows.get("p/m")

    def config(size: int) -> str:
        return MODELS.replace("100", str(size)) + "}"

    stored(tmp_path / "opencode.json", config(1).encode())
    (tmp_path / "a/.git").mkdir(parents=True)
    assert window() is None
    stored(tmp_path / ".config/opencode/config.json", config(2).encode())
    assert window() == 2
    named = stored(tmp_path / "named.json", config(3).encode())
    assert window(OPENCODE_CONFIG=str(named)) == 3
    stored(tmp_path / "a/opencode.json", config(4).encode())
    assert window(OPENCODE_CONFIG=str(named)) == 4
    stored(tmp_path / "a/b/.opencode/opencode.json", config(5).encode())
    assert window() == 5
    folder = stored(tmp_path / "folder/opencode.json", config(6).encode()).parent
    assert window(OPENCODE_CONFIG_DIR=str(folder)) == 6
    assert window(OPENCODE_CONFIG_CONTENT=config(7)) == 7
    assert window(OPENCODE_CONFIG_CONTENT="{") == 5


def test_malformed_settings_are_ignored_and_the_variable_switches_off(tmp_path: Path) -> None:
    stored(tmp_path / ".config/opencode/opencode.json", b'{"provider": []}')
    client_settings = SOURCE.settings(Places(tmp_path, {}), "relative")
    assert (client_settings.auto_compact, client_settings.windows) == (None, {})
    off = SOURCE.settings(Places(tmp_path, {"OPENCODE_DISABLE_AUTOCOMPACT": "true"}))
    assert off.auto_compact is False


def test_refreshed_registry_is_read_by_provider(tmp_path: Path) -> None:
    def sizes(env: Mapping[str, str]) -> dict[str, list[str]] | None:
        registry = SOURCE.settings(Places(tmp_path, env)).registry
        return registry and {name: [*rows] for name, rows in registry.models.items()}

    models = '{"m":{"limit":{"context":9,"output":2,"input":5}},"image":{"limit":{"context":0}}}'
    registry = f'{{"p":{{"id":"p","models":{models}}}}}'
    assert sizes({}) is None
    stored(tmp_path / ".cache/opencode/models.json", registry.encode())
    read = SOURCE.settings(Places(tmp_path, {})).registry
    assert read is not None
    assert read.models == {"p": {"m": RegistryModel(9, 2, 5)}}
    stored(tmp_path / "moved/opencode/models.json", registry.replace('"p"', '"q"').encode())
    assert sizes({"XDG_CACHE_HOME": str(tmp_path / "moved")}) == {"q": ["m"]}
    named = stored(tmp_path / "named.json", registry.replace('"p"', '"r"').encode())
    assert sizes({"OPENCODE_MODELS_PATH": str(named)}) == {"r": ["m"]}


def test_limits_of_the_openai_provider_are_those_of_a_plan_too(tmp_path: Path) -> None:
    """A ChatGPT plan has the same provider in opencode's settings, and another in its calls."""
    text = MODELS.replace('"p"', '"openai"') + "}"
    stored(tmp_path / ".config/opencode/opencode.json", text.encode())
    windows = SOURCE.settings(Places(tmp_path, {})).windows
    assert windows == {"openai/m": 100, "chatgpt/m": 100}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
names = st.sampled_from(
    ["role", "tokens", "input", "output", "reasoning", "cache", "read", "write", "summary", "type"]
)
kinds = st.sampled_from(["user", "assistant", "step_finish", "text", "part", "messageID"])
garbage = st.recursive(
    scalars | kinds,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | kinds | st.text(), inner),
    max_leaves=20,
)
records = garbage.map(lambda value: json.dumps(value).encode()) | st.binary()


@given(st.lists(records, max_size=5))
def test_garbage_in_the_stream_raises_only_declared_errors(lines: list[bytes]) -> None:
    parser = OpencodeStreamParser()
    for line in lines:
        SOURCE.recognise(line)
        try:
            parser.feed(line)
        except MALFORMED:
            continue


@given(st.lists(records, max_size=5))
def test_garbage_in_the_storage_is_counted_and_the_rest_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("garbage")
    own = stored(folder / "session/hash/ses_1.json", info("ses_1"))
    for number, row in enumerate(rows):
        stored(folder / f"message/ses_1/msg_{number}.json", row)
    stored(folder / "message/ses_1/msg_9.json", reply(10))
    reader = SOURCE.read(Transcript("opencode", str(own), 0, 0))
    assert calls(reader)[-1] == ("msg_9", 10)
    assert reader.tally.records == len(rows) + 1


def test_too_deep_record_is_malformed(tmp_path: Path) -> None:
    deep = b'{"x":' + b"[" * 100_000
    with pytest.raises(MALFORMED):
        OpencodeStreamParser().feed(deep)
    path = tmp_path / "x.json"
    path.write_bytes(deep)
    reader = SOURCE.read(Transcript("opencode", str(path), 0, 0))
    assert (list(reader), reader.tally.malformed) == ([], 1)
