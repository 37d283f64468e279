"""The steps of the schema from the fourteenth on, as in `migration_steps`."""

FOURTEENTH = ("ALTER TABLE threads ADD COLUMN loop BIGINT, ADD COLUMN kept BIGINT",)

# The fleet view joins active sessions with their main threads: without it, all threads that are
# kept are read, as the planner takes a row of the table's own index for too expensive.
FIFTEENTH = ("CREATE INDEX main_threads ON threads (organisation, session) WHERE thread = 'main'",)
