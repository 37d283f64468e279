PRAGMA user_version = 21;
PRAGMA application_id = 1112688973;
BEGIN TRANSACTION;
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
        at REAL, cache_write_1h INTEGER NOT NULL DEFAULT 0, cost REAL, miss_cost REAL, mark INTEGER NOT NULL DEFAULT 0, branch TEXT, counted BOOLEAN NOT NULL DEFAULT TRUE,
        PRIMARY KEY (session, thread, call)
    ) WITHOUT ROWID
    ;
INSERT INTO "calls" VALUES('s','main','c',1,0,1,2,3,4,'m',1.5,0,NULL,NULL,0,NULL,1);
CREATE TABLE changes (
        session TEXT NOT NULL PRIMARY KEY,
        mark INTEGER NOT NULL UNIQUE
    ) WITHOUT ROWID
    ;
INSERT INTO "changes" VALUES('s',2);
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
        inferred BOOLEAN NOT NULL, overflow BOOLEAN NOT NULL DEFAULT FALSE,
        PRIMARY KEY (session, thread, cycle)
    ) WITHOUT ROWID
    ;
INSERT INTO "compactions" VALUES('s','main',0,2.5,'auto',100,NULL,'m','1.0',1,0);
CREATE TABLE cursors (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE given (mark INTEGER NOT NULL);
INSERT INTO "given" VALUES(0);
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
    );
INSERT INTO "handoffs" VALUES(1,'h','s',3.0,'/h.md','00','agent',0,7,0,4.0,'text');
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
        handed_at REAL, blocks_stop BOOLEAN NOT NULL DEFAULT FALSE
    );
INSERT INTO "messages" VALUES(1,'m','s','text',2.0,'sequential','brimline','main',0,NULL,NULL,'cancelled',NULL,0);
CREATE TABLE once (
        place INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        at REAL NOT NULL
    );
INSERT INTO "once" VALUES(1,'e',1.0);
CREATE TABLE revisions (session TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE session_costs (
        session TEXT NOT NULL PRIMARY KEY,
        cost REAL NOT NULL,
        priced INTEGER NOT NULL
    ) WITHOUT ROWID
    ;
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
    , became TEXT, became_at REAL, problem TEXT, manager_id TEXT, "user" TEXT, team TEXT, machine TEXT, receive TEXT, client_report TEXT, env TEXT, is_fork BOOLEAN NOT NULL DEFAULT FALSE);
INSERT INTO "sessions" VALUES('s','claude',9.5,'h',NULL,'m',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
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
    );
INSERT INTO "signals" VALUES(1,'s','main',0,'level',2.0,50.0,'t',NULL,NULL,0);
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
        calls INTEGER NOT NULL, model TEXT, pending INTEGER, calls_left INTEGER, window_origin TEXT, limit_origin TEXT, title TEXT, loop INTEGER, kept INTEGER, branch TEXT,
        PRIMARY KEY (session, thread)
    ) WITHOUT ROWID
    ;
INSERT INTO "threads" VALUES('s','main',1,2,'hook','measured',2.0,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'feature');
CREATE INDEX messages_of_session ON messages (session);
CREATE INDEX messages_that_wait ON messages (session)
    WHERE state IN ('queued', 'handed')
    ;
CREATE INDEX handoffs_of_session ON handoffs (session);
CREATE INDEX first_calls ON calls (call) WHERE seq = 0;
CREATE TRIGGER add_call_cost AFTER INSERT ON calls WHEN new.cost IS NOT NULL
    BEGIN
        INSERT INTO session_costs VALUES (new.session, new.cost, 1)
        ON CONFLICT (session) DO UPDATE SET cost = session_costs.cost + excluded.cost,
    priced = session_costs.priced + excluded.priced;
    END;
CREATE TRIGGER change_call_cost AFTER UPDATE ON calls WHEN new.cost IS NOT old.cost
    BEGIN
        INSERT INTO session_costs VALUES (
            new.session,
            coalesce(new.cost, 0) - coalesce(old.cost, 0),
            (new.cost IS NOT NULL) - (old.cost IS NOT NULL)
        )
        ON CONFLICT (session) DO UPDATE SET cost = session_costs.cost + excluded.cost,
    priced = session_costs.priced + excluded.priced;
    END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('messages',1);
INSERT INTO "sqlite_sequence" VALUES('signals',1);
INSERT INTO "sqlite_sequence" VALUES('handoffs',1);
COMMIT;
