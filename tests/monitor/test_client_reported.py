"""The client's own figure beside the transcript: which report counts, and for how long."""

import pytest
from msgspec.structs import replace

from brimline.agents.observations import Observation
from brimline.context.client_report import PromptCache, Quota, Quotas
from brimline.context.events import MAIN, AnyEvent, Call, Compacted, WindowReported
from brimline.context.tracker import Session, Thread, fold
from brimline.context.usage import Usage
from brimline.monitor.client_figures import MAX_REORDER_S, ClientReported
from brimline.store.rows import ThreadRow

MODEL, OTHER = "claude-sonnet-4-5", "claude-opus-5"
NO_CALLS = Thread(MAIN)


def report(
    sent: int | None,
    at: float = 100.0,
    model: str = MODEL,
    window: int | None = None,
    is_late: bool = False,
) -> Observation:
    usage = None if sent is None else Usage(sent, 0, 0, 0)
    return Observation("id", "claude", "s", "status", at, usage=usage, model=model, window=window,
                       is_late=is_late)  # fmt: skip


def reported(*observations: Observation, main: Thread = NO_CALLS) -> ClientReported:
    client = ClientReported()
    for each in observations:
        client.update(each, each.model, main, main.cycle)
    return client


def thread_of(*events: AnyEvent) -> Thread:
    return fold(Session(), events).threads[MAIN]


def call(id: str, sent: int) -> Call:
    return Call(id=id, usage=Usage(sent, 0, 0, 10), model=MODEL)


def stored(sent: int | None, held: int | None, window: int | None, source: str) -> ClientReported:
    client = ClientReported()
    row = ThreadRow("s", MAIN, 2, 1, source, "measured", at=50.0, sent=sent, held=held,
                    window=window)  # fmt: skip
    client.restore(row, MODEL)
    return client


def test_report_is_restored_with_its_reply() -> None:
    client = stored(90_000, 90_500, 200_000, "status line")
    assert client.call is not None
    assert (client.call.usage, client.call.at) == (Usage(90_000, 0, 0, 500), 50.0)
    assert (client.window, client.most_sent, client.source) == (200_000, 90_000, "status line")
    without_reply = stored(90_000, None, 200_000, "status line").call
    assert without_reply is not None
    assert without_reply.usage == Usage(90_000, 0, 0, 0)


def test_row_of_a_transcript_or_without_a_prompt_restores_no_report() -> None:
    assert stored(90_000, 90_500, 200_000, "transcript").call is None
    assert stored(None, None, 200_000, "status line").call is None


@pytest.mark.parametrize(("window", "most_sent"), [(90_000, 90_000), (None, 90_000), (89_999, 0)])
def test_restored_report_above_its_window_was_sent_under_another_model(
    window: int | None, most_sent: int
) -> None:
    assert stored(90_000, 90_500, window, "status line").most_sent == most_sent


def test_report_under_the_id_of_a_new_model_does_not_count_for_it_after_a_restart() -> None:
    client = stored(190_000, 190_000, 1_000_000, "status line")
    client.update(report(190_000, model=OTHER), OTHER, NO_CALLS, 2)
    assert client.most_sent == 0
    client.update(report(20_000, 101.0, OTHER), OTHER, NO_CALLS, 2)
    assert client.most_sent == 20_000


def test_call_under_the_old_model_does_not_count_for_the_new_one() -> None:
    main = thread_of(call("a", 190_000))
    assert reported(report(190_000, model=OTHER), main=main).most_sent == 0
    assert reported(report(190_000), main=main).most_sent == 190_000
    switch = report(190_000), report(190_000, 101.0, OTHER)
    assert reported(*switch).most_sent == 0
    assert reported(*switch, report(20_000, 102.0, OTHER)).most_sent == 20_000


def test_window_stays_known_when_a_report_has_none() -> None:
    assert reported(report(10, window=200_000), report(20, 101.0)).window == 200_000


@pytest.mark.parametrize("sent", [None, 0])
def test_report_of_nothing_held_removes_the_call(sent: int | None) -> None:
    assert reported(report(90_000), report(sent, 101.0)).call is None


@pytest.mark.parametrize(
    ("at", "is_late", "is_ignored"),
    [
        (100.0, False, False),
        (99.0, False, True),
        (100.0 - MAX_REORDER_S, False, False),
        (50.0, False, False),
        (50.0, True, True),
    ],
    ids=["same time", "overtaken", "5 s", "clock set back", "spooled"],
)
def test_older_report_is_ignored_unless_the_clock_was_set_back(
    at: float, is_late: bool, is_ignored: bool
) -> None:
    client = reported(report(90_000), report(80_000, at, is_late=is_late))
    assert client.call is not None
    assert client.call.usage.sent == (90_000 if is_ignored else 80_000)


@pytest.mark.parametrize("later", [Quotas(100.0), PromptCache(at=100.0)])
def test_older_quotas_are_ignored_if_quotas_or_a_cache_are_known(
    later: Quotas | PromptCache,
) -> None:
    client = ClientReported()
    known = {"quotas" if isinstance(later, Quotas) else "prompt_cache": later}
    client.update_report(replace(report(None), **known))
    before = client.report
    older = Quotas(99.0, five_hour=Quota(50.0, 1_000.0))
    client.update_report(replace(report(None, 99.0), quotas=older))
    assert client.report == before
    client.update_report(replace(report(None, 101.0), quotas=older))
    assert client.report.quotas == older


def test_repeated_report_keeps_its_time_until_there_is_another_call() -> None:
    client = reported(report(90_000), report(90_000, 110.0))
    assert client.call is not None
    assert client.call.at == 100.0
    main = thread_of(call("a", 50_000))
    client.update(report(90_000, 120.0), MODEL, main, 0)
    assert client.call.at == 120.0
    assert client.pending_call(main, 0) == client.call


def test_report_of_the_last_call_is_not_pending_in_its_cycle_only() -> None:
    main = thread_of(call("a", 50_000))
    client = reported(report(50_000), main=main)
    assert client.pending_call(main, 0) is None
    assert client.pending_call(main, 1) is not None
    assert ClientReported().pending_call(main, 0) is None
    assert client.pending_call(thread_of(call("a", 50_000), call("b", 60_000)), 0) is None


def test_context_decreases_only_from_a_known_report_to_another() -> None:
    client = reported(report(90_000))
    assert client.has_decreased(report(80_000))
    assert not client.has_decreased(report(90_000))
    assert not client.has_decreased(report(0))
    assert not client.has_decreased(report(None))
    assert not ClientReported().has_decreased(report(80_000))


def test_repeat_is_the_same_prompt_of_a_known_report() -> None:
    client = reported(report(90_000))
    assert client.is_repeat(report(90_000))
    assert not client.is_repeat(report(80_000))
    assert not client.is_repeat(report(None))
    assert not ClientReported().is_repeat(report(90_000))


@pytest.mark.parametrize(
    ("at", "is_late", "is_kept"), [(110.0, False, False), (110.0, True, False), (90.0, True, True)]
)
def test_end_of_a_cycle_keeps_only_a_report_that_was_later(
    at: float, is_late: bool, is_kept: bool
) -> None:
    client = reported(report(90_000))
    client.start_cycle(report(None, at, is_late=is_late), 1)
    assert (client.call is not None) is is_kept
    client.drop_older_cycles(1)
    assert (client.call is not None) is is_kept
    client.drop_older_cycles(2)
    assert client.call is None


def test_report_of_a_new_cycle_is_compared_with_no_call_of_the_old_one() -> None:
    main = thread_of(call("a", 150_000))
    client = ClientReported()
    for count in range(5):
        client.update(report(20_000 + count, 100.0 + 60 * count), MODEL, main, 1)
    assert not client.comparison.disagree
    compacted = thread_of(call("a", 150_000), Compacted(), call("b", 90_000))
    for count in range(5):
        client.update(report(20_000 + count, 500.0 + 60 * count), MODEL, compacted, 1)
    assert client.comparison.disagree


def test_report_before_a_restart_counts_until_the_file_has_another_call() -> None:
    """After a rewind only the client's report is right, until the next call."""
    client = ClientReported()
    row = ThreadRow("s", MAIN, 0, 1, "status line", "measured", at=50.0, sent=60_000, calls=2)
    client.restore(row, MODEL)
    read = [call("c1", 60_000), call("c2", 90_000)]
    pending = client.pending_call(thread_of(*read), 0)
    assert pending is not None
    assert pending.usage.sent == 60_000
    assert client.pending_call(thread_of(*read, call("c3", 61_000)), 0) is None


def test_window_reported_before_a_restart_holds_for_its_model_if_no_file_has_one() -> None:
    client = ClientReported()
    row = ThreadRow("s", MAIN, 0, 1, "transcript", "measured", window=640_000, model=MODEL,
                    window_origin="reported")  # fmt: skip
    client.restore(row, MODEL)
    assert client.window_for(thread_of(call("c1", 100))) == 640_000
    other = Call(id="c2", usage=Usage(100, 0, 0, 0), model=OTHER)
    assert client.window_for(thread_of(call("c1", 100), other)) is None
    recorded = thread_of(call("c1", 100), WindowReported(tokens=100_000))
    assert client.window_for(recorded) is None
    client.update(report(100, window=200_000), MODEL, NO_CALLS, 0)
    assert client.window_for(NO_CALLS) == 200_000


def test_window_that_the_client_did_not_report_is_not_restored_as_its_own() -> None:
    client = ClientReported()
    row = ThreadRow("s", MAIN, 0, 1, "transcript", "measured", window=640_000, model=MODEL,
                    window_origin="catalogue")  # fmt: skip
    client.restore(row, MODEL)
    assert client.window_for(NO_CALLS) is None
