"""The fold: dedupe, cycles, compactions, and what is unknown; pure, whatever the order."""

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.events import (
    MAIN,
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
    WindowReported,
)
from brimline.tracker import (
    SYNTHETIC,
    Reading,
    Session,
    Thread,
    client_shows,
    decode_calls,
    encode_calls,
    fold,
    main_thread,
    read,
    resolve_context,
    total,
)
from brimline.usage import ZERO, Usage
from brimline.windows import NO_CLIENT_SETTINGS, ClientSettings, Overrides, Window

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
) -> Call:
    """A call that sent so much, a tenth of it from no cache."""
    uncached = sent // 10
    return Call(
        at=at,
        id=id,
        usage=Usage(uncached, sent - uncached, 0, output),
        model=model,
        asked_for=asked_for,
        thread=thread,
        final=final,
    )


def session_of(*events: AnyEvent) -> Session:
    """The session after these events."""
    return fold(Session(), events)


def thread_of(*events: AnyEvent) -> Thread:
    """The main thread after these events."""
    return session_of(*events).threads[MAIN]


def reading_of(*events: AnyEvent) -> Reading:
    """The main thread's reading after these events."""
    session = session_of(*events)
    return read(session, session.threads[MAIN], "transcript")


def sent_now(thread: Thread) -> int | None:
    """What is held to be sent now."""
    return thread.current_call.usage.sent if thread.current_call else None


# Sessions and threads.


def test_nothing_folds_to_nothing() -> None:
    """No event, no change."""
    assert fold(Session(), []) == Session()
    assert main_thread(Session()) is None


def test_session_facts_add_up() -> None:
    """A later fact replaces an earlier one, a field that is None says nothing new."""
    session = session_of(
        SessionSeen(session="s", agent="claude", project="/p", version="1.0.60", title="a"),
        SessionSeen(version="2.1.325", records_compactions=True),
        SessionSeen(title="b", at=5.0),
    )
    assert session == Session("claude", "s", "/p", "2.1.325", "b", True, 5.0)


def test_threads_are_apart() -> None:
    """A subagent has a window of its own, and does not change what main holds."""
    session = session_of(call("a", 5_000), call("b", 900, thread="agent-1"), call("c", 6_000))
    assert set(session.threads) == {MAIN, "agent-1"}
    assert sent_now(session.threads[MAIN]) == 6_000
    assert sent_now(session.threads["agent-1"]) == 900
    assert main_thread(session) is session.threads[MAIN]


def test_time_is_the_latest() -> None:
    """The session's time is the latest that any event told; times that run back do not count."""
    session = session_of(call("a", at=5.0), call("b", at=3.0), call("c"), Ended(at=4.0))
    assert session.at == 5.0


# Calls.


def test_last_copy_wins() -> None:
    """Copies with one id are one call: the last one's figures at the first one's place."""
    thread = thread_of(call("a", output=1), call("b"), call("a", output=250))
    assert list(thread.calls) == ["a", "b"]
    assert thread.calls["a"].usage.output == 250
    assert thread.current == "b"
    assert thread.total.output == 260


def test_a_whole_copy_is_kept() -> None:
    """A copy with other cache figures replaces the whole usage, not its largest fields."""
    thread = thread_of(
        Call(id="a", usage=Usage(1, 500, 0, 1)), Call(id="a", usage=Usage(400, 0, 90, 7))
    )
    assert thread.calls["a"].usage == Usage(400, 0, 90, 7)


def test_synthetic_is_no_call() -> None:
    """A reply that the client made up itself changes nothing."""
    before = thread_of(call("a", 5_000))
    after = thread_of(call("a", 5_000), call("x", 0, 0, model=SYNTHETIC))
    assert after == before
    assert session_of(call("x", 9, model=SYNTHETIC)).threads.get(MAIN, Thread(MAIN)).calls == {}


def test_last_and_model() -> None:
    """The last call names the model, as the user named it where that is told."""
    assert Thread(MAIN).last is None
    assert Thread(MAIN).model is None
    thread = thread_of(call("a"), call("b", model="claude-opus-4-6", asked_for="opus[1m]"))
    assert thread.model == "opus[1m]"
    assert thread.models == ("claude-sonnet-4-5", "claude-opus-4-6")
    assert thread_of(call("a", model=None)).models == ()


def test_model_switch() -> None:
    """A switch of the model is no compaction, also when the occupancy falls with it."""
    thread = thread_of(SILENT, call("a", 150_000), call("b", 40_000, model="claude-opus-5-5"))
    assert thread.compactions == ()
    assert thread.cycle == 0
    assert thread.model == "claude-opus-5-5"


def test_peak() -> None:
    """The peak is the most that was ever sent, also before a compaction; unknown at first."""
    assert Thread(MAIN).peak_sent is None
    thread = thread_of(RECORDING, call("a", 9_000), Compacted(), call("b", 2_000))
    assert thread.peak_sent == 9_000


def test_spent() -> None:
    """What was billed without telling its calls is in the total, and in no occupancy."""
    thread = thread_of(
        call("a", 1_000, 10), Spent(usage=Usage(0, 0, 0, 90)), Spent(usage=Usage(5, 0, 0, 0))
    )
    assert thread.spent == Usage(5, 0, 0, 90)
    assert thread.total == Usage(105, 900, 0, 100)
    assert sent_now(thread) == 1_000


def test_ended() -> None:
    """A thread that is over still holds what it held."""
    thread = thread_of(call("a", 5_000), Ended(at=7.0))
    assert thread.ended
    assert thread.at == 7.0
    assert sent_now(thread) == 5_000


def test_goes_on_after_its_end() -> None:
    """A thread that makes a new call after it was over is not over."""
    assert not thread_of(call("a"), Ended(), call("b")).ended


# Compactions.


def test_recorded_compaction() -> None:
    """The client's record gives before and trigger, the next call gives after."""
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


def test_compaction_without_before() -> None:
    """Without the client's word, before is what the last call held, reply included."""
    thread = thread_of(RECORDING, call("a", 150_000, 700), Compacted())
    assert thread.compactions[0].before == 150_700


def test_compaction_of_an_empty_thread() -> None:
    """A file that begins with a compaction has no before."""
    thread = thread_of(Compacted(), call("a", 30_000))
    assert [(c.before, c.after, c.calls) for c in thread.compactions] == [(None, 30_000, 0)]


def test_two_compactions_in_a_row() -> None:
    """Two without a call between are two cycles; the next call tells the last one's after."""
    thread = thread_of(
        RECORDING, call("a", 150_000), Compacted(before=151_000), Compacted(), call("b", 20_000)
    )
    assert [(c.before, c.after) for c in thread.compactions] == [(151_000, None), (None, 20_000)]
    assert thread.cycle == 2


def test_compaction_that_is_told_twice() -> None:
    """A compaction told again at its own time is one; it may know now what is left."""
    events = [RECORDING, call("a", 150_000), Compacted(at=5.0, before=151_000)]
    again = thread_of(*events, Compacted(at=5.0))
    assert again == thread_of(*events)
    told = thread_of(*events, Compacted(at=5.0, after=12_000))
    assert [(c.before, c.after) for c in told.compactions] == [(151_000, 12_000)]
    assert thread_of(*events, Compacted(at=6.0)).cycle == 2
    assert thread_of(*events, call("b", 20_000), Compacted(at=5.0)).cycle == 2


def test_after_is_the_first_call_only() -> None:
    """Later calls and copies of older ones do not change what a compaction left."""
    thread = thread_of(
        RECORDING, call("a", 150_000), Compacted(), call("a", 150_000), call("b", 20_000),
        call("c", 60_000),
    )  # fmt: skip
    assert thread.compactions[0].after == 20_000


def test_unknown_after_a_compaction() -> None:
    """After a compaction the occupancy is unknown until the next reply, not 0 and not the old."""
    events = [RECORDING, call("a", 150_000), Compacted(before=151_000)]
    reading = reading_of(*events)
    assert (reading.sent, reading.held, reading.percent) == (None, None, None)
    assert (reading.percent_raw, reading.percent_of_limit) == (None, None)
    assert (reading.client_shows, reading.state) == (None, "unknown")
    assert reading.window is not None
    assert reading_of(*events, call("b", 30_000)).sent == 30_000


def test_old_copy_after_a_compaction() -> None:
    """A copy of an older call, written again after the boundary, is not what is held now."""
    thread = thread_of(RECORDING, call("a", 150_000), Compacted(), call("a", 150_000))
    assert thread.current is None


def test_clear_after_a_compaction() -> None:
    """What the first call after a clear sends is not what the compaction before it left."""
    thread = thread_of(RECORDING, call("a", 150_000), Compacted(), Cleared(), call("b", 9_000))
    assert thread.compactions[0].after is None
    assert thread.cycle == 2


def test_compacting() -> None:
    """While the client compacts the state says so, until it is done or goes on."""
    assert reading_of(call("a"), Compacting()).state == "compacting"
    assert reading_of(call("a"), Compacting(), Compacted()).state == "unknown"
    assert reading_of(call("a"), Compacting(), call("b")).state == "measured"


def test_compacting_ends_with_a_clear() -> None:
    """A cleared conversation compacts no more."""
    assert reading_of(call("a"), Compacting(), Cleared()).state == "unknown"


def test_inferred_compaction() -> None:
    """Where no record would tell, a fall that can be nothing else is a compaction, and says so."""
    thread = thread_of(SILENT, call("a", 100_000, 500), call("b", 40_000, at=3.0))
    (compaction,) = thread.compactions
    assert compaction.inferred
    assert (compaction.before, compaction.after) == (100_500, 40_000)
    assert (compaction.at, compaction.trigger, compaction.calls) == (3.0, None, 1)
    assert (thread.cycle, thread.current) == (1, "b")


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
def test_fall_that_is_enough(before: int, after: int, inferred: bool) -> None:
    """A fall counts below 0.7 of what was, and by more than 10,000 tokens."""
    thread = thread_of(SILENT, call("a", before), call("b", after))
    assert [c.inferred for c in thread.compactions] == [True] * inferred


def test_no_inference_where_it_is_recorded() -> None:
    """Where the client records its compactions, a fall without a record is none."""
    thread = thread_of(RECORDING, call("a", 100_000), call("b", 20_000))
    assert thread.compactions == ()


def test_inference_where_nothing_is_said() -> None:
    """A source that does not say whether it records compactions is taken for one that does not."""
    assert len(thread_of(call("a", 100_000), call("b", 20_000)).compactions) == 1


def test_beginning_that_is_told_again() -> None:
    """A copy that is not final never replaces one that is."""
    final = call("a", 5_000, 700)
    begun = msgspec.structs.replace(call("a", 5_000, 1), final=False)
    assert thread_of(begun, final, begun).calls["a"] == final
    assert thread_of(begun).calls["a"] == begun


def test_left_until_the_limit() -> None:
    """What is left is counted from what is held to the limit, never below 0, or unknown."""
    near = read(*_alone(150_000), "test", Overrides(limits={"*": 160_000}))
    assert near.left == 9_990
    assert read(*_alone(170_000), "test", Overrides(limits={"*": 160_000})).left == 0
    assert read(*_alone(150_000), "test").left is None
    assert read(Session(), Thread(MAIN), "test", Overrides(limits={"*": 160_000})).left is None


def _alone(sent: int) -> tuple[Session, Thread]:
    session = session_of(call("a", sent, 10))
    return session, session.threads[MAIN]


def test_edit_before_its_call() -> None:
    """A fall at a call that the API says it edited is no compaction."""
    thread = thread_of(call("a", 150_000), Edited(call="b", kind="cleared"), call("b", 20_000))
    assert (thread.compactions, thread.cycle, thread.edits) == ((), 0, 1)


def test_edit_after_its_call() -> None:
    """An edit that is told later undoes what was taken for a compaction, and counts once."""
    edit = Edited(call="b", kind="cleared")
    thread = thread_of(call("a", 150_000), call("b", 20_000), edit, edit)
    assert (thread.compactions, thread.cycle, thread.edits) == ((), 0, 1)
    assert thread.current_call is not None
    assert thread.current_call.id == "b"


def test_edit_of_another_call() -> None:
    """An edit explains the fall at its own call alone; a recorded compaction stays."""
    fell = (call("a", 150_000), call("b", 20_000))
    assert thread_of(*fell, Edited(call="a", kind="cleared")).cycle == 1
    assert thread_of(*fell, call("c", 21_000), Edited(call="c", kind="cleared")).cycle == 1
    told = thread_of(RECORDING, fell[0], Compacted(), fell[1], Edited(call="b", kind="cleared"))
    assert (len(told.compactions), told.cycle) == (1, 1)


@pytest.mark.parametrize("between", [Trimmed(), Cleared(), Rewound(to=None), Compacted()], ids=repr)
def test_fall_that_is_explained(between: AnyEvent) -> None:
    """A fall after something that explains it is no compaction of its own."""
    thread = thread_of(SILENT, call("a", 100_000), between, call("b", 20_000))
    assert not any(c.inferred for c in thread.compactions)


def test_copy_is_no_fall() -> None:
    """A smaller copy of the same call is a correction, not a compaction."""
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


def test_sustained_is_what_three_calls_in_a_row_sent() -> None:
    calls = [call(str(n), sent) for n, sent in enumerate((100, 180, 175, 190))]
    assert thread_of(RECORDING, *calls[:3]).sustained_sent == 100
    assert thread_of(RECORDING, *calls).sustained_sent == 175
    assert thread_of(RECORDING, *calls[:3], Compacted(), calls[3]).sustained_sent == 100
    other = call("x", 900, model="claude-opus-5-5")
    assert thread_of(RECORDING, *calls, other).sustained_sent == 0


def test_after_is_not_told_by_a_later_fall() -> None:
    """What is sent after a trim in the next cycle is not what the compaction left."""
    thread = thread_of(
        RECORDING, call("a", 150_000), Compacted(), call("b", 20_000), Trimmed(), call("c", 9_000)
    )
    assert thread.compactions[0].after == 20_000


# Trim, clear, rewind.


def test_trimmed() -> None:
    """What was trimmed makes the occupancy unknown, in the same cycle."""
    thread = thread_of(call("a", 100_000), Trimmed())
    assert (thread.current, thread.cycle, thread.compactions) == (None, 0, ())
    assert thread.last is not None
    assert thread.last.id == "a"


def test_cleared() -> None:
    """A clear begins a new cycle, and what is held is unknown until the next reply."""
    thread = thread_of(call("a", 100_000), Cleared(at=4.0))
    assert (thread.current, thread.cycle, thread.compactions) == (None, 1, ())
    assert thread.at == 4.0


def test_rewound() -> None:
    """After a rewind what is held is what that call held; the calls stay billed."""
    thread = thread_of(call("a", 5_000), call("b", 50_000), Rewound(to="a"))
    assert sent_now(thread) == 5_000
    assert thread.last is not None
    assert thread.last.id == "a"
    assert len(thread.calls) == 2
    assert thread.cycle == 0


def test_rewound_to_the_start() -> None:
    """A rewind to the empty start leaves the occupancy unknown."""
    assert thread_of(call("a", 5_000), Rewound(to=None)).current is None


def test_rewound_to_an_unknown_call() -> None:
    """A rewind to a call that nobody saw is passed over."""
    assert thread_of(call("a", 5_000), Rewound(to="z")).current == "a"


# Windows.


def test_window_for_a_model() -> None:
    """A window is reported per model, as named or as asked for; the last report counts."""
    events: list[AnyEvent] = [
        RECORDING,
        WindowReported(tokens=111, model="other"),
        WindowReported(tokens=500_000, model="claude-opus-4-6"),
        WindowReported(tokens=600_000, model="claude-opus-4-6"),
        WindowReported(tokens=700_000, model="claude-opus-4-6[1m]"),
    ]
    named = reading_of(*events, call("a", model="claude-opus-4-6")).window
    asked = reading_of(
        *events, call("a", model="claude-opus-4-6", asked_for="claude-opus-4-6[1m]")
    ).window
    switched = reading_of(*events, call("a", model="claude-sonnet-4-5")).window
    assert named is not None
    assert (named.tokens, named.origin) == (600_000, "reported")
    assert asked is not None
    assert (asked.tokens, asked.origin) == (700_000, "reported")
    assert switched is not None
    assert (switched.tokens, switched.origin) == (200_000, "client")


def test_window_for_any_model() -> None:
    """A window reported for no model holds for whatever the thread runs on."""
    events = [SessionSeen(agent="codex"), WindowReported(tokens=353_400)]
    before = reading_of(*events)
    assert before.window is not None
    assert (before.window.tokens, before.window.origin) == (353_400, "reported")
    reading = reading_of(*events, call("a", 100_000), WindowReported(tokens=258_400))
    assert reading.window is not None
    assert reading.window.tokens == 258_400


def test_disproof_is_of_one_model() -> None:
    """What a larger model sent does not disprove the window of the one that runs now."""
    reading = reading_of(
        RECORDING,
        call("a", 500_000, model="claude-opus-5-5"),
        Compacted(trigger="manual", before=500_500),
        call("b", 30_000, model="claude-sonnet-4-5"),
    )
    assert reading.window is not None
    assert (reading.window.tokens, reading.window.origin) == (200_000, "client")
    assert reading.percent == 15.0


def test_limit_is_learned_of_one_model() -> None:
    """Where one model's window was compacted says nothing about another's."""
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
def test_window_of_nothing(calls: tuple[Call, ...], tokens: int) -> None:
    """A client that reports a window of 0 has told nothing, and nothing breaks."""
    reading = reading_of(RECORDING, *calls, WindowReported(tokens=tokens))
    assert reading.window is None or reading.window.tokens > 0


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "pi", "opencode"])
@pytest.mark.parametrize("size", [1, 12_000, 16_384, 20_000, 33_000])
def test_small_windows(agent: str, size: int) -> None:
    """However small a window is set, there is a reading with figures that can be."""
    session = session_of(SessionSeen(agent=agent), call("a", 500))
    reading = read(session, session.threads[MAIN], "transcript", Overrides(windows={"*": size}))
    assert reading.percent is not None
    assert 0 <= reading.percent <= 100
    assert reading.percent_of_limit is None or reading.percent_of_limit >= 0


# Readings.


def test_reading() -> None:
    """A reading has every figure, where it is from and when."""
    reading = reading_of(RECORDING, call("a", 64_340, 660, at=12.5))
    assert (reading.sent, reading.held) == (64_340, 65_000)
    assert (reading.percent, reading.percent_raw) == (32.2, 32.2)
    assert reading.percent_of_limit == 38.9
    assert (reading.source, reading.at, reading.state) == ("transcript", 12.5, "measured")


def test_overshoot_shows() -> None:
    """What is beyond a window that the user set shows in the raw percentage."""
    session = session_of(RECORDING, call("a", 250_000))
    overrides = Overrides(windows={"claude": 200_000}, limits={"claude": 100_000})
    reading = read(session, session.threads[MAIN], "stream", overrides)
    assert (reading.percent, reading.percent_raw) == (100.0, 125.0)
    assert reading.percent_of_limit == 250.0


def test_reading_of_an_unknown_window() -> None:
    """Without a window there are tokens and no percentage."""
    reading = reading_of(SessionSeen(agent="pi"), call("a", 5_000, model="my-local-model"))
    assert (reading.sent, reading.window, reading.limit) == (5_000, None, None)
    assert (reading.percent, reading.percent_raw, reading.percent_of_limit) == (None, None, None)
    assert reading.client_shows is None


def test_streaming() -> None:
    """While a reply streams the state says so; its last copy makes it measured."""
    begun, done = call("a", 5_000, 1, final=False), call("a", 5_000, 90)
    assert reading_of(begun).state == "streaming"
    assert reading_of(begun, done).state == "measured"


def test_known_of() -> None:
    told = ClientSettings(limit=5)
    session = session_of(
        RECORDING, call("a", 9_000), Compacted(trigger="auto", before=9_500), call("b", 100)
    )
    known = resolve_context(session, session.threads[MAIN], told)
    assert (known.agent, known.model, known.version) == ("claude", "claude-sonnet-4-5", "2.1.325")
    assert (known.most_sent, known.compacted_at, known.settings) == (9_000, (9_500,), told)
    empty = resolve_context(Session(), Thread(MAIN), NO_CLIENT_SETTINGS)
    assert (empty.model, empty.most_sent, empty.compacted_at) == (None, 0, ())


@pytest.mark.parametrize(
    ("agent", "held", "sent", "size", "shown"),
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
def test_client_shows(
    agent: str | None, held: int | None, sent: int | None, size: int | None, shown: str | None
) -> None:
    """Codex takes 12,000 off both sides; Claude Code's footer divides by 20,000 less."""
    window = None if size is None else Window(size, "reported", "")
    assert client_shows(agent, held, sent, window) == shown


# Totals.


def test_call_in_two_sessions_counts_once() -> None:
    """A fork copies its calls: in the total they count once, what was spent counts each time."""
    first = thread_of(call("a", 1_000, 10), call("b", 2_000, 20), Spent(usage=Usage(0, 0, 0, 5)))
    fork = thread_of(call("a", 1_000, 10), call("b", 2_000, 20), call("c", 3_000, 30))
    assert total([first, fork]) == (3, Usage(600, 5_400, 0, 65))
    assert total([]) == (0, ZERO)


@given(st.permutations([0, 1, 2]))
def test_total_in_any_order(order: list[int]) -> None:
    """The total of forks does not depend on which file is read first."""
    threads = [
        thread_of(call("a", 1_000, 1, final=False)),
        thread_of(call("a", 1_000, 90), call("b")),
        thread_of(call("a", 1_000, 90), call("c")),
    ]
    assert total([threads[n] for n in order]) == total(threads[1:])


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
    """A session as JSON."""
    return msgspec.json.encode(session, enc_hook=encode_calls)


@given(MANY, MANY)
def test_fold_in_parts(first: list[AnyEvent], second: list[AnyEvent]) -> None:
    """Folding in two parts is folding at once."""
    assert fold(fold(Session(), first), second) == fold(Session(), first + second)


@given(MANY, MANY)
def test_fold_is_pure(first: list[AnyEvent], second: list[AnyEvent]) -> None:
    """The session that is given, and all that is in it, stays as it was."""
    given_one = fold(Session(), first)
    kept = copy.deepcopy(given_one)
    fold(given_one, second)
    assert given_one == kept
    assert encode(given_one) == encode(kept)


@given(MANY, MANY, MANY)
def test_sessions_that_share_calls_stay_apart(
    first: list[AnyEvent], second: list[AnyEvent], third: list[AnyEvent]
) -> None:
    """Two sessions that grow from the same one do not see each other's calls."""
    shared = fold(Session(), first)
    one, other = fold(shared, second), fold(shared, third)
    one = fold(one, third)
    assert encode(one) == encode(fold(Session(), first + second + third))
    assert encode(other) == encode(fold(Session(), first + third))
    for name, thread in one.threads.items():
        calls = list(thread.calls.values())
        assert thread.total == sum((call.usage for call in calls), thread.spent)
        assert thread.peak_sent == max((call.usage.sent for call in calls), default=None), name


@given(MANY)
def test_fold_twice(events: list[AnyEvent]) -> None:
    """Events that come twice make no call twice."""
    once, twice = fold(Session(), events), fold(Session(), events + events)
    assert {n: t.calls for n, t in twice.threads.items()} == {
        n: t.calls for n, t in once.threads.items()
    }
    assert total(once.threads.values())[0] == total(twice.threads.values())[0]


@given(MANY)
def test_any_order(events: list[AnyEvent]) -> None:
    """Any events in any order fold to a state that can be, and to a reading of it."""
    session = fold(Session(), events)
    for name, thread in session.threads.items():
        clears = sum(1 for e in events if isinstance(e, Cleared) and e.thread == name)
        assert thread.name == name
        assert thread.cycle == len(thread.compactions) + clears
        assert thread.current is None or thread.current in thread.calls
        assert all(call.usage.sent <= (thread.peak_sent or 0) for call in thread.calls.values())
        assert all(call.model != SYNTHETIC for call in thread.calls.values())
        reading = read(session, thread, "transcript")
        assert reading.percent is None or 0 <= reading.percent <= 100
        assert (reading.sent is None) == (thread.current is None)
        assert reading.state != "measured" or reading.sent is not None


@given(MANY)
def test_round_trip(events: list[AnyEvent]) -> None:
    """A session that was written is read as the same, and so are its events."""
    session = fold(Session(), events)
    assert msgspec.json.decode(encode(session), type=Session, dec_hook=decode_calls) == session
    assert msgspec.json.decode(msgspec.json.encode(events), type=list[AnyEvent]) == events


def test_cycle_of_a_call() -> None:
    """The cycle of every call can be told later: compactions and clears before it are counted."""
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
