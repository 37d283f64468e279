"""Log the figures of each update, so that they can be checked later.

One record of the logger `brimline.observe` at level INFO; the figures are attributes of the record,
as structlog and JSON formatters expect.
"""

import logging

from brimline.formulas import audit
from brimline.tracker import Reading, Thread

LOGGER = logging.getLogger("brimline.observe")


def log_fields(thread: Thread, reading: Reading) -> dict[str, object]:
    """The raw components, the historic formulas and the reading of a thread, flat.

    Every log record has an attribute `thread`: ours is `context_thread`.
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


def log_update(thread: Thread, reading: Reading) -> None:
    """Log an update; costs nothing if the logger is off."""
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("context of %s", thread.name, extra=log_fields(thread, reading))
