"""The steps of the schema from the thirteenth on, as in `migration_steps`."""

TEXT = 'TEXT COLLATE "C"'

# What sessions used by day, which stays longer than their calls. With no cursor, and as if the
# first call of each were new, every session is summed again.
THIRTEENTH = (
    f"""
    CREATE TABLE session_days (
        organisation {TEXT} NOT NULL,
        session {TEXT} NOT NULL,
        day DATE NOT NULL,
        branch {TEXT} NOT NULL,
        calls BIGINT NOT NULL,
        input BIGINT NOT NULL,
        cache_read BIGINT NOT NULL,
        cache_write BIGINT NOT NULL,
        output BIGINT NOT NULL,
        cost DOUBLE PRECISION,
        miss_cost DOUBLE PRECISION,
        agent {TEXT} NOT NULL, host {TEXT}, project {TEXT}, model {TEXT},
        version {TEXT}, "user" {TEXT}, team {TEXT},
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

FOURTEENTH = ("ALTER TABLE threads ADD COLUMN loop BIGINT, ADD COLUMN kept BIGINT",)

# The fleet view joins active sessions with their main threads: without it, all threads that are
# kept are read, as the planner takes a row of the table's own index for too expensive.
FIFTEENTH = ("CREATE INDEX main_threads ON threads (organisation, session) WHERE thread = 'main'",)

# Machines that made their tokens from their team's; a machine's report has the token's id.
SIXTEENTH = (
    f"""ALTER TABLE tokens ADD COLUMN machine {TEXT}, ADD COLUMN team {TEXT},
    ADD COLUMN max_machines BIGINT""",
    f"ALTER TABLE machines ADD COLUMN token {TEXT}",
)

SEVENTEENTH = (f"ALTER TABLE threads ADD COLUMN branch {TEXT}",)
