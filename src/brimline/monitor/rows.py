"""What the monitor knows, as the store keeps it."""

import socket
from itertools import islice

from brimline.events import MAIN
from brimline.monitor.heard import Heard
from brimline.monitor.watched import Watched
from brimline.store.base import CallRow, SessionRow, ThreadRow
from brimline.tracker import Reading


def session_row(heard: Heard, watched: Watched) -> SessionRow:
    """Who and where a session is."""
    return SessionRow(
        id=watched.id,
        agent=watched.agent,
        seen_at=heard.at,
        host=socket.gethostname(),
        project=watched.project,
        model=watched.folded.threads[MAIN].model if watched.calls else watched.model,
        version=watched.folded.version or watched.version,
        title=watched.folded.title,
        transcript=heard.transcript,
        parent=watched.parent,
        ended_at=heard.at if heard.what == "ended" else None,
    )


def thread_row(watched: Watched, reading: Reading) -> ThreadRow:
    """A session's own thread as it is now."""
    thread = watched.folded.threads.get(MAIN)
    return ThreadRow(
        session=watched.id,
        thread=MAIN,
        cycle=watched.cycle,
        seq=watched.next_seq(),
        source=reading.source,
        state=reading.state,
        at=reading.at,
        sent=reading.sent,
        held=reading.held,
        window=reading.window.tokens if reading.window else None,
        window_why=reading.window.why if reading.window else None,
        limit=reading.limit.tokens if reading.limit else None,
        limit_why=reading.limit.why if reading.limit else None,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        peak_sent=thread.peak_sent if thread else None,
        calls=watched.calls,
    )


def call_rows(watched: Watched) -> list[CallRow]:
    """The calls that are not stored yet, and the last one that is: it may have grown."""
    thread = watched.folded.threads.get(MAIN)
    if thread is None:
        return []
    first = max(0, watched.stored_calls - 1)
    cycles = [made.calls for made in thread.compactions]
    return [
        CallRow(
            session=watched.id,
            thread=MAIN,
            call=call.id,
            seq=place,
            cycle=sum(1 for calls in cycles if calls <= place),
            input=call.usage.input,
            cache_read=call.usage.cache_read,
            cache_write=call.usage.cache_write,
            output=call.usage.output,
            model=call.model,
            at=call.at,
        )
        for place, call in islice(enumerate(thread.calls.values()), first, None)
    ]
