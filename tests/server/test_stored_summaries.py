"""The totals of sessions without a transcript."""

import msgspec
import pytest

from brimline.api.history import StoredSummaries
from brimline.sessions.report import ReportFilter, build_report
from brimline.store.base import ForgetSessions, PutCall, PutCompaction, PutSession, PutThread
from brimline.store.rows import CallRow, CompactionRow, SessionRow, ThreadRow
from brimline.store.sqlite import MemoryStore

MODEL = "claude-sonnet-4-5"


def put_call(session: str, number: int, cycle: int = 0, counted: bool = True) -> PutCall:
    row = CallRow(session, "main", f"c{number}", number, cycle, 1_000 * number, 0, 0, 10, MODEL,
                  1_794_657_600.0 + number, counted=counted)  # fmt: skip
    return PutCall(row)


async def stored_sessions() -> MemoryStore:
    store = MemoryStore()
    for id in ("one", "two"):
        thread = ThreadRow(id, "main", 0, 1, "telemetry", "measured", model=MODEL, calls=2)
        row = SessionRow(id, "my-agent", 100.0, project="/p", title="Title")
        await store.write([PutSession(row), PutThread(thread)])
        await store.write([put_call(id, 1), put_call(id, 2)])
    await store.write([PutSession(SessionRow("uncalled", "my-agent", 100.0))])
    return store


async def test_sessions_without_a_transcript_are_totalled_once() -> None:
    store = await stored_sessions()
    await store.write(
        [
            PutCompaction(CompactionRow("one", "main", 0, 2.0, "auto", 2_010)),
            put_call("one", 3, 1),
        ]
    )
    found = StoredSummaries(store)
    report = build_report(await found.read(set()), "session", ReportFilter())
    figures = [(each.key, each.calls, each.peak_sent, each.compactions, each.usage.input)
               for each in report.lines]  # fmt: skip
    assert figures == [("one", 3, 3_000, 1, 6_000), ("two", 2, 2_000, 0, 3_000)]
    assert report.lines[0].agents == ("my-agent",)
    assert report.total.cost is not None
    (other,) = await found.read({"one"})
    assert (other.session, other.summary.title, other.summary.project) == ("two", "Title", "/p")


async def test_copies_of_other_sessions_calls_are_not_counted() -> None:
    store = await stored_sessions()
    await store.write([put_call("two", 1, counted=False)])
    items = await StoredSummaries(store).read({"one"})
    (line,) = build_report(items, "session", ReportFilter()).lines
    assert (line.calls, line.usage.input) == (1, 2_000)


async def test_stored_costs_are_not_computed_again() -> None:
    """Fast mode costs six times as much; a call's other passes are in its stored cost alone."""
    store = await stored_sessions()
    thread = ThreadRow("two", "main", 0, 1, "telemetry", "measured", model=MODEL, calls=4)
    call = msgspec.structs.replace(put_call("two", 3).row, cost=4.5, cache_read=90_000)
    missed = msgspec.structs.replace(call, call="c4", seq=3, cost=0.25, miss_cost=0.125,
                                     cache_read=0, cache_write=90_000)  # fmt: skip
    spent = msgspec.structs.replace(call, thread="main/spendings", call="c5", cost=0.5,
                                    counted=False)  # fmt: skip
    await store.write([PutThread(thread), PutCall(call), PutCall(missed), PutCall(spent)])
    items = await StoredSummaries(store).read({"one"})
    (line,) = build_report(items, "session", ReportFilter()).lines
    unstored = (1_000 + 2_000) * 3e-6 + 20 * 15e-6
    assert line.cost == pytest.approx(unstored + 4.5 + 0.25 + 0.5)
    assert (line.misses.calls, line.misses.cost) == (1, 0.125)


async def test_totals_are_computed_again_only_after_their_session_changed() -> None:
    store = await stored_sessions()
    found = StoredSummaries(store)
    before = {each.session: each for each in await found.read(set())}
    await store.write([put_call("two", 3)])
    after = {each.session: each for each in await found.read(set())}
    assert after["one"] is before["one"]
    assert sum(row.calls for row in after["two"].summary.rows) == 3
    await store.write([ForgetSessions(200.0)])
    assert await found.read(set()) == []
