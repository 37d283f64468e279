"""The schema as a list of steps: a database is migrated to the newest version when it is opened.

A released step is never changed; a new one is added below it. Reserved words of SQL are quoted as
in PostgreSQL.
"""

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from brimline.errors import NewerStore
from brimline.store.common_sql import ADD_COST
from brimline.store.sqlite.quarantine import APPLICATION_ID

Step: TypeAlias = tuple[str, ...]

# A session may be stored after its threads and messages, so no foreign key points at it.
_FIRST: Step = (
    """
    CREATE TABLE sessions (
        id TEXT NOT NULL PRIMARY KEY,
        agent TEXT NOT NULL,
        seen_at REAL NOT NULL,
        host TEXT,
        project TEXT,
        model TEXT,
        version TEXT,
        title TEXT,
        transcript TEXT,
        parent TEXT,
        ended_at REAL
    )
    """,
    """
    CREATE TABLE threads (
        session TEXT NOT NULL,
        thread TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        source TEXT NOT NULL,
        state TEXT NOT NULL,
        at REAL,
        sent INTEGER,
        held INTEGER,
        "window" INTEGER,
        window_why TEXT,
        "limit" INTEGER,
        limit_why TEXT,
        percent REAL,
        percent_raw REAL,
        percent_of_limit REAL,
        peak_sent INTEGER,
        calls INTEGER NOT NULL,
        PRIMARY KEY (session, thread)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE calls (
        session TEXT NOT NULL,
        thread TEXT NOT NULL,
        call TEXT NOT NULL,
        seq INTEGER NOT NULL,
        cycle INTEGER NOT NULL,
        input INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        output INTEGER NOT NULL,
        model TEXT,
        at REAL,
        PRIMARY KEY (session, thread, call)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE signals (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        thread TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        kind TEXT NOT NULL,
        at REAL NOT NULL,
        level REAL NOT NULL,
        text TEXT NOT NULL,
        sent INTEGER,
        percent REAL,
        UNIQUE (session, thread, cycle, kind, level)
    )
    """,
    """
    CREATE TABLE messages (
        "order" INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        text TEXT NOT NULL,
        at REAL NOT NULL,
        urgency TEXT NOT NULL,
        sender TEXT NOT NULL,
        thread TEXT,
        cycle INTEGER,
        level REAL,
        expires REAL,
        state TEXT NOT NULL,
        handed_at REAL
    )
    """,
    "CREATE INDEX messages_of_session ON messages (session)",
    """
    CREATE TABLE handoffs (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        at REAL NOT NULL,
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        text TEXT NOT NULL,
        author TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        draft BOOLEAN NOT NULL,
        used_at REAL
    )
    """,
    "CREATE INDEX handoffs_of_session ON handoffs (session)",
    """
    CREATE TABLE once (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        at REAL NOT NULL
    )
    """,
    """
    CREATE TABLE changes (
        session TEXT NOT NULL PRIMARY KEY,
        mark INTEGER NOT NULL UNIQUE
    )
    """,
)

# A hook reads pending messages and the last document, and writes that it was there: this should
# touch few pages. So the text of a document is the last column, behind those that are read without
# it, and `once` and `changes` have no more B-trees than they need. `given` keeps the highest mark
# when the session that had it is deleted: a mark is never used twice.
_SECOND: Step = (
    "ALTER TABLE threads ADD COLUMN model TEXT",
    """
    CREATE TABLE compactions (
        session TEXT NOT NULL,
        thread TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        at REAL,
        "trigger" TEXT,
        before INTEGER,
        after INTEGER,
        model TEXT,
        version TEXT,
        inferred BOOLEAN NOT NULL,
        PRIMARY KEY (session, thread, cycle)
    ) WITHOUT ROWID
    """,
    """
    CREATE INDEX messages_that_wait ON messages (session)
    WHERE state IN ('queued', 'handed')
    """,
    "ALTER TABLE signals RENAME TO signals_1",
    """
    CREATE TABLE signals (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        thread TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        kind TEXT NOT NULL,
        at REAL NOT NULL,
        level REAL NOT NULL,
        text TEXT NOT NULL,
        sent INTEGER,
        percent REAL,
        arm INTEGER NOT NULL,
        UNIQUE (session, thread, cycle, kind, level, arm)
    )
    """,
    """
    INSERT INTO signals
    SELECT place, session, thread, cycle, kind, at, level, text, sent, percent, 0
    FROM signals_1 ORDER BY place
    """,
    "DROP TABLE signals_1",
    "ALTER TABLE handoffs RENAME TO handoffs_1",
    "DROP INDEX handoffs_of_session",
    """
    CREATE TABLE handoffs (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        at REAL NOT NULL,
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        author TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        draft BOOLEAN NOT NULL,
        used_at REAL,
        text TEXT NOT NULL
    )
    """,
    """
    INSERT INTO handoffs
    SELECT place, id, session, at, path, sha256, author, cycle, calls, draft, used_at, text
    FROM handoffs_1 ORDER BY place
    """,
    "DROP TABLE handoffs_1",
    "CREATE INDEX handoffs_of_session ON handoffs (session)",
    "ALTER TABLE once RENAME TO once_1",
    """
    CREATE TABLE once (
        place INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        at REAL NOT NULL
    )
    """,
    "INSERT INTO once SELECT place, key, at FROM once_1 ORDER BY place",
    "DROP TABLE once_1",
    "ALTER TABLE changes RENAME TO changes_1",
    """
    CREATE TABLE changes (
        session TEXT NOT NULL PRIMARY KEY,
        mark INTEGER NOT NULL UNIQUE
    ) WITHOUT ROWID
    """,
    "INSERT INTO changes SELECT session, mark FROM changes_1",
    "DROP TABLE changes_1",
    "CREATE TABLE given (mark INTEGER NOT NULL)",
    "INSERT INTO given VALUES (0)",
)

# The number of calls of an unknown session is unknown, not 0.
_THIRD: Step = (
    "ALTER TABLE handoffs RENAME TO handoffs_2",
    "DROP INDEX handoffs_of_session",
    """
    CREATE TABLE handoffs (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        at REAL NOT NULL,
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        author TEXT NOT NULL,
        cycle INTEGER NOT NULL,
        calls INTEGER,
        draft BOOLEAN NOT NULL,
        used_at REAL,
        text TEXT NOT NULL
    )
    """,
    "INSERT INTO handoffs SELECT * FROM handoffs_2 ORDER BY place",
    "DROP TABLE handoffs_2",
    "CREATE INDEX handoffs_of_session ON handoffs (session)",
)

_FOURTH: Step = (
    "ALTER TABLE sessions ADD COLUMN became TEXT",
    "ALTER TABLE sessions ADD COLUMN became_at REAL",
)

_FIFTH: Step = (f"PRAGMA application_id = {APPLICATION_ID}",)

_SIXTH: Step = ("ALTER TABLE calls ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0",)

_SEVENTH: Step = ("ALTER TABLE compactions ADD COLUMN overflow BOOLEAN NOT NULL DEFAULT FALSE",)

_EIGHTH: Step = ("ALTER TABLE messages ADD COLUMN blocks_stop BOOLEAN NOT NULL DEFAULT FALSE",)

_NINTH: Step = ("ALTER TABLE sessions ADD COLUMN problem TEXT",)

_TENTH: Step = ("ALTER TABLE sessions ADD COLUMN manager_id TEXT",)

_ELEVENTH: Step = ("ALTER TABLE threads ADD COLUMN pending INTEGER",)

_TWELFTH: Step = (
    'ALTER TABLE sessions ADD COLUMN "user" TEXT',
    "ALTER TABLE sessions ADD COLUMN team TEXT",
    "ALTER TABLE sessions ADD COLUMN machine TEXT",
    "ALTER TABLE calls ADD COLUMN cost REAL",
    "ALTER TABLE calls ADD COLUMN miss_cost REAL",
    "ALTER TABLE calls ADD COLUMN mark INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE cursors (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE revisions (session TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID",
    "ALTER TABLE threads ADD COLUMN calls_left INTEGER",
)

_THIRTEENTH: Step = ("ALTER TABLE sessions ADD COLUMN receive TEXT",)

_FOURTEENTH: Step = (
    "ALTER TABLE calls ADD COLUMN branch TEXT",
    "ALTER TABLE calls ADD COLUMN counted BOOLEAN NOT NULL DEFAULT TRUE",
    # Of first calls alone: with all calls in it, it made their writes more than twice as slow.
    "CREATE INDEX first_calls ON calls (call) WHERE seq = 0",
)

_FIFTEENTH: Step = ("ALTER TABLE sessions ADD COLUMN client_report TEXT",)

_SIXTEENTH: Step = (
    "ALTER TABLE sessions ADD COLUMN env TEXT",
    "ALTER TABLE threads ADD COLUMN window_origin TEXT",
    "ALTER TABLE threads ADD COLUMN limit_origin TEXT",
)

# The sum of a session's calls, for lists: adding up 600,000 calls took 0.4 s. Triggers
# keep it, so that no write can leave it out; deletions of calls delete it.
_SEVENTEENTH: Step = (
    """
    CREATE TABLE session_costs (
        session TEXT NOT NULL PRIMARY KEY,
        cost REAL NOT NULL,
        priced INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    """
    INSERT INTO session_costs
    SELECT session, sum(cost), count(cost) FROM calls WHERE cost IS NOT NULL GROUP BY session
    """,
    f"""
    CREATE TRIGGER add_call_cost AFTER INSERT ON calls WHEN new.cost IS NOT NULL
    BEGIN
        INSERT INTO session_costs VALUES (new.session, new.cost, 1)
        ON CONFLICT (session) {ADD_COST};
    END
    """,
    f"""
    CREATE TRIGGER change_call_cost AFTER UPDATE ON calls WHEN new.cost IS NOT old.cost
    BEGIN
        INSERT INTO session_costs VALUES (
            new.session,
            coalesce(new.cost, 0) - coalesce(old.cost, 0),
            (new.cost IS NOT NULL) - (old.cost IS NOT NULL)
        )
        ON CONFLICT (session) {ADD_COST};
    END
    """,
)

_EIGHTEENTH: Step = ("ALTER TABLE threads ADD COLUMN title TEXT",)

_NINETEENTH: Step = ("ALTER TABLE sessions ADD COLUMN is_fork BOOLEAN NOT NULL DEFAULT FALSE",)

_TWENTIETH: Step = (
    "ALTER TABLE threads ADD COLUMN loop INTEGER",
    "ALTER TABLE threads ADD COLUMN kept INTEGER",
)

_TWENTY_FIRST: Step = ("ALTER TABLE threads ADD COLUMN branch TEXT",)

# Each step migrates to the next version; version 0 is an empty database.
MIGRATIONS: tuple[Step, ...] = (
    _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH, _TENTH,
    _ELEVENTH, _TWELFTH, _THIRTEENTH, _FOURTEENTH, _FIFTEENTH, _SIXTEENTH, _SEVENTEENTH,
    _EIGHTEENTH, _NINETEENTH, _TWENTIETH, _TWENTY_FIRST,
)  # fmt: skip


def migrate(connection: sqlite3.Connection, place: str, steps: Sequence[Step] = MIGRATIONS) -> None:
    """Migrate a database in one transaction; raises NewerStore if its version is unknown.

    If two processes try at once, the second one waits and has nothing left to do.
    """
    if _version(connection) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > len(steps):
            raise NewerStore(place, version, len(steps))
        for statement in (text for step in steps[version:] for text in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]
