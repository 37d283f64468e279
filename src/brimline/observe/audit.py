"""What is logged at each update, so that any figure can be gone over later.

One record of the logger `brimline.observe` at level INFO; its figures are the record's own
attributes, as structlog and JSON formatters take them.
"""

import logging

from brimline.formulas import audit
from brimline.tracker import Reading, Thread

LOGGER = logging.getLogger("brimline.observe")


def figures(thread: Thread, reading: Reading) -> dict[str, object]:
    """The raw components, the historic formulas and the reading of a thread, flat.

    `thread` is the name of an attribute that every log record has: ours is `context_thread`.
    """
    formulas = audit(thread)
    raw = formulas.components
    last = thread.last
    return {
        "context_thread": thread.name,
        "call_id": last.id if last else None,
        "model": thread.model,
        "max_cache_read": raw.max_cache_read,
        "sum_input": raw.sum_input,
        "sum_output": raw.sum_output,
        "sum_cache_creation": raw.sum_cache_creation,
        "unique_calls": raw.unique_calls,
        "formula_max_cache_read_plus_sums": formulas.max_cache_read_plus_sums,
        "formula_sum_cache_creation": formulas.sum_cache_creation,
        "sent": reading.sent,
        "held": reading.held,
        "percent": reading.percent,
        "percent_raw": reading.percent_raw,
        "percent_of_limit": reading.percent_of_limit,
        "window": reading.window.tokens if reading.window else None,
        "window_origin": reading.window.origin if reading.window else None,
        "limit": reading.limit.tokens if reading.limit else None,
        "state": reading.state,
        "cycle": reading.cycle,
    }


def log(thread: Thread, reading: Reading) -> None:
    """Log an update; costs nothing while nobody listens."""
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("context of %s", thread.name, extra=figures(thread, reading))
