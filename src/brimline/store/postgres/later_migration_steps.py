"""The steps of the schema from the fourteenth on, as in `migration_steps`."""

FOURTEENTH = ("ALTER TABLE threads ADD COLUMN loop BIGINT, ADD COLUMN kept BIGINT",)

# The fleet view joins active sessions with their main threads: without it, all threads that are
# kept are read, as the planner takes a row of the table's own index for too expensive.
FIFTEENTH = ("CREATE INDEX main_threads ON threads (organisation, session) WHERE thread = 'main'",)

# Machines that made their tokens from their team's; a machine's report has the token's id.
SIXTEENTH = (
    """ALTER TABLE tokens ADD COLUMN machine TEXT COLLATE "C", ADD COLUMN team TEXT COLLATE "C",
    ADD COLUMN max_machines BIGINT""",
    'ALTER TABLE machines ADD COLUMN token TEXT COLLATE "C"',
)

SEVENTEENTH = ('ALTER TABLE threads ADD COLUMN branch TEXT COLLATE "C"',)
