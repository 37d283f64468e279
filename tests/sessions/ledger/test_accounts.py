"""The tokens of every part add up to what each call sent, whatever happened before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.events import Call, Cleared, Compacted, Edited, Rewound, Trimmed
from brimline.context.tracker import Session, Thread, fold
from brimline.context.usage import Usage
from brimline.sessions.ledger.call_growth import StepRecorder
from brimline.sessions.ledger.context_parts import CATEGORIES, Category, ContextPart
from brimline.sessions.ledger.part_tokens import split
from brimline.sessions.ledger.session_ledger import ThreadLedger, settle


def call(id: str, sent: int, output: int = 0, reasoning: int | None = None) -> Call:
    return Call(id=id, usage=Usage(sent, 0, 0, output, reasoning), model="m")


def part(category: Category, size: int, what: str = "x") -> ContextPart:
    return ContextPart(category, what, size)


def ledger_of(*items: object, usage_follows_reply: bool = False) -> ThreadLedger:
    """The ledger of a thread from its events and parts, in their order."""
    recorder = StepRecorder(usage_follows_reply)
    session = Session(agent="claude", records_compactions=True)
    for item in items:
        if isinstance(item, ContextPart):
            recorder.add_part(item)
        else:
            recorder.add_event(item)  # type: ignore[arg-type]
            session = fold(session, [item])  # type: ignore[list-item]
    return settle("main", recorder, session.threads.get("main", Thread("main")))


def tokens_of(ledger: ThreadLedger) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in ledger.entries:
        totals[entry.part.category] = totals.get(entry.part.category, 0) + entry.tokens
    return totals


def test_growth_between_two_calls_is_what_came_in() -> None:
    ledger = ledger_of(
        part("user words", 100),
        call("a", 10_000, 50),
        part("tool calls", 100),
        part("tool results", 4_000),
        call("b", 12_050, 10),
    )
    assert tokens_of(ledger) == {
        "system and tools": 9_950,  # a byte is 0.5 tokens here, as the only result shows
        "user words": 50,
        "tool calls": 50,
        "tool results": 2_000,
    }
    assert ledger.unexplained == 0
    assert ledger.sent == 12_050


def test_parts_of_one_gap_are_split_by_the_rates_of_their_categories() -> None:
    ledger = ledger_of(
        call("a", 1_000),
        part("tool results", 1_000),
        call("b", 1_500),  # 0.5 a byte
        part("user words", 1_000),
        call("c", 1_750),  # 0.25 a byte
        part("tool results", 400),
        part("user words", 400),
        call("d", 2_050),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "tool results": 700,
        "user words": 350,
    }


def test_growth_without_content_is_unexplained() -> None:
    ledger = ledger_of(call("a", 1_000), part("tool results", 10), call("b", 9_000))
    assert ledger.unexplained == 8_000 - 4
    assert tokens_of(ledger)["tool results"] == 4


def test_output_that_its_text_cannot_account_for_is_reasoning() -> None:
    ledger = ledger_of(call("a", 1_000, 5_000), part("agent's words", 100), call("b", 6_000))
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "agent's words": 40,
        "reasoning": 4_960,
    }


def test_reported_reasoning_is_exact() -> None:
    ledger = ledger_of(
        call("a", 1_000, 500, 420),
        part("reasoning", 0),
        part("agent's words", 200),
        call("b", 1_500),
    )
    assert tokens_of(ledger)["reasoning"] == 420
    assert tokens_of(ledger)["agent's words"] == 80


def test_recorded_reasoning_without_a_figure_takes_what_the_text_does_not() -> None:
    ledger = ledger_of(
        call("a", 1_000, 150), part("reasoning", 50), part("agent's words", 200), call("b", 1_150)
    )
    assert tokens_of(ledger) == {"system and tools": 1_000, "agent's words": 80, "reasoning": 70}


def test_text_takes_all_of_a_plausible_output_if_no_reasoning_is_recorded() -> None:
    ledger = ledger_of(call("a", 1_000, 150), part("agent's words", 200), call("b", 1_150))
    assert tokens_of(ledger) == {"system and tools": 1_000, "agent's words": 150}


def test_reasoning_whose_text_is_not_recorded_has_a_share_too() -> None:
    ledger = ledger_of(
        call("a", 1_000, 100, 100),
        part("reasoning", 0, "encrypted"),
        part("reasoning", 3, "summary"),
        call("b", 1_100),
    )
    shares = {entry.part.what: entry.tokens for entry in ledger.entries}
    assert (shares["encrypted"], shares["summary"]) == (20, 80)


@pytest.mark.parametrize("resends", [True, False])
def test_reasoning_is_a_part_only_if_the_client_sends_it_again(resends: bool) -> None:
    recorder = StepRecorder(resends_reasoning=resends)
    recorder.add_event(call("a", 1_000, 500, 420))
    for each in (part("reasoning", 100), part("agent's words", 200)):
        recorder.add_part(each)
    categories = [each.category for each in recorder.steps[0].outputs]
    assert categories == (["reasoning"] if resends else []) + ["agent's words"]


def test_dropped_reasoning_leaves_the_context() -> None:
    ledger = ledger_of(
        call("a", 1_000, 3_000, 2_900),
        part("reasoning", 0),
        part("agent's words", 200),
        part("user words", 1_000),
        call("b", 1_500),  # 100 written and 400 typed: the reasoning is gone
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "agent's words": 100,
        "user words": 400,
    }


def test_output_that_was_not_recorded_as_final_is_estimated() -> None:
    ledger = ledger_of(
        call("a", 1_000, 8),
        part("tool calls", 2_000),
        part("tool results", 2_000),
        call("b", 2_600),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "tool calls": 800,
        "tool results": 800,
    }


def test_output_of_half_its_estimate_is_final() -> None:
    ledger = ledger_of(
        call("a", 1_000, 40),
        part("tool calls", 200),  # 80 tokens by estimate
        part("tool results", 100),
        call("b", 1_080),
    )
    assert tokens_of(ledger) == {"system and tools": 1_000, "tool calls": 40, "tool results": 40}


def test_compaction_leaves_system_prompt_and_summary() -> None:
    ledger = ledger_of(
        call("a", 1_000, 10),
        part("agent's words", 25),
        part("tool results", 10_000),
        call("b", 6_010),
        Compacted(at=1.0),
        part("compaction summary", 2_000),
        call("c", 2_000),
    )
    assert tokens_of(ledger) == {"system and tools": 1_000, "compaction summary": 1_000}


def test_compaction_keeps_what_is_recorded_again() -> None:
    """What an earlier call wrote is no output of the call before the compaction."""
    ledger = ledger_of(
        call("a", 1_000, 10),
        part("agent's words", 25),
        part("tool calls", 1_000),
        Compacted(at=1.0),
        part("compaction summary", 1_000),
        part("tool calls", 1_000),
        part("tool results", 2_000),
        call("b", 2_600),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "compaction summary": 400,
        "tool calls": 400,
        "tool results": 800,
    }


def test_context_is_unknown_after_a_compaction() -> None:
    ledger = ledger_of(call("a", 1_000), Compacted(at=1.0), part("compaction summary", 1_000))
    assert ledger.sent is None
    assert ledger.entries == []
    assert ledger.pending == 400


def test_summary_call_is_no_part_of_the_thread() -> None:
    ledger = ledger_of(call("a", 1_000), call("s", 1_100), Compacted(at=1.0, summary_call="s"))
    assert [step.call.id for step in ledger.steps] == ["a"]


def test_clear_starts_again() -> None:
    ledger = ledger_of(call("a", 1_000), Cleared(), part("user words", 100), call("b", 1_040))
    assert tokens_of(ledger) == {"system and tools": 1_000, "user words": 40}


def test_rewind_returns_to_what_an_earlier_call_sent() -> None:
    ledger = ledger_of(
        call("a", 1_000, 40),
        part("agent's words", 100),
        part("tool results", 1_000),
        call("b", 1_540),
        part("tool results", 9_000),
        call("c", 6_000),
        Rewound(to="a"),
        part("user words", 1_000),
        call("d", 1_440),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "agent's words": 40,
        "user words": 400,
    }
    assert ledger_of(call("a", 9), call("b", 99), Rewound(to="a")).sent == 9
    empty = ledger_of(call("a", 9_000), Rewound(to=None), part("user words", 10), call("b", 9_004))
    assert tokens_of(empty) == {"system and tools": 9_000, "user words": 4}


@pytest.mark.parametrize("event", [Trimmed(), Edited(call="c", kind="clear_tool_uses")])
def test_trimming_removes_the_oldest_results(event: Trimmed | Edited) -> None:
    ledger = ledger_of(
        call("a", 1_000),
        part("tool results", 4_000, "old"),
        call("b", 3_000),
        part("tool results", 4_000, "new"),
        event,
        call("c", 3_500),
    )
    left = {entry.part.what: entry.tokens for entry in ledger.entries}
    assert left == {"system prompt and tools": 1_000, "old": 500, "new": 2_000}


def test_copy_of_a_call_replaces_it() -> None:
    partial = Call(id="a", usage=Usage(1_000, 0, 0, 1), final=False)
    ledger = ledger_of(
        partial, part("agent's words", 500), call("a", 1_000, 200), partial, call("b", 1_200)
    )
    assert tokens_of(ledger) == {"system and tools": 1_000, "agent's words": 200}


def test_usage_after_the_reply() -> None:
    """Results that are recorded before the usage of their call came in after it all the same."""
    ledger = ledger_of(
        part("user words", 100),
        part("tool calls", 100),
        part("tool results", 1_000),
        call("a", 1_000, 40),
        part("agent's words", 100),
        call("b", 1_540),
        usage_follows_reply=True,
    )
    assert tokens_of(ledger) == {
        "system and tools": 950,
        "user words": 50,
        "tool calls": 40,
        "tool results": 500,
    }


def search() -> ContextPart:
    """The result of a search that ran at the provider."""
    return ContextPart("tool results", "web_search x", 0, is_recorded=False)


def test_part_without_text_takes_what_the_others_cannot() -> None:
    ledger = ledger_of(
        call("a", 1_000),
        part("tool results", 1_000),
        call("b", 1_400),
        part("tool results", 1_000),
        search(),
        call("c", 9_800),
    )
    assert [entry.tokens for entry in ledger.entries] == [1_000, 400, 400, 8_000]
    assert ledger.unexplained == 0


def test_summary_without_text_takes_what_is_left() -> None:
    ledger = ledger_of(
        call("a", 1_000),
        Compacted(at=1.0),
        part("user words", 1_000),
        ContextPart("compaction summary", "summary", 0, is_recorded=False),
        call("b", 3_400),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "user words": 400,
        "compaction summary": 2_000,
    }


def test_provider_drops_its_results_before_reasoning_and_other_results() -> None:
    ledger = ledger_of(
        call("a", 1_000, 500, 500),
        part("tool results", 1_000),
        call("b", 1_900),
        search(),
        call("c", 5_900),
        part("user words", 100),
        call("d", 2_040),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "reasoning": 500,
        "tool results": 500,  # with 100 that only the estimates put apart
        "user words": 40,
    }


def test_context_that_shrinks_without_a_record_loses_its_oldest_results() -> None:
    ledger = ledger_of(
        call("a", 1_000), part("tool results", 1_000), call("b", 1_400), call("c", 1_100)
    )
    assert tokens_of(ledger) == {"system and tools": 1_000, "tool results": 100}


def test_small_drop_leaves_the_results_of_the_provider() -> None:
    ledger = ledger_of(
        call("a", 1_000, 500, 500),
        search(),
        call("b", 5_500),
        part("user words", 100),
        call("c", 5_040),
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_000,
        "tool results": 4_000,
        "user words": 40,
    }


def test_reply_without_usage_comes_in_with_the_next_call() -> None:
    """A call that was cut off, or the copies in a fork, have no usage."""
    ledger = ledger_of(
        part("user words", 100),
        part("agent's words", 500),
        part("tool calls", 250),
        part("tool results", 1_000),
        part("agent's words", 100),
        call("a", 2_000, 40),
        usage_follows_reply=True,
    )
    assert tokens_of(ledger) == {
        "system and tools": 1_260,
        "user words": 40,
        "agent's words": 200,
        "tool calls": 100,
        "tool results": 400,
    }


def test_search_belongs_to_the_call_that_asked_for_it() -> None:
    ledger = ledger_of(
        call("a", 1_000),
        part("agent's words", 100),
        search(),
        part("tool calls", 100),
        call("b", 5_000, 80),
        usage_follows_reply=True,
    )
    assert tokens_of(ledger) == {"system and tools": 1_000, "tool results": 4_000}


def test_compaction_keeps_the_last_records() -> None:
    recorder = StepRecorder(usage_follows_reply=False)
    session = Session(agent="claude", records_compactions=True)
    items: list[Call | Compacted | ContextPart] = [
        ContextPart("user words", "old", 1_000, record=1),
        call("a", 1_400, 200),
        ContextPart("agent's words", "kept reply", 500, record=2),
        ContextPart("tool results", "kept result", 1_000, record=3),
        call("b", 2_000),
        ContextPart("tool results", "last result", 250, record=4),
        Compacted(at=1.0),
    ]
    for item in items:
        if isinstance(item, ContextPart):
            recorder.add_part(item)
        else:
            recorder.add_event(item)
    recorder.keep_records(2)
    last = call("c", 1_700)
    recorder.add_event(last)
    events = [item for item in items if not isinstance(item, ContextPart)]
    session = fold(session, [*events, last])
    ledger = settle("main", recorder, session.threads["main"])
    assert {entry.part.what: entry.tokens for entry in ledger.entries} == {
        "system prompt and tools": 1_000,
        "kept reply": 200,
        "kept result": 400,
        "last result": 100,
    }


PARTS = st.builds(part, st.sampled_from(CATEGORIES), st.integers(0, 5_000))
CALLS = st.builds(call, st.sampled_from("abcdefgh"), st.integers(0, 50_000), st.integers(0, 5_000))
CHANGES = st.sampled_from(
    [Compacted(at=1.0), Compacted(at=2.0), Cleared(), Trimmed(), Rewound(to="b"), Rewound(to=None)]
)


@given(st.lists(PARTS | CALLS | CHANGES | st.builds(search)), st.booleans())
def test_every_call_adds_up(items: list[object], usage_follows_reply: bool) -> None:
    ledger = ledger_of(*items, usage_follows_reply=usage_follows_reply)
    for balance in ledger.balances:
        assert sum(balance.categories) + balance.unexplained == balance.sent
        assert min(*balance.categories, balance.unexplained) >= 0
    if ledger.sent is not None:
        assert sum(tokens_of(ledger).values()) + ledger.unexplained == ledger.sent


@given(st.integers(0, 10**9), st.lists(st.floats(0, 1e6), min_size=1))
def test_split_adds_up(total: int, weights: list[float]) -> None:
    shares = split(total, weights)
    assert sum(shares) == total
    assert min(shares) >= 0


def test_edit_that_is_reported_after_its_call_trims_it_too() -> None:
    ledger = ledger_of(
        call("a", 1_000),
        part("tool results", 4_000, "old"),
        call("b", 3_000),
        part("tool results", 4_000, "new"),
        call("c", 3_500),
        Edited(call="c", kind="clear_tool_uses"),
    )
    left = {entry.part.what: entry.tokens for entry in ledger.entries}
    assert left == {"system prompt and tools": 1_000, "old": 500, "new": 2_000}


def test_edit_after_a_compaction_changes_nothing() -> None:
    ledger = ledger_of(
        call("a", 1_000), Compacted(at=1.0), Edited(call="b", kind="x"), call("b", 1_200)
    )
    assert [step.start for step in ledger.steps] == ["continued", "compacted"]


def test_summary_call_that_is_not_the_last_stays() -> None:
    ledger = ledger_of(call("s", 900), call("a", 1_000), Compacted(at=1.0, summary_call="s"))
    assert [step.call.id for step in ledger.steps] == ["s", "a"]


def test_compaction_that_keeps_all_records() -> None:
    recorder = StepRecorder()
    recorder.add_part(ContextPart("user words", "x", 100, record=1))
    recorder.add_event(call("a", 1_000))
    recorder.add_event(Compacted(at=1.0))
    recorder.keep_records(1)
    assert [kept.what for kept in recorder.inputs] == ["x"]


def test_reply_before_the_first_call_is_left_out() -> None:
    ledger = ledger_of(part("agent's words", 100), call("a", 1_000))
    assert tokens_of(ledger) == {"system and tools": 1_000}
