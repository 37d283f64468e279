"""Log the figures of each update, so that they can be checked later.

One record of the logger `brimline.observe` at level INFO; the figures are attributes of the record,
as structlog and JSON formatters expect.
"""

import logging

from brimline.context.formulas import Components, audit, is_complete
from brimline.context.tracker import Reading, Thread
from brimline.context.usage import percent_raw
from brimline.sdk.stream import LOGGER


def log_fields(agent: str | None, thread: Thread, reading: Reading) -> dict[str, object]:
    """The raw components, the historic formulas and the reading of a thread, flat.

    The formulas are of the calls since the last reset; their sums are None if the tracker was
    restored without all of these. Every log record has an attribute `thread`: ours is
    `context_thread`.
    """
    formulas = audit(thread)
    counted = formulas.components if is_complete(thread) else None
    components = {name: getattr(counted, name, None) for name in Components.__struct_fields__}
    last = thread.last
    window = reading.window.tokens if reading.window else None
    return {
        "agent": agent,
        "context_thread": thread.name,
        "call_id": last.id if last else None,
        "model": thread.model,
        **components,
        "formula_max_cache_read_plus_sums": formulas.max_cache_read_plus_sums,
        "formula_max_cache_read_plus_sums_percent": percent_raw(
            formulas.max_cache_read_plus_sums, window
        ),
        "formula_sum_cache_creation": formulas.sum_cache_creation,
        "formula_sum_cache_creation_percent": percent_raw(formulas.sum_cache_creation, window),
        "sent": reading.sent,
        "held": reading.held,
        "percent": reading.percent,
        "percent_raw": reading.percent_raw,
        "percent_of_limit": reading.percent_of_limit,
        "window": window,
        "window_origin": reading.window.origin if reading.window else None,
        "limit": reading.limit.tokens if reading.limit else None,
        "state": reading.state,
        "cycle": reading.cycle,
    }


def log_update(agent: str | None, thread: Thread, reading: Reading) -> None:
    """Log an update; costs nothing if the logger is off."""
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("context of %s", thread.name, extra=log_fields(agent, thread, reading))
