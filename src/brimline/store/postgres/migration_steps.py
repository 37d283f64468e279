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
    TEXT,
    THIRTEENTH,
)

Step: TypeAlias = tuple[str, ...]

# `organisations` has a row for each; who writes locks it until the end of the transaction. So
# marks and the order of messages are assigned in the order of commits, and a reader skips none.
#
# All calls of a session are in the partition of the day on which its first call was stored, which
# `call_days` holds. With the day of each call the key could not be unique: a later copy of a
# call may have another time. And a day can be dropped once all its sessions are forgotten.
_FIRST: Step = (
    f"""
    CREATE TABLE organisations (
        name {TEXT} PRIMARY KEY,
        mark BIGINT NOT NULL DEFAULT 0,
        event_keys BIGINT NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50)
    """,
    f"""
    CREATE TABLE sessions (
        organisation {TEXT} NOT NULL,
        id {TEXT} NOT NULL,
        agent {TEXT} NOT NULL,
        seen_at DOUBLE PRECISION NOT NULL,
        host {TEXT},
        project {TEXT},
        model {TEXT},
        version {TEXT},
        title {TEXT},
        transcript {TEXT},
        parent {TEXT},
        ended_at DOUBLE PRECISION,
        became {TEXT},
        became_at DOUBLE PRECISION,
        problem {TEXT},
        manager_id {TEXT},
        PRIMARY KEY (organisation, id)
    )
    """,
    "CREATE INDEX sessions_by_time ON sessions (organisation, seen_at)",
    f"""
    CREATE TABLE threads (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        thread {TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        seq BIGINT NOT NULL,
        source {TEXT} NOT NULL,
        state {TEXT} NOT NULL,
        at DOUBLE PRECISION,
        sent BIGINT,
        held BIGINT,
        "window" BIGINT,
        window_why {TEXT},
        "limit" BIGINT,
        limit_why {TEXT},
        percent DOUBLE PRECISION,
        percent_raw DOUBLE PRECISION,
        percent_of_limit DOUBLE PRECISION,
        peak_sent BIGINT,
        calls BIGINT NOT NULL,
        model {TEXT},
        pending BIGINT,
        PRIMARY KEY (organisation, session, thread)
    )
    """,
    f"""
    CREATE TABLE call_days (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        day DATE NOT NULL,
        PRIMARY KEY (organisation, session)
    )
    """,
    "CREATE INDEX call_days_by_day ON call_days (day)",
    f"""
    CREATE TABLE calls (
        organisation {TEXT} NOT NULL,
        day DATE NOT NULL,
        session {TEXT} NOT NULL,
        thread {TEXT} NOT NULL,
        call {TEXT} NOT NULL,
        seq BIGINT NOT NULL,
        cycle BIGINT NOT NULL,
        input BIGINT NOT NULL,
        cache_read BIGINT NOT NULL,
        cache_write BIGINT NOT NULL,
        output BIGINT NOT NULL,
        model {TEXT},
        at DOUBLE PRECISION,
        cache_write_1h BIGINT NOT NULL,
        PRIMARY KEY (organisation, session, thread, call, day)
    ) PARTITION BY LIST (day)
    """,
    f"""
    CREATE TABLE compactions (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        thread {TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        at DOUBLE PRECISION,
        "trigger" {TEXT},
        before BIGINT,
        after BIGINT,
        model {TEXT},
        version {TEXT},
        inferred BOOLEAN NOT NULL,
        overflow BOOLEAN NOT NULL,
        PRIMARY KEY (organisation, session, thread, cycle)
    )
    """,
    f"""
    CREATE TABLE signals (
        organisation {TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        session {TEXT} NOT NULL,
        thread {TEXT} NOT NULL,
        cycle BIGINT NOT NULL,
        kind {TEXT} NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        level DOUBLE PRECISION NOT NULL,
        text {TEXT} NOT NULL,
        sent BIGINT,
        percent DOUBLE PRECISION,
        arm BIGINT NOT NULL,
        PRIMARY KEY (organisation, session, thread, cycle, kind, level, arm)
    )
    """,
    f"""
    CREATE TABLE messages (
        organisation {TEXT} NOT NULL,
        id {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        text {TEXT} NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        "order" BIGINT GENERATED ALWAYS AS IDENTITY,
        urgency {TEXT} NOT NULL,
        sender {TEXT} NOT NULL,
        thread {TEXT},
        cycle BIGINT,
        level DOUBLE PRECISION,
        expires DOUBLE PRECISION,
        state {TEXT} NOT NULL,
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
        organisation {TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        id {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        at DOUBLE PRECISION NOT NULL,
        path {TEXT} NOT NULL,
        sha256 {TEXT} NOT NULL,
        text {TEXT} NOT NULL,
        author {TEXT} NOT NULL,
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
        organisation {TEXT} NOT NULL,
        key {TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (organisation, key)
    )
    """,
    "CREATE INDEX event_keys_by_place ON event_keys (organisation, place)",
    f"""
    CREATE TABLE changes (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        mark BIGINT NOT NULL,
        PRIMARY KEY (organisation, session)
    )
    """,
    "CREATE INDEX changes_by_mark ON changes (organisation, mark)",
)

_SECOND: Step = (
    f"""
    ALTER TABLE sessions
        ADD COLUMN "user" {TEXT},
        ADD COLUMN team {TEXT},
        ADD COLUMN machine {TEXT}
    """,
    """
    ALTER TABLE calls
        ADD COLUMN cost DOUBLE PRECISION,
        ADD COLUMN miss_cost DOUBLE PRECISION
    """,
    f"""
    CREATE TABLE revisions (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        revision BIGINT NOT NULL,
        PRIMARY KEY (organisation, session)
    ) WITH (fillfactor = 50)
    """,
    f"""
    CREATE TABLE tokens (
        organisation {TEXT} NOT NULL,
        id {TEXT} NOT NULL,
        hash {TEXT} NOT NULL UNIQUE,
        name {TEXT} NOT NULL,
        scopes TEXT[] NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION,
        revoked_at DOUBLE PRECISION,
        last_used_at DOUBLE PRECISION,
        parent {TEXT},
        PRIMARY KEY (organisation, id)
    )
    """,
    f"""
    CREATE TABLE audit_log (
        organisation {TEXT} NOT NULL,
        place BIGINT GENERATED ALWAYS AS IDENTITY,
        at DOUBLE PRECISION NOT NULL,
        actor {TEXT} NOT NULL,
        action {TEXT} NOT NULL,
        session {TEXT},
        subject {TEXT},
        PRIMARY KEY (organisation, place)
    )
    """,
    f"""
    CREATE TABLE cursors (
        organisation {TEXT} NOT NULL,
        name {TEXT} NOT NULL,
        position BIGINT NOT NULL,
        PRIMARY KEY (organisation, name)
    )
    """,
    "CREATE INDEX signals_by_place ON signals (organisation, place)",
    # A parameter with many calls: the fields of `CallRow`. A step that adds a field adds another
    # type, as replicas of this version still use this one.
    f"""
    CREATE TYPE call_row AS (
        session {TEXT},
        thread {TEXT},
        call {TEXT},
        seq BIGINT,
        cycle BIGINT,
        input BIGINT,
        cache_read BIGINT,
        cache_write BIGINT,
        output BIGINT,
        model {TEXT},
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
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        hour BIGINT NOT NULL,
        calls BIGINT NOT NULL,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        agent {TEXT} NOT NULL,
        host {TEXT},
        project {TEXT},
        model {TEXT},
        version {TEXT},
        "user" {TEXT},
        team {TEXT},
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

_THIRD: Step = (f"ALTER TABLE sessions ADD COLUMN receive {TEXT}",)

_FOURTH: Step = (
    f"ALTER TABLE calls ADD COLUMN branch {TEXT}",
    "ALTER TABLE calls ADD COLUMN counted BOOLEAN NOT NULL DEFAULT TRUE",
    f"""
    CREATE TYPE call_row_4 AS (
        session {TEXT},
        thread {TEXT},
        call {TEXT},
        seq BIGINT,
        cycle BIGINT,
        input BIGINT,
        cache_read BIGINT,
        cache_write BIGINT,
        output BIGINT,
        model {TEXT},
        at DOUBLE PRECISION,
        cache_write_1h BIGINT,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        branch {TEXT},
        counted BOOLEAN
    )
    """,
)

_FIFTH: Step = (f"ALTER TABLE sessions ADD COLUMN client_report {TEXT}",)

_SIXTH: Step = (
    f"ALTER TABLE sessions ADD COLUMN env {TEXT}",
    f"ALTER TABLE threads ADD COLUMN window_origin {TEXT}",
    f"ALTER TABLE threads ADD COLUMN limit_origin {TEXT}",
)

# It replaces `session_hours`, whose key cannot have a branch: replicas of the versions before still
# keep that current by a cursor of their own. A later step drops it.
_SEVENTH: Step = (
    f"""
    CREATE TABLE branch_hours (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        hour BIGINT NOT NULL,
        branch {TEXT} NOT NULL,
        last_at DOUBLE PRECISION NOT NULL,
        calls BIGINT NOT NULL,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        agent {TEXT} NOT NULL,
        host {TEXT},
        project {TEXT},
        model {TEXT},
        version {TEXT},
        "user" {TEXT},
        team {TEXT},
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
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
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

_NINTH: Step = (f"ALTER TABLE threads ADD COLUMN title {TEXT}",)
_TENTH: Step = ("ALTER TABLE sessions ADD COLUMN is_fork BOOLEAN NOT NULL DEFAULT FALSE",)
# The time of the earliest call that was stored since the session's hours were summed. Replicas of
# the versions before leave it as it is.
_ELEVENTH: Step = ("ALTER TABLE changes ADD COLUMN calls_since DOUBLE PRECISION",)

# Who reports, by uplink: one row for each installation.
_TWELFTH: Step = (
    f"""
    CREATE TABLE machines (
        organisation {TEXT} NOT NULL,
        id {TEXT} NOT NULL,
        host {TEXT}, "user" {TEXT}, team {TEXT}, version {TEXT},
        receive {TEXT} NOT NULL, behind BIGINT NOT NULL, refused BIGINT NOT NULL, refusal {TEXT},
        first_at DOUBLE PRECISION NOT NULL,
        last_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (organisation, id)
    ) WITH (fillfactor = 50)
    """,
)

# Each step migrates to the next version; version 0 is an empty database.
MIGRATIONS: tuple[Step, ...] = (
    _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH, _TENTH,
    _ELEVENTH, _TWELFTH, THIRTEENTH, FOURTEENTH, FIFTEENTH, SIXTEENTH,
    SEVENTEENTH,
)  # fmt: skip
