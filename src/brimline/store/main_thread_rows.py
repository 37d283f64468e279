"""Sessions with their main threads, as SQL of SQLite and of PostgreSQL."""

from brimline.context.events import MAIN
from brimline.store.rows import SessionRow, ThreadRow

SESSION_COLUMNS = len(SessionRow.__struct_fields__)


def select_main_threads(conditions: str) -> str:
    """Return the query; `conditions` begin with more of those of the join."""
    columns = [f's."{field}"' for field in SessionRow.__struct_fields__]
    columns += [f't."{field}"' for field in ThreadRow.__struct_fields__]
    return f"""SELECT {", ".join(columns)} FROM sessions AS s
    JOIN threads AS t ON t.session = s.id AND t.thread = '{MAIN}' {conditions}"""
