"""The fold: deduplication, cycles, compactions and unknowns; pure, in any order."""

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import (
    MAIN,
    Added,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    Edited,
    Ended,
    Rewound,
    SessionSeen,
    Spent,
    Trigger,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.context.tracker import (
    SYNTHETIC,
    Compared,
    PromptChange,
    Reading,
    Session,
    Thread,
    client_shows,
    decode_calls,
    encode_calls,
    fold,
    main_thread,
    merge_sessions,
    read,
    resolve_context,
    total,
)
from brimline.context.usage import ZERO, Usage
from brimline.context.window import NO_CLIENT_SETTINGS, ClientSettings, Overrides, Window

RECORDING = SessionSeen(agent="claude", version="2.1.325", records_compactions=True)
SILENT = SessionSeen(agent="gemini", records_compactions=False)


def call(
    id: str,
    sent: int = 1_000,
    output: int = 10,
    model: str | None = "claude-sonnet-4-5",
    thread: str = MAIN,
    at: float | None = None,
    asked_for: str | None = None,
    final: bool = True,
    can_compact: bool = True,
) -> Call:
    """A call with this many prompt tokens, a tenth of them not from the cache."""
    uncached = sent // 10
    return Call(
        at=at,
        id=id,
        usage=Usage(uncached, sent - uncached, 0, output),
        model=model,
        asked_for=asked_for,
        thread=thread,
        final=final,
        can_compact=can_compact,
    )


def session_of(*events: AnyEvent) -> Session:
    return fold(Session(), events)


def thread_of(*events: AnyEvent) -> Thread:
    """The main thread after these events."""
    return session_of(*events).threads[MAIN]


def reading_of(*events: AnyEvent) -> Reading:
    """The main thread's reading after these events."""
    session = session_of(*events)
    return read(session, session.threads[MAIN], "transcript")


def sent_now(thread: Thread) -> int | None:
    """The current prompt size."""
    return thread.current_call.usage.sent if thread.current_call else None


# Sessions and threads.


def test_no_event_changes_nothing() -> None:
    assert fold(Session(), []) == Session()
    assert main_thread(Session()) is None


def test_later_fact_replaces_an_earlier_one_unless_none() -> None:
    session = session_of(
        SessionSeen(session="s", agent="claude", project="/p", version="1.0.60", title="a"),
        SessionSeen(version="2.1.325", records_compactions=True),
        SessionSeen(title="b", at=5.0),
    )
    assert session == Session("claude", "s", "/p", "2.1.325", "b", True, 5.0)


def test_subagent_does_not_change_the_main_context() -> None:
    session = session_of(call("a", 5_000), call("b", 900, thread="agent-1"), call("c", 6_000))
    assert set(session.threads) == {MAIN, "agent-1"}
    assert sent_now(session.threads[MAIN]) == 6_000
    assert sent_now(session.threads["agent-1"]) == 900
    assert main_thread(session) is session.threads[MAIN]


def test_session_time_is_the_latest_of_all_events() -> None:
    session = session_of(call("a", at=3.0), call("b", at=5.0), call("c"), Ended(at=4.0))
    assert session.at == 5.0


# Calls.


def test_copies_of_a_call_are_one_with_the_last_figures() -> None:
    thread = thread_of(call("a", output=1), call("b"), call("a", output=250))
    assert list(thread.calls) == ["a", "b"]
    assert thread.calls["a"].usage.output == 250
    assert thread.current == "b"
    assert thread.total.output == 260


def test_copy_replaces_the_whole_usage() -> None:
    thread = thread_of(
        Call(id="a", usage=Usage(1, 500, 0, 1)), Call(id="a", usage=Usage(400, 0, 90, 7))
    )
    assert thread.calls["a"].usage == Usage(400, 0, 90, 7)


def test_synthetic_reply_is_no_call() -> None:
    before = thread_of(call("a", 5_000))
    after = thread_of(call("a", 5_000), call("x", 0, 0, model=SYNTHETIC))
    assert after == before
    assert session_of(call("x", 9, model=SYNTHETIC)).threads.get(MAIN, Thread(MAIN)).calls == {}


def test_last_call_names_the_model_as_the_user_named_it() -> None:
    assert Thread(MAIN).last is None
    assert Thread(MAIN).model is None
    thread = thread_of(call("a"), call("b", model="claude-opus-4-6", asked_for="opus[1m]"))
    assert thread.model == "opus[1m]"
    assert thread.models == ("claude-sonnet-4-5", "claude-opus-4-6")
    assert thread_of(call("a", model=None)).models == ()


def test_model_switch_is_no_compaction() -> None:
    thread = thread_of(SILENT, call("a", 150_000), call("b", 40_000, model="claude-opus-5-5"))
    assert thread.compactions == ()
    assert thread.cycle == 0
    assert thread.model == "claude-opus-5-5"


def test_peak_is_the_largest_prompt_even_before_a_compaction() -> None:
    assert Thread(MAIN).peak_sent is None
    thread = thread_of(RECORDING, call("a", 9_000), Compacted(), call("b", 2_000))
    assert thread.peak_sent == 9_000


def test_billed_tokens_without_calls_are_in_the_total_only() -> None:
    thread = thread_of(
        call("a", 1_000, 10), Spent(usage=Usage(0, 0, 0, 90)), Spent(usage=Usage(5, 0, 0, 0))
    )
    assert thread.spent == Usage(5, 0, 0, 90)
    assert thread.total == Usage(105, 900, 0, 100)
    assert sent_now(thread) == 1_000


def test_billed_tokens_are_added_by_model_and_replaced_by_id() -> None:
    usage, more = Usage(5, 0, 0, 1), Usage(7, 0, 0, 2)
    thread = thread_of(
        Spent(usage=usage, model="m", cost=0.5),
        Spent(usage=usage, model="m", id="a", cost=0.5),
        Spent(usage=usage, model="n"),
        Spent(usage=more, model="m", cost=0.25, at=9.0),
        Spent(usage=more, model="m", id="a", cost=0.25),
        Spent(usage=more, model="n", cost=0.25),
        Spent(usage=usage, model="p", cost=0.5),
        Spent(usage=more, model="p"),
        Spent(usage=usage, model="q", stored_cost=0.5),  # from before a restart
        Spent(usage=more, model="q", cost=0.25),
    )
    assert thread.spendings == (
        Spent(usage=usage + more, model="m", cost=0.75, at=9.0),
        Spent(usage=more, model="m", id="a", cost=0.25),
        Spent(usage=usage + more, model="n"),
        Spent(usage=usage + more, model="p"),
        Spent(usage=usage + more, model="q", cost=0.75),
    )


def test_ended_thread_keeps_its_context() -> None:
    thread = thread_of(call("a", 5_000), Ended(at=7.0))
    assert thread.ended
    assert thread.at == 7.0
    assert sent_now(thread) == 5_000


def test_new_call_reopens_an_ended_thread() -> None:
    assert not thread_of(call("a"), Ended(), call("b")).ended


# Compactions.


def test_recorded_compaction_has_before_and_trigger_and_next_call_gives_after() -> None:
    thread = thread_of(
        RECORDING,
        call("a", 150_000),
        call("b", 166_000, 500),
        Compacted(at=9.0, trigger="auto", before=167_300, after=2_961),
    )
    (compaction,) = thread.compactions
    assert (compaction.at, compaction.trigger, compaction.before) == (9.0, "auto", 167_300)
    assert (compaction.after, compaction.calls, compaction.inferred) == (2_961, 2, False)
    assert thread.cycle == 1
    later = thread_of(
        RECORDING, call("a", 150_000), Compacted(before=151_000, after=2_961), call("c", 42_000)
    )
    assert [(c.before, c.after) for c in later.compactions] == [(151_000, 42_000)]


def test_compaction_without_before_takes_the_last_context() -> None:
    thread = thread_of(RECORDING, call("a", 150_000, 700), Compacted())
    assert thread.compactions[0].before == 150_700


def test_compaction_before_the_first_call_has_no_before() -> None:
    thread = thread_of(Compacted(), call("a", 30_000))
    assert [(c.before, c.after, c.calls) for c in thread.compactions] == [(None, 30_000, 0)]


def test_two_compactions_without_a_call_are_two_cycles() -> None:
    thread = thread_of(
        RECORDING, call("a", 150_000), Compacted(before=151_000), Compacted(), call("b", 20_000)
    )
    assert [(c.before, c.after) for c in thread.compactions] == [(151_000, None), (None, 20_000)]
    assert thread.cycle == 2


def test_repeated_compaction_is_one_and_may_add_after() -> None:
    events = [RECORDING, call("a", 150_000), Compacted(at=5.0, before=151_000)]
    again = thread_of(*events, Compacted(at=5.0))
    assert again == thread_of(*events)
    thread = thread_of(*events, Compacted(at=5.0, after=12_000))
    assert [(c.before, c.after) for c in thread.compactions] == [(151_000, 12_000)]
    assert thread_of(*events, Compacted(at=6.0)).cycle == 2
    assert thread_of(*events, call("b", 20_000), Compacted(at=5.0)).cycle == 2
    second = [call("b", 140_000), Compacted(at=9.0), Compacted(at=9.0, after=9_000)]
    thread = thread_of(*events, *second)
    assert [(c.at, c.after) for c in thread.compactions] == [(5.0, 140_000), (9.0, 9_000)]


def test_summary_that_was_reported_as_a_call_is_moved_to_the_compaction() -> None:
    """Its prompt is the whole context, but it neither holds it nor is its peak."""
    session = session_of(
        RECORDING,
        call("a", 90_000),
        call("s", 95_000),
        Compacted(summary_call="s"),
        call("b", 9_000),
    )
    main, summary = session.threads[MAIN], session.threads["compaction"]
    assert (list(main.calls), main.peak_sent, list(summary.calls)) == (["a", "b"], 90_000, ["s"])
    assert [(c.before, c.after, c.calls) for c in main.compactions] == [(90_010, 9_000, 1)]
    assert total(session.threads.values())[0] == 3


def test_summary_alone_leaves_no_call() -> None:
    session = session_of(RECORDING, call("s", 95_000), Compacted(summary_call="s"))
    assert (len(session.threads[MAIN].calls), session.threads[MAIN].current) == (0, None)
    assert session.threads[MAIN].compactions[0].before is None


def test_summary_that_is_not_the_last_call_stays_where_it_is() -> None:
    session = session_of(RECORDING, call("s"), call("b", 2_000), Compacted(summary_call="s"))
    assert list(session.threads) == [MAIN]
    assert list(session.threads[MAIN].calls) == ["s", "b"]


def test_summary_of_an_earlier_cycle_stays_where_it_is() -> None:
    again = Compacted(summary_call="s")
    session = session_of(RECORDING, call("s"), Compacted(), again)
    assert list(session.threads) == [MAIN]
    assert list(session.threads[MAIN].calls) == ["s"]
    assert session_of(RECORDING, again).threads[MAIN].cycle == 1  # there is no call at all


def test_later_calls_do_not_change_what_a_compaction_left() -> None:
    thread = thread_of(
        RECORDING, call("a", 150_000), Compacted(), call("a", 150_000), call("b", 20_000),
        call("c", 60_000),
    )  # fmt: skip
    assert thread.compactions[0].after == 20_000


def test_context_after_a_compaction_is_unknown_until_the_next_reply() -> None:
    events = [RECORDING, call("a", 150_000), Compacted(before=151_000)]
    reading = reading_of(*events)
    assert (reading.sent, reading.held, reading.percent) == (None, None, None)
    assert (reading.percent_raw, reading.percent_of_limit) == (None, None)
    assert (reading.client_shows, reading.state) == (None, "unknown")
    assert reading.window is not None
    assert reading_of(*events, call("b", 30_000)).sent == 30_000


def test_copy_of_an_older_call_after_a_compaction_is_not_the_context() -> None:
    thread = thread_of(RECORDING, call("a", 150_000), Compacted(), call("a", 150_000))
    assert thread.current is None


def test_first_call_after_a_clear_is_not_what_the_compaction_left() -> None:
    thread = thread_of(RECORDING, call("a", 150_000), Compacted(), Cleared(), call("b", 9_000))
    assert thread.compactions[0].after is None
    assert thread.cycle == 2


def test_state_is_compacting_until_the_compaction_ends() -> None:
    assert reading_of(call("a"), Compacting()).state == "compacting"
    assert reading_of(call("a"), Compacting(), Compacted()).state == "unknown"
    assert reading_of(call("a"), Compacting(), call("b")).state == "measured"


def test_clear_ends_the_compacting_state() -> None:
    assert reading_of(call("a"), Compacting(), Cleared()).state == "unknown"


def test_unexplained_fall_is_an_inferred_compaction() -> None:
    thread = thread_of(SILENT, call("a", 100_000, 500), call("b", 40_000, at=3.0))
    (compaction,) = thread.compactions
    assert compaction.inferred
    assert (compaction.before, compaction.after) == (100_500, 40_000)
    assert (compaction.at, compaction.trigger, compaction.calls) == (3.0, None, 1)
    assert (thread.cycle, thread.current) == (1, "b")


def test_record_that_comes_late_confirms_the_compaction_that_was_inferred() -> None:
    """Copilot CLI reports a compaction at the end of its turn, after later calls."""
    calls = [call("a", 100_000, at=1.0), call("b", 40_000, at=3.0), call("c", 50_000, at=4.0)]
    thread = thread_of(*calls, Compacted(at=2.0, is_late=True))
    (compaction,) = thread.compactions
    assert (compaction.inferred, compaction.at, compaction.calls) == (False, 2.0, 1)
    assert (thread.cycle, thread.current, thread.at) == (1, "c", 4.0)
    later = [call("d", 9_000, at=6.0), Compacted(at=5.0, is_late=True)]
    thread = thread_of(*calls, *later)
    assert [each.inferred for each in thread.compactions] == [True, False]


def test_record_that_comes_late_ends_no_later_cycle() -> None:
    calls = [call("a", 100_000, at=1.0), call("b", 90_000, at=3.0)]
    thread = thread_of(*calls, Compacted(at=2.0, is_late=True))
    assert (thread.compactions, thread.cycle, thread.current) == ((), 0, "b")


def test_record_that_comes_in_time_ends_the_cycle() -> None:
    for at in (2.0, None):
        thread = thread_of(call("a", 100_000, at=1.0), Compacted(at=at, is_late=True))
        assert (thread.cycle, thread.current) == (1, None)


def test_first_call_that_reports_a_compaction_follows_one() -> None:
    """Every call after a compaction reports it: only the first of them ends a cycle."""
    plain, compacted = call("a", 100_000), [call("b", 95_000), call("c", 99_000)]
    calls = [msgspec.structs.replace(each, is_compacted=True) for each in compacted]
    thread = thread_of(msgspec.structs.replace(plain, is_compacted=False), *calls)
    (compaction,) = thread.compactions
    assert (compaction.inferred, compaction.before, compaction.after) == (False, 100_010, 95_000)
    assert thread_of(plain, *calls).compactions == ()  # the call before may have been compacted


@pytest.mark.parametrize(
    ("before", "after", "inferred"),
    [
        (100_000, 70_000, False),
        (100_000, 69_999, True),
        (20_000, 10_000, False),
        (20_000, 9_999, True),
        (14_000, 3_500, True),
        (10_000, 0, False),
        (50_000, 90_000, False),
    ],
)
def test_fall_counts_below_a_share_of_0_7_and_by_more_than_10000_tokens(
    before: int, after: int, inferred: bool
) -> None:
    thread = thread_of(SILENT, call("a", before), call("b", after))
    assert [c.inferred for c in thread.compactions] == [True] * inferred


def test_large_fall_without_a_record_is_an_inferred_compaction_once_confirmed() -> None:
    """Plan mode clears the context of a client that records its compactions, without a record."""
    events = [RECORDING, call("a", 100_000, 500), call("b", 40_000, at=3.0)]
    assert (thread_of(*events).compactions, thread_of(*events).cycle) == ((), 0)
    thread = thread_of(*events, call("c", 42_000, at=4.0))
    (compaction,) = thread.compactions
    assert (compaction.inferred, compaction.at, compaction.calls) == (True, 3.0, 1)
    assert (compaction.before, compaction.after) == (100_500, 40_000)
    assert (thread.cycle, thread.current, thread.sents_of_cycle) == (1, "c", [40_000, 42_000])
    assert thread_of(*events, call("c", 42_000), call("d", 44_000)).cycle == 1


@pytest.mark.parametrize(
    ("before", "after", "inferred"),
    [
        (200_000, 121_000, False),
        (200_000, 119_000, True),
        (40_000, 21_000, False),
        (40_000, 19_000, True),
    ],
)
def test_fall_in_spite_of_records_counts_below_0_6_and_by_more_than_20000_tokens(
    before: int, after: int, inferred: bool
) -> None:
    thread = thread_of(RECORDING, call("a", before), call("b", after), call("c", after))
    assert [c.inferred for c in thread.compactions] == [True] * inferred


@pytest.mark.parametrize(
    "after_fall",
    [
        [call("c", 101_000)],
        [call("c", 42_000, model="claude-opus-5")],
        [Compacted(), call("c", 42_000)],
        [Cleared(), call("c", 42_000)],
        [Trimmed(), call("c", 42_000)],
        [Rewound(to="b"), call("c", 42_000)],
        [Edited(call="b", kind="cleared"), call("c", 42_000)],
    ],
    ids=["flapping", "model", "compacted", "cleared", "trimmed", "rewound", "edited"],
)
def test_fall_that_is_not_confirmed_is_no_compaction(after_fall: list[AnyEvent]) -> None:
    """A gateway may leave out the cache for one call; a later record explains the fall."""
    events = [RECORDING, call("a", 100_000), call("b", 40_000), *after_fall]
    assert not any(compaction.inferred for compaction in thread_of(*events).compactions)


def test_limit_that_was_disproved_before_a_fall_stays_disproved() -> None:
    calls = [call(id, 180_000) for id in "abc"]
    for recording in ([RECORDING], []):
        thread = thread_of(*recording, *calls, call("d", 30_000), call("e", 31_000))
        assert (thread.cycle, thread.sustained_sent) == (1, 180_000)


def test_compaction_is_inferred_if_recording_is_unknown() -> None:
    assert len(thread_of(call("a", 100_000), call("b", 20_000)).compactions) == 1


def test_partial_copy_never_replaces_a_final_one() -> None:
    final = call("a", 5_000, 700)
    begun = msgspec.structs.replace(call("a", 5_000, 1), final=False)
    assert thread_of(begun, final, begun).calls["a"] == final
    assert thread_of(begun).calls["a"] == begun
    longer = msgspec.structs.replace(call("a", 5_000, 90), final=False)
    assert thread_of(begun, longer).calls["a"] == longer


def test_tokens_left_are_never_negative_or_unknown() -> None:
    near = read(*_alone(150_000), "test", Overrides(limits={"*": 160_000}))
    assert near.left == 9_990
    assert read(*_alone(170_000), "test", Overrides(limits={"*": 160_000})).left == 0
    assert read(*_alone(150_000), "test").left is None
    assert not read(*_alone(150_000), "test").left_of_window
    assert read(Session(), Thread(MAIN), "test", Overrides(limits={"*": 160_000})).left is None


def test_tokens_left_end_with_the_window_if_the_client_compacts_beyond_it() -> None:
    """Claude Code 2.1.325 compacts a model that it does not know at 967,000 tokens."""
    reading = reading_of(RECORDING, call("a", 262_000, 100, model="kimi-k2.5"))
    assert reading.limit is not None
    assert (reading.limit.tokens, reading.percent) == (967_000, 99.9)
    assert (reading.left, reading.left_of_window) == (44, True)


def _alone(sent: int) -> tuple[Session, Thread]:
    session = session_of(call("a", sent, 10))
    return session, session.threads[MAIN]


CLEARED = Edited(call="b", kind="cleared")
SUMMARISED = Edited(call="b", kind="compaction")


@pytest.mark.parametrize("edit", [CLEARED, SUMMARISED], ids=["cleared", "compaction"])
@pytest.mark.parametrize("is_first", [True, False], ids=["edit first", "call first"])
def test_edit_of_the_api_with_a_large_fall_begins_a_cycle(edit: Edited, is_first: bool) -> None:
    """Otherwise levels that fired would never fire again."""
    news = [edit, call("b", 20_000)] if is_first else [call("b", 20_000), edit]
    thread = thread_of(call("a", 150_000), *news, edit)
    (compaction,) = thread.compactions
    assert (compaction.before, compaction.after, compaction.calls) == (150_010, 20_000, 1)
    assert (compaction.inferred, thread.cycle, thread.edits) == (False, 1, 1)
    assert thread.current_call is not None
    assert thread.current_call.id == "b"


@pytest.mark.parametrize("is_first", [True, False], ids=["edit first", "call first"])
def test_compaction_of_the_api_begins_a_cycle_without_a_large_fall(is_first: bool) -> None:
    news = [SUMMARISED, call("b", 90_000)] if is_first else [call("b", 90_000), SUMMARISED]
    thread = thread_of(call("a", 95_000), *news, call("c", 91_000))
    assert [(each.before, each.after, each.calls) for each in thread.compactions] == [
        (95_010, 90_000, 1)
    ]
    assert thread.sents_of_cycle == [90_000, 91_000]


def test_edit_without_a_large_fall_begins_no_cycle() -> None:
    thread = thread_of(call("a", 95_000), CLEARED, call("b", 90_000))
    assert (thread.compactions, thread.cycle, thread.edits) == ((), 0, 1)


def test_edit_of_an_old_call_that_is_reported_again_is_ignored() -> None:
    events = (call("a", 95_000), call("b", 90_000), SUMMARISED, call("c", 91_000))
    later = Edited(call="c", kind="cleared")
    assert thread_of(*events, later, SUMMARISED).cycle == 1


def test_compaction_of_the_api_before_the_first_call_begins_no_cycle() -> None:
    assert thread_of(SUMMARISED, call("b", 20_000)).cycle == 0


def test_edit_explains_the_fall_at_its_own_call_only() -> None:
    fell = (call("a", 150_000), call("b", 20_000))
    assert thread_of(*fell, Edited(call="a", kind="cleared")).cycle == 1
    assert thread_of(*fell, call("c", 21_000), Edited(call="c", kind="cleared")).cycle == 1
    thread = thread_of(RECORDING, fell[0], Compacted(), fell[1], Edited(call="b", kind="cleared"))
    assert (len(thread.compactions), thread.cycle) == (1, 1)


@pytest.mark.parametrize("between", [Trimmed(), Cleared(), Rewound(to=None), Compacted()], ids=repr)
def test_explained_fall_is_no_compaction(between: AnyEvent) -> None:
    thread = thread_of(SILENT, call("a", 100_000), between, call("b", 20_000))
    assert not any(c.inferred for c in thread.compactions)


def test_smaller_copy_of_a_call_is_no_compaction() -> None:
    thread = thread_of(SILENT, call("a", 100_000), call("a", 20_000))
    assert thread.compactions == ()


def test_only_automatic_compactions_without_an_overflow_show_the_limit() -> None:
    assert Thread(MAIN).compacted_at == ()
    events: list[AnyEvent] = [RECORDING]
    for before in (100, 160, 170, 155, 180, 190):
        events.append(Compacted(trigger="auto", before=before))
    events += [
        Compacted(trigger="manual", before=5),
        Compacted(before=6),
        Compacted(trigger="auto"),
        Compacted(trigger="auto", before=500, overflow=True),
    ]
    assert thread_of(*events).compacted_at == (160, 170, 155, 180, 190)


def test_sustained_is_what_two_calls_in_a_row_sent() -> None:
    calls = [call(str(n), sent) for n, sent in enumerate((100, 180, 175, 190))]
    assert thread_of(RECORDING, calls[0]).sustained_sent == 0
    assert thread_of(RECORDING, *calls[:2]).sustained_sent == 100
    assert thread_of(RECORDING, *calls[:3]).sustained_sent == 175
    for end in (Compacted(trigger="manual"), Cleared()):
        assert thread_of(RECORDING, *calls[:2], end, calls[3]).sustained_sent == 100
    other = call("x", 900, model="claude-opus-5-5")
    assert thread_of(RECORDING, *calls, other).sustained_sent == 0


def test_calls_before_which_the_client_cannot_compact_disprove_no_limit() -> None:
    """Gemini CLI cuts its history only before a prompt other than the first."""
    calls = [call(str(n), 180, can_compact=n == 3) for n in range(4)]
    assert thread_of(RECORDING, *calls[:3]).sustained_sent == 0
    assert thread_of(RECORDING, *calls).sustained_sent == 180


def test_automatic_compaction_restores_a_disproved_limit() -> None:
    calls = [call(str(n), 180) for n in range(3)]
    assert thread_of(RECORDING, *calls, Compacted(trigger="auto")).sustained_sent == 0
    first = [*calls, Cleared(), call("x", 20)]
    assert thread_of(RECORDING, *first).sustained_sent == 180
    assert thread_of(RECORDING, *first, Compacted(trigger="auto")).sustained_sent == 0


@pytest.mark.parametrize(
    ("sent", "can_compact", "warning"),
    [
        (166_999, False, None),
        (167_000, True, None),
        (167_000, False, "the client cannot compact before the next prompt"),
    ],
)
def test_limit_that_the_client_cannot_act_on_yet_says_so(
    sent: int, can_compact: bool, warning: str | None
) -> None:
    reading = reading_of(RECORDING, call("a", sent, 0, can_compact=can_compact))
    assert reading.limit is not None
    assert (reading.limit.tokens, reading.limit.warning) == (167_000, warning)


def test_first_sent_is_what_the_cycle_began_with() -> None:
    calls = [call(str(n), sent) for n, sent in enumerate((100, 180, 40, 60))]
    assert thread_of(RECORDING, calls[0]).first_sent is None  # perhaps the end of a file
    assert thread_of(RECORDING, *calls[:2]).first_sent == 100
    assert thread_of(RECORDING, *calls[:2], Compacted()).first_sent is None
    assert thread_of(RECORDING, *calls[:2], Compacted(), *calls[2:]).first_sent == 40


def test_late_compaction_of_the_client_shows_that_the_limit_is_enforced() -> None:
    """Pi 0.87.1 compacts between turns, and does not write whether a user asked for it."""
    calls = [call(str(n), 180) for n in range(4)]
    after_overflow = Compacted(trigger="auto", overflow=True)
    assert thread_of(RECORDING, *calls[:3], Compacted(), calls[3]).sustained_sent == 0
    assert thread_of(RECORDING, *calls[:3], after_overflow, calls[3]).sustained_sent == 180


def test_trim_in_the_next_cycle_does_not_change_what_a_compaction_left() -> None:
    thread = thread_of(
        RECORDING, call("a", 150_000), Compacted(), call("b", 20_000), Trimmed(), call("c", 9_000)
    )
    assert thread.compactions[0].after == 20_000


# Trim, clear, rewind.


def test_trim_makes_the_context_unknown_in_the_same_cycle() -> None:
    thread = thread_of(call("a", 100_000), Trimmed())
    assert (thread.current, thread.cycle, thread.compactions) == (None, 0, ())
    assert thread.last is not None
    assert thread.last.id == "a"


def test_clear_begins_a_cycle_with_an_unknown_context() -> None:
    thread = thread_of(call("a", 100_000), Cleared(at=4.0))
    assert (thread.current, thread.cycle, thread.compactions) == (None, 1, ())
    assert thread.at == 4.0


def test_compaction_right_after_a_clear_is_the_same_end_of_a_cycle() -> None:
    thread = thread_of(RECORDING, call("a", 9_000), Cleared(), Compacted(), call("b", 8_000))
    assert (thread.cycle, thread.clears, len(thread.compactions)) == (1, (), 1)


def test_rewind_restores_the_context_and_keeps_the_bill() -> None:
    thread = thread_of(call("a", 5_000), call("b", 50_000), Rewound(to="a"))
    assert sent_now(thread) == 5_000
    assert thread.last is not None
    assert thread.last.id == "a"
    assert len(thread.calls) == 2
    assert thread.cycle == 0


def test_rewind_to_the_start_makes_the_context_unknown() -> None:
    assert thread_of(call("a", 5_000), Rewound(to=None)).current is None


def test_rewind_to_an_unknown_call_is_ignored() -> None:
    assert thread_of(call("a", 5_000), Rewound(to="z")).current == "a"


def test_changes_of_the_prompt_are_kept_with_their_places() -> None:
    edited = Edited(call="d", kind="clear_tool_uses")
    events = (
        *(call("a", 5_000), call("b", 50_000), Rewound(to="a"), Rewound(to="a")),
        *(call("c"), Trimmed(), edited, call("d"), Edited(call="c", kind="cleared")),
        *(Rewound(to=None), call("e")),
    )
    assert thread_of(*events).changes == (
        PromptChange(2, "rewind", "a"),
        PromptChange(3, "context edit"),
        PromptChange(3, "context edit"),
        PromptChange(4, "rewind", None),
    )


def test_new_version_and_effort_change_the_prompt_of_every_thread() -> None:
    sub = call("s", thread="helper")
    same = SessionSeen(version="1.0", effort="low")
    new = SessionSeen(version="1.1", effort="high")
    session = session_of(Ended(thread="empty"), same, call("a"), sub, same, call("b"), new)
    kinds = ("resume", "effort switch")
    threads = {name: [*thread.changes] for name, thread in session.threads.items()}
    assert threads == {
        "empty": [],
        MAIN: [PromptChange(2, kind) for kind in kinds],
        "helper": [PromptChange(1, kind) for kind in kinds],
    }
    assert session.effort == "high"


# Windows.


def test_last_window_reported_for_a_model_counts() -> None:
    events: list[AnyEvent] = [
        RECORDING,
        WindowReported(tokens=111, model="other"),
        WindowReported(tokens=500_000, model="claude-opus-4-6"),
        WindowReported(tokens=600_000, model="claude-opus-4-6"),
        WindowReported(tokens=700_000, model="claude-opus-4-6[1m]"),
    ]
    named = reading_of(*events, call("a", model="claude-opus-4-6")).window
    reading = reading_of(
        *events, call("a", model="claude-opus-4-6", asked_for="claude-opus-4-6[1m]")
    ).window
    switched = reading_of(*events, call("a", model="claude-sonnet-4-5")).window
    assert named is not None
    assert (named.tokens, named.origin) == (600_000, "reported")
    assert reading is not None
    assert (reading.tokens, reading.origin) == (700_000, "reported")
    assert switched is not None
    assert (switched.tokens, switched.origin) == (200_000, "client")


def test_proved_window_is_observed_and_a_reported_one_comes_first() -> None:
    proved = WindowReported(tokens=1_000_000, model="claude-opus-4-6", is_evidence=True)
    own = call("a", model="claude-opus-4-6")
    window = reading_of(RECORDING, proved, own).window
    assert window is not None
    assert (window.tokens, window.origin) == (1_000_000, "observed")
    reported = WindowReported(tokens=200_000, model="claude-opus-4-6")
    window = reading_of(RECORDING, reported, proved, own).window
    assert window is not None
    assert (window.tokens, window.origin) == (200_000, "reported")


def test_proved_windows_of_all_files_are_merged() -> None:
    proved = WindowReported(tokens=1_000_000, model="claude-opus-4-6", is_evidence=True)
    merged = merge_sessions([fold(Session(), [proved]), Session()])
    assert merged.observed_windows == {"claude-opus-4-6": 1_000_000}


def test_window_reported_without_a_model_applies_to_any() -> None:
    events = [SessionSeen(agent="codex"), WindowReported(tokens=353_400)]
    before = reading_of(*events)
    assert before.window is not None
    assert (before.window.tokens, before.window.origin) == (353_400, "reported")
    reading = reading_of(*events, call("a", 100_000), WindowReported(tokens=258_400))
    assert reading.window is not None
    assert reading.window.tokens == 258_400


def test_prompt_of_a_larger_model_does_not_disprove_the_window() -> None:
    reading = reading_of(
        RECORDING,
        call("a", 500_000, model="claude-opus-5-5"),
        Compacted(trigger="manual", before=500_500),
        call("b", 30_000, model="claude-sonnet-4-5"),
    )
    assert reading.window is not None
    assert (reading.window.tokens, reading.window.origin) == (200_000, "client")
    assert reading.percent == 15.0


def test_learned_limit_does_not_apply_to_another_model() -> None:
    reading = reading_of(
        RECORDING,
        call("a", 160_000, model="claude-sonnet-4-5"),
        Compacted(trigger="auto", before=160_500),
        call("b", 40_000, model="claude-opus-5-5"),
    )
    assert reading.limit is not None
    assert (reading.limit.tokens, reading.limit.origin) == (967_000, "known")


@pytest.mark.parametrize("tokens", [0, -1])
@pytest.mark.parametrize("calls", [(), (call("a", 30_000),), (call("a", 0, 7),)], ids=len)
def test_reported_window_of_0_is_ignored(calls: tuple[Call, ...], tokens: int) -> None:
    reading = reading_of(RECORDING, *calls, WindowReported(tokens=tokens))
    assert reading.window is None or reading.window.tokens > 0


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini", "pi", "opencode"])
@pytest.mark.parametrize("size", [1, 12_000, 16_384, 20_000, 33_000])
def test_any_small_window_gives_valid_figures(agent: str, size: int) -> None:
    session = session_of(SessionSeen(agent=agent), call("a", 500))
    reading = read(session, session.threads[MAIN], "transcript", Overrides(windows={"*": size}))
    assert reading.percent is not None
    assert 0 <= reading.percent <= 100
    assert reading.percent_of_limit is None or reading.percent_of_limit >= 0


# Readings.


def test_reading_has_every_figure_its_source_and_time() -> None:
    reading = reading_of(RECORDING, call("a", 64_340, 660, at=12.5))
    assert (reading.sent, reading.held) == (64_340, 65_000)
    assert (reading.percent, reading.percent_raw) == (32.2, 32.2)
    assert reading.percent_of_limit == 38.9
    assert (reading.source, reading.at, reading.state) == ("transcript", 12.5, "measured")


def test_usage_above_a_set_window_shows_in_the_raw_percentage() -> None:
    session = session_of(RECORDING, call("a", 250_000))
    overrides = Overrides(windows={"claude": 200_000}, limits={"claude": 100_000})
    reading = read(session, session.threads[MAIN], "stream", overrides)
    assert (reading.percent, reading.percent_raw) == (100.0, 125.0)
    assert reading.percent_of_limit == 250.0


def test_unknown_window_gives_tokens_without_a_percentage() -> None:
    reading = reading_of(SessionSeen(agent="pi"), call("a", 5_000, model="my-local-model"))
    assert (reading.sent, reading.window, reading.limit) == (5_000, None, None)
    assert (reading.percent, reading.percent_raw, reading.percent_of_limit) == (None, None, None)
    assert reading.client_shows is None


def test_state_is_streaming_until_the_final_copy() -> None:
    begun, final = call("a", 5_000, 1, final=False), call("a", 5_000, 90)
    assert reading_of(begun).state == "streaming"
    assert reading_of(begun, final).state == "measured"


def test_limit_learned_elsewhere_goes_before_the_threads_own() -> None:
    settings = ClientSettings(limit=5)
    session = session_of(
        RECORDING, call("a", 9_000), Compacted(trigger="auto", before=9_500), call("b", 100)
    )
    context = resolve_context(session, session.threads[MAIN], settings)
    assert (context.agent, context.model, context.version) == (
        "claude",
        "claude-sonnet-4-5",
        "2.1.325",
    )
    assert (context.most_sent, context.compacted_at, context.settings) == (
        9_000,
        (9_500,),
        settings,
    )
    empty = resolve_context(Session(), Thread(MAIN), NO_CLIENT_SETTINGS)
    assert (empty.model, empty.most_sent, empty.compacted_at) == (None, 0, ())


@pytest.mark.parametrize(
    ("agent", "held", "sent", "size", "expected"),
    [
        ("claude", 175_111, 175_070, 200_000, "97% of 180,000 in the footer"),
        ("claude", 190_000, 190_000, 200_000, "100% of 180,000 in the footer"),
        ("codex", 60_821, 60_000, 258_400, "80% left"),
        ("codex", 6_038, 6_000, 258_400, "100% left"),
        ("codex", 300_000, 300_000, 258_400, "0% left"),
        ("gemini", 5, 5, 1_048_576, None),
        (None, 5, 5, 200_000, None),
        ("claude", None, None, 200_000, None),
        ("codex", 5, None, 258_400, None),
        ("codex", 5, 5, None, None),
    ],
)
def test_client_percentage_follows_the_clients_own_formula(
    agent: str | None, held: int | None, sent: int | None, size: int | None, expected: str | None
) -> None:
    """Codex takes 12,000 off both sides; Claude Code's footer divides by 20,000 less."""
    window = None if size is None else Window(size, "reported", "")
    assert client_shows(agent, held, sent, window) == expected


# Totals.


def test_call_of_a_fork_counts_once_in_the_total() -> None:
    first = thread_of(call("a", 1_000, 10), call("b", 2_000, 20), Spent(usage=Usage(0, 0, 0, 5)))
    fork = thread_of(call("a", 1_000, 10), call("b", 2_000, 20), call("c", 3_000, 30))
    assert total([first, fork]) == (3, Usage(600, 5_400, 0, 65))
    assert total([]) == (0, ZERO)


@given(st.permutations([0, 1, 2]))
def test_total_of_forks_does_not_depend_on_their_order(order: list[int]) -> None:
    threads = [
        thread_of(call("a", 1_000, 1, final=False)),
        thread_of(call("a", 1_000, 90), call("b")),
        thread_of(call("a", 1_000, 90), call("c")),
    ]
    assert total([threads[n] for n in order]) == total(threads[1:])


def test_streaming_call_counts_until_its_final_copy_does() -> None:
    begun, final = call("a", 1_000, 1, final=False), call("a", 1_000, 90)
    assert total([thread_of(begun)]) == (1, begun.usage)
    for threads in ([begun, final], [final, begun]):
        assert total([thread_of(each) for each in threads]) == (1, final.usage)


def test_session_of_subagent_files_has_the_properties_of_the_last_one() -> None:
    parts = [fold(Session(title=title), [call("a", thread=title)]) for title in ("first", "last")]
    assert merge_sessions(parts).title == "last"


# Any events in any order.

NAMES = st.sampled_from(["a", "b", "c", "d"])
THREADS = st.sampled_from([MAIN, "agent-1"])
TIMES = st.none() | st.floats(0, 100)
MODELS = st.sampled_from([None, "claude-sonnet-4-5", "claude-opus-5-5", "my-local", SYNTHETIC])
TRIGGERS: st.SearchStrategy[Trigger | None] = st.sampled_from([None, "auto", "manual"])
COUNTS = st.integers(0, 1_100_000)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)
EVENTS: st.SearchStrategy[AnyEvent] = st.one_of(
    st.builds(
        Call,
        at=TIMES,
        id=NAMES,
        usage=USAGES,
        model=MODELS,
        asked_for=st.none(),
        thread=THREADS,
        final=st.booleans(),
    ),
    st.builds(
        SessionSeen,
        at=TIMES,
        agent=st.sampled_from([None, "claude", "codex", "pi", "gemini", "opencode"]),
        records_compactions=st.sampled_from([None, True, False]),
    ),
    st.builds(Spent, at=TIMES, usage=USAGES, thread=THREADS),
    st.builds(Compacting, at=TIMES, thread=THREADS, trigger=TRIGGERS),
    st.builds(
        Compacted,
        at=TIMES,
        thread=THREADS,
        trigger=TRIGGERS,
        before=st.none() | st.integers(1, 1_000_000),
        after=st.none() | COUNTS,
    ),
    st.builds(Trimmed, at=TIMES, thread=THREADS),
    st.builds(Edited, at=TIMES, call=NAMES, kind=st.just("cleared"), thread=THREADS),
    st.builds(Cleared, at=TIMES, thread=THREADS),
    st.builds(Rewound, at=TIMES, to=st.none() | NAMES, thread=THREADS),
    st.builds(
        WindowReported,
        at=TIMES,
        tokens=st.sampled_from([200_000, 258_400, 1_000_000]),
        model=MODELS,
        thread=THREADS,
    ),
    st.builds(Ended, at=TIMES, thread=THREADS),
)
MANY = st.lists(EVENTS, max_size=25)


def encode(session: Session) -> bytes:
    return msgspec.json.encode(session, enc_hook=encode_calls)


@given(MANY, MANY)
def test_folding_in_two_parts_equals_folding_at_once(
    first: list[AnyEvent], second: list[AnyEvent]
) -> None:
    assert fold(fold(Session(), first), second) == fold(Session(), first + second)


@given(MANY, MANY)
def test_fold_does_not_change_its_argument(first: list[AnyEvent], second: list[AnyEvent]) -> None:
    given_one = fold(Session(), first)
    original = copy.deepcopy(given_one)
    fold(given_one, second)
    assert given_one == original
    assert encode(given_one) == encode(original)


@given(MANY, MANY, MANY)
def test_sessions_grown_from_the_same_one_are_independent(
    first: list[AnyEvent], second: list[AnyEvent], third: list[AnyEvent]
) -> None:
    shared = fold(Session(), first)
    first_session, second_session = fold(shared, second), fold(shared, third)
    first_session = fold(first_session, third)
    assert encode(first_session) == encode(fold(Session(), first + second + third))
    assert encode(second_session) == encode(fold(Session(), first + third))
    for name, thread in first_session.threads.items():
        calls = list(thread.calls.values())
        assert thread.total == sum((call.usage for call in calls), thread.spent)
        assert thread.peak_sent == max((call.usage.sent for call in calls), default=None), name


@given(MANY)
def test_repeated_events_add_no_call(events: list[AnyEvent]) -> None:
    once, twice = fold(Session(), events), fold(Session(), events + events)
    assert {n: t.calls for n, t in twice.threads.items()} == {
        n: t.calls for n, t in once.threads.items()
    }
    assert total(once.threads.values())[0] == total(twice.threads.values())[0]


@given(MANY)
def test_any_order_of_events_gives_a_valid_state(events: list[AnyEvent]) -> None:
    session = fold(Session(), events)
    for name, thread in session.threads.items():
        clears = sum(1 for e in events if isinstance(e, Cleared) and e.thread == name)
        assert thread.name == name
        assert thread.cycle == len(thread.compactions) + len(thread.clears)
        assert len(thread.clears) <= clears
        assert thread.current is None or thread.current in thread.calls
        assert all(call.usage.sent <= (thread.peak_sent or 0) for call in thread.calls.values())
        assert all(call.model != SYNTHETIC for call in thread.calls.values())
        reading = read(session, thread, "transcript")
        assert reading.percent is None or 0 <= reading.percent <= 100
        assert (reading.sent is None) == (thread.current is None)
        assert reading.state != "measured" or reading.sent is not None


@given(MANY)
def test_encoded_session_and_events_decode_to_the_same(events: list[AnyEvent]) -> None:
    session = fold(Session(), events)
    assert msgspec.json.decode(encode(session), type=Session, dec_hook=decode_calls) == session
    assert msgspec.json.decode(msgspec.json.encode(events), type=list[AnyEvent]) == events


def test_first_cycle_has_its_first_call() -> None:
    thread = thread_of(call("a", 1_000), call("b", 2_000))
    assert (thread.cycle_start, thread.sents_of_cycle) == (0, [1_000, 2_000])
    thread = thread_of(call("a", 1_000), Compacted(at=1.0), call("b", 2_000))
    assert (thread.cycle_start, thread.sents_of_cycle) == (1, [2_000])


def test_cycle_of_every_call_counts_compactions_and_clears_before_it() -> None:
    usage = Usage(60_000, 0, 0, 10)
    events: list[AnyEvent] = [
        Call(id="a", usage=usage),
        Compacted(at=1.0),
        Call(id="b", usage=usage),
        Cleared(),
        Call(id="c", usage=usage),
    ]
    thread = fold(Session(), events).threads[MAIN]
    assert [thread.cycle_of(place) for place in range(3)] == [0, 1, 2]
    assert (thread.cycle, thread.cycle_start) == (2, 2)


def test_replies_without_usage_count_until_the_next_call() -> None:
    assert session_of(call("a"), Unmetered(), Unmetered()).unmetered == 2
    assert session_of(Unmetered(), call("a")).unmetered == 0


def test_change_of_the_prompt_that_is_reported_again_counts_once() -> None:
    assert thread_of(call("a"), Trimmed(), Trimmed(), call("b")).changes == (
        PromptChange(1, "context edit"),
    )


# What a client compares with its limit.


def compared(agent: str, *events: AnyEvent, pending: int | None = None) -> Compared | None:
    session = session_of(SessionSeen(agent=agent, records_compactions=True), *events)
    return read(session, session.threads[MAIN], "transcript", pending=pending).compared


ADDED = Added(pending=300, earlier_reasoning=200)


@pytest.mark.parametrize(
    ("agent", "parts"),
    [
        ("claude", {"held": 1_010, "pending": 300}),
        ("codex", {"held": 1_010, "pending": 300, "earlier reasoning": 200}),
        ("gemini", {"sent": 1_000}),
        ("opencode", {"held": 1_010}),
        ("pi", {"held": 1_010, "pending": 300}),
        ("my-agent", {"held": 1_010}),
    ],
)
def test_each_client_compares_its_own_parts(agent: str, parts: dict[str, int]) -> None:
    assert compared(agent, call("a"), ADDED) == Compared(sum(parts.values()), parts)


def test_limit_is_reached_by_what_the_client_compares() -> None:
    events = (SessionSeen(agent="codex"), call("a", 240_000, 0, model="gpt-5.5"))
    reading = reading_of(*events, Added(pending=2_000, earlier_reasoning=400))
    assert (reading.held, reading.left) == (240_000, 2_400)
    assert reading.percent_of_limit == 99.0
    assert str(reading.compared) == (
        "242,400 = held 240,000 + pending 2,000 + earlier reasoning 400"
    )


def test_estimate_of_hooks_counts_until_the_client_has_its_own() -> None:
    hooks = compared("codex", call("a"), pending=1_000)
    assert hooks == Compared(2_010, {"held": 1_010, "pending": 1_000})
    own = compared("codex", call("a"), Added(pending=300), pending=1_000)
    assert own == Compared(1_310, {"held": 1_010, "pending": 300})


@pytest.mark.parametrize(
    "event",
    [call("b"), Rewound(to="a"), Compacted(), Cleared()],
    ids=lambda each: type(each).__name__,
)
def test_what_was_added_ends_with_its_call(event: AnyEvent) -> None:
    thread = thread_of(call("a"), ADDED, event)
    assert (thread.pending, thread.earlier_reasoning) == (0, 0)


def test_copy_of_a_call_keeps_what_was_added_to_it() -> None:
    assert thread_of(call("a"), ADDED, call("a", output=20)).pending == 300


def test_nothing_is_compared_while_it_is_unknown_what_is_held() -> None:
    assert compared("codex", call("a"), Compacted()) is None


def test_compaction_has_the_version_of_its_client() -> None:
    """Not that of a client which resumed the session later."""
    thread = thread_of(
        RECORDING, call("a"), Compacted(at=1.0), SessionSeen(version="2.1.330"), Compacted(at=2.0)
    )
    assert [each.version for each in thread.compactions] == ["2.1.325", "2.1.330"]


def test_sizes_that_the_client_reports_decide_the_limit() -> None:
    """opencode compacts at the window without the reply, or below the longest prompt."""
    seen = SessionSeen(agent="opencode"), call("a", model="m")
    sizes = WindowReported(tokens=200_000, model="m", max_output=8_192)
    reading = reading_of(*seen, sizes)
    assert reading.limit is not None
    assert reading.limit.tokens == 191_808
    capped = WindowReported(tokens=400_000, model="m", max_output=8_192, input_limit=272_000)
    reading = reading_of(*seen, sizes, capped)
    assert reading.limit is not None
    assert reading.limit.tokens == 263_808


def test_merged_session_has_the_sizes_of_all_parts() -> None:
    one = session_of(WindowReported(tokens=9, model="m", max_output=3, input_limit=5))
    two = session_of(call("a"), WindowReported(tokens=8, model="n", is_evidence=True))
    assert merge_sessions([one, two]).sizes == ({"m": 9}, {"n": 8}, {"m": 3}, {"m": 5})
