"""The steps of the schema: each migrates a database to the next version.

A released step is never changed; a new one is added below it. Every key begins with the
organisation. Texts are compared by code point, as in SQLite and Python: COLLATE "C".
"""

from typing import TypeAlias

from brimline.store.common_sql import ADD_COST
from brimline.store.postgres.later_migration_steps import (
    FIFTEENTH,
    FOURTEENTH,
    SEVENTEENTH,
    SIXTEENTH,
)

Step: TypeAlias = tuple[str, ...]

_TEXT = 'TEXT COLLATE "C"'

# `organisations` has a row for each; who writes locks it until the end of the transaction. So
# marks and the order of messages are assigned in the order of commits, and a reader skips none.
#
# All calls of a session are in the partition of the day on which its first call was stored, which
# `call_days` holds. With the day of each call the key could not be unique: a later copy of a
# call may have another time. And a day can be dropped once all its sessions are forgotten.
_FIRST: Step = (
    f"""
    CREATE TABLE organisations (
        name {_TEXT} PRIMARY KEY,
        mark BIGINT NOT NULL DEFAULT 0,
        event_keys BIGINT NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50)
    """,
    f"""
    CREATE TABLE sessions (
        organisation {_TEXT} NOT NULL,
        id {_TEXT} NOT NULL,
        agent {_TEXT} NOT NULL,
        seen_at DOUBLE PRECISION NOT NULL,
        host {_TEXT},
        project {_TEXT},
        model {_TEXT},
        version {_TEXT},
        title {_TEXT},
        transcript {_TEXT},
        parent {_TEXT},
        ended_at DOUBLE PRECISION,
        became {_TEXT},
        became_at DOUBLE PRECISION,
        problem {_TEXT},
        manager_id {_TEXT},
        PRIMARY KEY (organisation, id)
    )
    """,
    "CREATE INDEX sessions_by_time ON sessions (organisation, seen_at)",
    f"""
    CREATE TABLE threads (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        thread {_TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        seq BIGINT NOT NULL,
        source {_TEXT} NOT NULL,
        state {_TEXT} NOT NULL,
        at DOUBLE PRECISION,
        sent BIGINT,
        held BIGINT,
        "window" BIGINT,
        window_why {_TEXT},
        "limit" BIGINT,
        limit_why {_TEXT},
        percent DOUBLE PRECISION,
        percent_raw DOUBLE PRECISION,
        percent_of_limit DOUBLE PRECISION,
        peak_sent BIGINT,
        calls BIGINT NOT NULL,
        model {_TEXT},
        pending BIGINT,
        PRIMARY KEY (organisation, session, thread)
    )
    """,
    f"""
    CREATE TABLE call_days (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        day DATE NOT NULL,
        PRIMARY KEY (organisation, session)
    )
    """,
    "CREATE INDEX call_days_by_day ON call_days (day)",
    f"""
    CREATE TABLE calls (
        organisation {_TEXT} NOT NULL,
        day DATE NOT NULL,
        session {_TEXT} NOT NULL,
        thread {_TEXT} NOT NULL,
        call {_TEXT} NOT NULL,
        seq BIGINT NOT NULL,
        cycle BIGINT NOT NULL,
        input BIGINT NOT NULL,
        cache_read BIGINT NOT NULL,
        cache_write BIGINT NOT NULL,
        output BIGINT NOT NULL,
        model {_TEXT},
        at DOUBLE PRECISION,
        cache_write_1h BIGINT NOT NULL,
        PRIMARY KEY (organisation, session, thread, call, day)
    ) PARTITION BY LIST (day)
    """,
    f"""
    CREATE TABLE compactions (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        thread {_TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        at DOUBLE PRECISION,
        "trigger" {_TEXT},
        before BIGINT,
        after BIGINT,
        model {_TEXT},
        version {_TEXT},
        inferred BOOLEAN NOT NULL,
        overflow BOOLEAN NOT NULL,
        PRIMARY KEY (organisation, session, thread, cycle)
    )
    """,
    f"""
    CREATE TABLE signals (
        organisation {_TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        session {_TEXT} NOT NULL,
        thread {_TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        kind {_TEXT} NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        level DOUBLE PRECISION NOT NULL,
        text {_TEXT} NOT NULL,
        sent BIGINT,
        percent DOUBLE PRECISION,
        arm BIGINT NOT NULL,
        PRIMARY KEY (organisation, session, thread, cycle, kind, level, arm)
    )
    """,
    f"""
    CREATE TABLE messages (
        organisation {_TEXT} NOT NULL,
        id {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        text {_TEXT} NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        "order" BIGINT GENERATED ALWAYS AS IDENTITY,
        urgency {_TEXT} NOT NULL,
        sender {_TEXT} NOT NULL,
        thread {_TEXT},
        cycle BIGINT,
        level DOUBLE PRECISION,
        expires DOUBLE PRECISION,
        state {_TEXT} NOT NULL,
        handed_at DOUBLE PRECISION,
        blocks_stop BOOLEAN NOT NULL,
        PRIMARY KEY (organisation, id)
    )
    """,
    "CREATE INDEX messages_of_session ON messages (organisation, session)",
    """
    CREATE INDEX pending_messages ON messages (organisation, session)
    WHERE state IN ('queued', 'handed')
    """,
    f"""
    CREATE TABLE handoffs (
        organisation {_TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        id {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        path {_TEXT} NOT NULL,
        sha256 {_TEXT} NOT NULL,
        text {_TEXT} NOT NULL,
        author {_TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        calls BIGINT,
        draft BOOLEAN NOT NULL,
        used_at DOUBLE PRECISION,
        PRIMARY KEY (organisation, id)
    )
    """,
    "CREATE INDEX handoffs_of_session ON handoffs (organisation, session, place)",
    f"""
    CREATE TABLE event_keys (
        organisation {_TEXT} NOT NULL,
        key {_TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (organisation, key)
    )
    """,
    "CREATE INDEX event_keys_by_place ON event_keys (organisation, place)",
    f"""
    CREATE TABLE changes (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        mark BIGINT NOT NULL,
        PRIMARY KEY (organisation, session)
    )
    """,
    "CREATE INDEX changes_by_mark ON changes (organisation, mark)",
)

_SECOND: Step = (
    f"""
    ALTER TABLE sessions
        ADD COLUMN "user" {_TEXT},
        ADD COLUMN team {_TEXT},
        ADD COLUMN machine {_TEXT}
    """,
    """
    ALTER TABLE calls
        ADD COLUMN cost DOUBLE PRECISION,
        ADD COLUMN miss_cost DOUBLE PRECISION
    """,
    f"""
    CREATE TABLE revisions (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        revision BIGINT NOT NULL,
        PRIMARY KEY (organisation, session)
    ) WITH (fillfactor = 50)
    """,
    f"""
    CREATE TABLE tokens (
        organisation {_TEXT} NOT NULL,
        id {_TEXT} NOT NULL,
        hash {_TEXT} NOT NULL UNIQUE,
        name {_TEXT} NOT NULL,
        scopes TEXT[] NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION,
        revoked_at DOUBLE PRECISION,
        last_used_at DOUBLE PRECISION,
        parent {_TEXT},
        PRIMARY KEY (organisation, id)
    )
    """,
    f"""
    CREATE TABLE audit_log (
        organisation {_TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        at DOUBLE PRECISION NOT NULL,
        actor {_TEXT} NOT NULL,
        action {_TEXT} NOT NULL,
        session {_TEXT},
        subject {_TEXT},
        PRIMARY KEY (organisation, place)
    )
    """,
    f"""
    CREATE TABLE cursors (
        organisation {_TEXT} NOT NULL,
        name {_TEXT} NOT NULL,
        position BIGINT NOT NULL,
        PRIMARY KEY (organisation, name)
    )
    """,
    "CREATE INDEX signals_by_place ON signals (organisation, place)",
    # A parameter with many calls: the fields of `CallRow`. A step that adds a field adds another
    # type, as replicas of this version still use this one.
    f"""
    CREATE TYPE call_row AS (
        session {_TEXT},
        thread {_TEXT},
        call {_TEXT},
        seq BIGINT,
        cycle BIGINT,
        input BIGINT,
        cache_read BIGINT,
        cache_write BIGINT,
        output BIGINT,
        model {_TEXT},
        at DOUBLE PRECISION,
        cache_write_1h BIGINT,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION
    )
    """,
    "CREATE INDEX sessions_by_machine ON sessions (organisation, machine)",
    # What people sent to agents: few, while messages of telemetry's levels may stay pending.
    """
    CREATE INDEX sent_messages ON messages (organisation, session)
    WHERE state IN ('queued', 'handed') AND sender <> 'brimline'
    """,
    """
    CREATE INDEX unused_handoffs ON handoffs (organisation, session)
    WHERE text <> '' AND used_at IS NULL
    """,
    "ALTER TABLE threads ADD COLUMN calls_left BIGINT",
    # The fleet view: what each session cost in an hour.
    f"""
    CREATE TABLE session_hours (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        hour BIGINT NOT NULL,
        calls BIGINT NOT NULL,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        agent {_TEXT} NOT NULL,
        host {_TEXT},
        project {_TEXT},
        model {_TEXT},
        version {_TEXT},
        "user" {_TEXT},
        team {_TEXT},
        PRIMARY KEY (organisation, hour, session)
    )
    """,
    "CREATE INDEX session_hours_of_session ON session_hours (organisation, session, hour)",
    "CREATE INDEX calls_by_time ON calls (organisation, session, at)",
    "CREATE INDEX compactions_by_time ON compactions (organisation, at)",
    # By default a table is vacuumed when a fifth of its rows are dead: 400,000 keys of events.
    *(
        f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.02)"
        for table in ("changes", "event_keys", "revisions", "sessions", "threads")
    ),
)

_THIRD: Step = (f"ALTER TABLE sessions ADD COLUMN receive {_TEXT}",)

_FOURTH: Step = (
    f"ALTER TABLE calls ADD COLUMN branch {_TEXT}",
    "ALTER TABLE calls ADD COLUMN counted BOOLEAN NOT NULL DEFAULT TRUE",
    f"""
    CREATE TYPE call_row_4 AS (
        session {_TEXT},
        thread {_TEXT},
        call {_TEXT},
        seq BIGINT,
        cycle BIGINT,
        input BIGINT,
        cache_read BIGINT,
        cache_write BIGINT,
        output BIGINT,
        model {_TEXT},
        at DOUBLE PRECISION,
        cache_write_1h BIGINT,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        branch {_TEXT},
        counted BOOLEAN
    )
    """,
)

_FIFTH: Step = (f"ALTER TABLE sessions ADD COLUMN client_report {_TEXT}",)

_SIXTH: Step = (
    f"ALTER TABLE sessions ADD COLUMN env {_TEXT}",
    f"ALTER TABLE threads ADD COLUMN window_origin {_TEXT}",
    f"ALTER TABLE threads ADD COLUMN limit_origin {_TEXT}",
)

# It replaces `session_hours`, whose key cannot have a branch: replicas of the versions before still
# keep that current by a cursor of their own. A later step drops it.
_SEVENTH: Step = (
    f"""
    CREATE TABLE branch_hours (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        hour BIGINT NOT NULL,
        branch {_TEXT} NOT NULL,
        last_at DOUBLE PRECISION NOT NULL,
        calls BIGINT NOT NULL,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        agent {_TEXT} NOT NULL,
        host {_TEXT},
        project {_TEXT},
        model {_TEXT},
        version {_TEXT},
        "user" {_TEXT},
        team {_TEXT},
        PRIMARY KEY (organisation, hour, session, branch)
    )
    """,
    "CREATE INDEX branch_hours_of_session ON branch_hours (organisation, session, hour)",
    """
    INSERT INTO branch_hours
    SELECT organisation, session, hour, '', 3600.0 * hour, calls, cost, miss_cost,
        agent, host, project, model, version, "user", team
    FROM session_hours
    """,
    """
    INSERT INTO cursors
    SELECT organisation, 'branch_hours', position FROM cursors WHERE name = 'session_hours'
    """,
)

# The sum of a session's calls, for lists. Triggers keep it, also for replicas of a version before,
# once for all calls of a statement.
_EIGHTH: Step = (
    f"""
    CREATE TABLE session_costs (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        cost DOUBLE PRECISION NOT NULL,
        priced BIGINT NOT NULL,
        PRIMARY KEY (organisation, session)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02)
    """,
    f"""
    CREATE FUNCTION add_call_costs() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO session_costs
        SELECT organisation, session, sum(cost), count(cost) FROM new_calls
        WHERE cost IS NOT NULL GROUP BY organisation, session
        ON CONFLICT (organisation, session) {ADD_COST};
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION change_call_costs() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO session_costs
        SELECT organisation, session, sum(cost), sum(priced) FROM (
            SELECT organisation, session, cost, 1 AS priced FROM new_calls
            UNION ALL SELECT organisation, session, -cost, -1 FROM old_calls
        ) AS changed WHERE cost IS NOT NULL GROUP BY organisation, session
        ON CONFLICT (organisation, session) {ADD_COST};
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER add_call_costs AFTER INSERT ON calls
    REFERENCING NEW TABLE AS new_calls
    FOR EACH STATEMENT EXECUTE FUNCTION add_call_costs()
    """,
    """
    CREATE TRIGGER change_call_costs AFTER UPDATE ON calls
    REFERENCING OLD TABLE AS old_calls NEW TABLE AS new_calls
    FOR EACH STATEMENT EXECUTE FUNCTION change_call_costs()
    """,
    """
    INSERT INTO session_costs
    SELECT organisation, session, sum(cost), count(cost) FROM calls
    WHERE cost IS NOT NULL GROUP BY organisation, session
    """,
)

_NINTH: Step = (f"ALTER TABLE threads ADD COLUMN title {_TEXT}",)
_TENTH: Step = ("ALTER TABLE sessions ADD COLUMN is_fork BOOLEAN NOT NULL DEFAULT FALSE",)
# The time of the earliest call that was stored since the session's hours were summed. Replicas of
# the versions before leave it as it is.
_ELEVENTH: Step = ("ALTER TABLE changes ADD COLUMN calls_since DOUBLE PRECISION",)

# Who reports, by uplink: one row for each installation.
_TWELFTH: Step = (
    f"""
    CREATE TABLE machines (
        organisation {_TEXT} NOT NULL,
        id {_TEXT} NOT NULL,
        host {_TEXT}, "user" {_TEXT}, team {_TEXT}, version {_TEXT},
        receive {_TEXT} NOT NULL, behind BIGINT NOT NULL, refused BIGINT NOT NULL, refusal {_TEXT},
        first_at DOUBLE PRECISION NOT NULL,
        last_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (organisation, id)
    ) WITH (fillfactor = 50)
    """,
)

# What sessions used by day, which stays longer than their calls. With no cursor, and as if the
# first call of each were new, every session is summed again.
_THIRTEENTH: Step = (
    f"""
    CREATE TABLE session_days (
        organisation {_TEXT} NOT NULL,
        session {_TEXT} NOT NULL,
        day DATE NOT NULL,
        branch {_TEXT} NOT NULL,
        calls BIGINT NOT NULL,
        input BIGINT NOT NULL,
        cache_read BIGINT NOT NULL,
        cache_write BIGINT NOT NULL,
        output BIGINT NOT NULL,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        agent {_TEXT} NOT NULL, host {_TEXT}, project {_TEXT}, model {_TEXT},
        version {_TEXT}, "user" {_TEXT}, team {_TEXT},
        PRIMARY KEY (organisation, day, session, branch)
    )
    """,
    "CREATE INDEX session_days_of_session ON session_days (organisation, session, day)",
    *(
        f"ALTER TABLE branch_hours ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0"
        for column in ("input", "cache_read", "cache_write", "output")
    ),
    "UPDATE changes SET calls_since = 0",
    "DELETE FROM cursors WHERE name = 'branch_hours'",
)

# Each step migrates to the next version; version 0 is an empty database.
MIGRATIONS: tuple[Step, ...] = (
    _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH, _TENTH,
    _ELEVENTH, _TWELFTH, _THIRTEENTH, FOURTEENTH, FIFTEENTH, SIXTEENTH,
    SEVENTEENTH,
)  # fmt: skip
