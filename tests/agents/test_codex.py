"""Codex: rollouts, `exec --json`, paths and settings."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import source
from brimline.agents.codex.paths import transcripts
from brimline.agents.codex.transcript import MAX_TURNS, RolloutParser
from brimline.agents.codex.transcript_source import SOURCE
from brimline.agents.transcripts.source import Cursor, Parser, Places, Source, Transcript
from brimline.context.client_report import Quota, Quotas
from brimline.context.events import (
    Added,
    AnyEvent,
    Call,
    Compacted,
    Rewound,
    SessionSeen,
    Spent,
    Trimmed,
    Unmetered,
    WindowReported,
)
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, MalformedJson, UnexpectedJson, UnreadableTranscript
from hypothesis_examples import examples

from .garbage import check_survives, garbage

OWN = "01a1dd36-54c4-7a43-b7cd-e47e7674d424"
CHILD = "01a1dd37-6b88-79b0-bb5c-84439248f53a"
AT = "2026-11-15T03:18:07.000Z"
SECONDS = 1794712687.0

Json = dict[str, Any]


def line(kind: str, payload: Json, **more: Any) -> Json:
    return {"timestamp": AT, "type": kind, "payload": payload, **more}


def event(kind: str, **fields: Any) -> Json:
    return line("event_msg", {"type": kind, **fields})


def meta(name: str = OWN, **fields: Any) -> Json:
    known = {"id": name, "cwd": "/home/me/project", "cli_version": "0.142.5", "source": "cli"}
    return line("session_meta", known | fields)


def turn(name: str, model: str = "gpt-5.5", **more: Any) -> Json:
    return line("turn_context", {"turn_id": name, "model": model, **more})


def tokens(prompt: int, output: int, cached: int = 0, written: int = 0) -> Json:
    return {
        "input_tokens": prompt,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": prompt + output,
    }


def count(last: Json, total: Json, window: int | None = 258_400) -> Json:
    info = {"last_token_usage": last, "total_token_usage": total, "model_context_window": window}
    return event("token_count", info=info)


def record(name: str | None, usage: Json, total: Json, thread: str = OWN, **more: Any) -> Json:
    payload = {"response_id": name, "usage": usage, "thread_token_usage": total}
    return line("token_usage_record", payload | {"thread_id": thread}, **more)


def estimate(left: int) -> Json:
    """The count after a compaction."""
    return tokens(0, 0) | {"total_tokens": left}


def feed(parser: Parser, records: list[Json]) -> list[AnyEvent]:
    """Return the events that a parser gives for some records."""
    read_events: list[AnyEvent] = []
    for each in records:
        read_events += parser.feed(msgspec.json.encode(each)) or ()
    return read_events


def events(*records: Json) -> list[AnyEvent]:
    """Return the events that a new parser gives for some records."""
    return feed(RolloutParser(), list(records))


def calls(parsed_events: list[AnyEvent]) -> list[Call]:
    return [each for each in parsed_events if isinstance(each, Call)]


def of_kind(parsed_events: list[AnyEvent], *kinds: type) -> list[AnyEvent]:
    return [each for each in parsed_events if isinstance(each, kinds)]


SESSION: list[Json] = [
    meta(),
    event("task_started", turn_id="t1", model_context_window=258_400),
    turn("t1"),
    event("user_message", message="go"),
    event("token_count", info=None),
    count(tokens(1_000, 50), tokens(1_000, 50)),
    line("response_item", {"type": "message"}),
    count(tokens(2_000, 60, 900), tokens(3_000, 110, 900)),
    count(tokens(2_000, 60, 900), tokens(3_000, 110, 900)),
    line("compacted", {"message": "", "replacement_history": []}),
    turn("t1"),
    count(estimate(400), tokens(3_000, 110, 900)),
    event("context_compacted"),
    count(tokens(700, 10), tokens(3_700, 120, 900), 353_400),
    event("task_complete"),
    event("task_started", turn_id="t2"),
    turn("t2", "gpt-5.6"),
    event("user_message", message="more"),
    count(tokens(700, 10), tokens(3_700, 120, 900), 353_400),
    record("resp_0000000001", tokens(800, 20, 600, 100), tokens(4_500, 140, 1_500, 100)),
    count(tokens(800, 20, 600, 100), tokens(4_500, 140, 1_500, 100), 353_400),
    event("thread_rolled_back", num_turns=1),
    event("thread_name_updated", thread_name="A name"),
    event("task_complete"),
]


def write(path: Path, records: list[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in records))
    return path


def transcript(path: Path) -> Transcript:
    return Transcript("codex", str(path), 0, 0)


def test_source_satisfies_the_protocol_and_is_registered() -> None:
    codex: Source = SOURCE
    assert source("codex") is codex
    assert codex.agent == "codex"


def test_header_gives_session_project_and_version() -> None:
    assert events(meta()) == [
        SessionSeen(
            at=SECONDS,
            session=OWN,
            agent="codex",
            project="/home/me/project",
            version="0.142.5",
            records_compactions=True,
        )
    ]


def test_cache_is_taken_out_of_the_input_and_held_is_the_total() -> None:
    read_calls = calls(events(meta(), turn("t1"), count(tokens(800, 20, 600, 100), tokens(9, 9))))
    assert read_calls[0].usage == Usage(100, 600, 100, 20, 0)
    assert read_calls[0].usage.held == 820
    assert (read_calls[0].model, read_calls[0].thread, read_calls[0].at) == (
        "gpt-5.5",
        "main",
        SECONDS,
    )


@pytest.mark.parametrize("kind", ["task_started", "turn_started"])
def test_window_is_known_from_the_start_of_a_turn(kind: str) -> None:
    """Before the first call, which repeats it."""
    started = event(kind, turn_id="t1", model_context_window=258_400)
    (window,) = of_kind(events(meta(), started, turn("t1")), WindowReported)
    assert window == WindowReported(at=SECONDS, tokens=258_400, thread="main")
    usage = tokens(1_000, 50)
    assert len(of_kind(events(meta(), started, count(usage, usage)), WindowReported)) == 1


def test_call_before_the_first_turn_has_the_model_of_the_settings() -> None:
    row = event("thread_settings_applied", thread_settings={"model": "gpt-6"})
    usage = tokens(800, 20)
    assert calls(events(meta(), row, record("resp_1", usage, usage)))[0].model == "gpt-6"


@pytest.mark.parametrize(
    ("setting", "service_tier"),
    [("priority", "priority"), ("flex", "flex"), ("default", None), (None, None)],
)
def test_call_has_the_service_tier_of_the_settings(
    setting: str | None, service_tier: str | None
) -> None:
    fast = event("thread_settings_applied", thread_settings={"service_tier": "fast"})
    row = event("thread_settings_applied", thread_settings={"service_tier": setting})
    usage = tokens(800, 20)
    (call,) = calls(events(meta(), fast, row, record("resp_1", usage, usage)))
    assert call.service_tier == service_tier


def test_repeated_token_count_is_one_call() -> None:
    row = count(tokens(800, 20), tokens(800, 20))
    assert len(calls(events(meta(), turn("t1"), row, row, turn("t2"), row))) == 1


def test_equal_calls_differ_by_the_running_total() -> None:
    first = count(tokens(800, 20), tokens(800, 20))
    second = count(tokens(800, 20), tokens(1_600, 40))
    assert len({call.id for call in calls(events(meta(), turn("t1"), first, second))}) == 2


def test_response_id_of_a_usage_record_is_the_call_id() -> None:
    usage, total = tokens(800, 20), tokens(4_500, 140)
    read_calls = calls(events(meta(), record("resp_1", usage, total), count(usage, total)))
    assert [call.id for call in read_calls] == ["resp_1"]


def test_totals_that_differ_from_records_repeat_no_call() -> None:
    usage = tokens(800, 20)
    read_events = events(
        meta(), record("resp_1", usage, tokens(9_000, 90)), count(usage, tokens(800, 20))
    )
    assert [call.id for call in calls(read_events)] == ["resp_1"]


def test_record_without_response_id_has_the_id_of_its_token_count() -> None:
    usage = tokens(800, 20)
    read_events = calls(events(meta(), turn("t1"), record(None, usage, usage), count(usage, usage)))
    counted = calls(events(meta(), turn("t1"), count(usage, usage)))
    assert [call.id for call in read_events] == [call.id for call in counted]


FORK_TURN = "01a1dd40-0000-7000-8000-000000000000"  # later than CHILD, the fork


@pytest.mark.parametrize("old_turn", [OWN, None, "t1"])
def test_records_that_a_fork_copied_are_not_its_own(old_turn: str | None) -> None:
    """The editor's fork writes the history again at once, under new times."""
    usage = tokens(800, 20)
    origin = [
        meta(),
        *([turn(old_turn)] if old_turn else []),
        count(usage, usage),
        record("resp_1", usage, tokens(1_600, 40)),
        line("compacted", {}),
    ]
    later = {"timestamp": "2026-11-15T03:18:27.000Z"}
    own = [turn(FORK_TURN) | later, count(tokens(900, 30), tokens(2_500, 70)) | later]
    fork = events(meta(CHILD, forked_from_id=OWN, source="vscode"), *origin, *own)
    assert [call.usage.sent for call in calls(fork)] == [900]
    assert [each.session for each in fork if isinstance(each, SessionSeen)] == [CHILD]
    assert of_kind(fork, Compacted) == []


def test_fork_that_copies_slowly_is_recognised_by_its_turns() -> None:
    later = {"timestamp": "2026-11-15T03:18:27.000Z"}
    old = [turn(OWN), count(tokens(800, 20), tokens(800, 20)) | later]
    own = [turn(FORK_TURN), count(tokens(900, 30), tokens(1_700, 50)) | later]
    fork = events(meta(CHILD, forked_from_id=OWN), *old, *own)
    assert [call.usage.sent for call in calls(fork)] == [900]


def test_first_call_of_a_fork_may_be_quick() -> None:
    usage = tokens(900, 30)
    own = [turn(FORK_TURN), record("resp_2", usage, usage, thread=CHILD), count(usage, usage)]
    fork = events(meta(CHILD, forked_from_id=OWN), *own)
    assert [call.id for call in calls(fork)] == ["resp_2"]


def test_repeated_last_count_of_a_fork_is_no_call() -> None:
    last = count(tokens(800, 20), tokens(4_500, 140))
    base = {"thread_id": OWN, "end_ordinal_exclusive": 30, "end_byte_offset": 9}
    fork = [meta("019f0000-0000", forked_from_id=OWN, history_base=base), last, turn("t1"), last]
    assert calls(events(*fork)) == []
    assert len(calls(events(*fork, count(tokens(900, 20), tokens(5_400, 160))))) == 1


def test_equal_calls_of_two_sessions_without_turn_ids_differ() -> None:
    row = count(tokens(800, 20), tokens(800, 20))
    assert calls(events(meta("a"), row))[0].id != calls(events(meta("b"), row))[0].id


def test_repeated_header_gives_an_event_only_for_a_change() -> None:
    read_events = events(meta(), meta(), meta(cli_version="0.166.0"))
    assert read_events[1:] == [
        SessionSeen(at=SECONDS, version="0.166.0", project="/home/me/project"),
    ]


def test_call_has_the_branch_of_the_last_header() -> None:
    """On a detached head the header has no branch; that of a copied thread does not count."""
    parser = RolloutParser()
    headers: list[Json] = [
        meta(git={"commit_hash": "0", "branch": "main"}),
        meta(git={"commit_hash": "0", "branch": "feature/x"}),
        meta(CHILD, git={"branch": "other"}),
        meta(git={"commit_hash": "0"}),
        meta(git=None),
        meta(),
    ]
    branches: list[str | None] = []
    for number, header in enumerate(headers, 1):
        usage, total = tokens(10, 1), tokens(10 * number, number)
        read_events = feed(parser, [header, count(usage, total)])
        branches += [each.branch for each in read_events if isinstance(each, Call)]
        parser = RolloutParser(parser.carry())
    assert branches == ["main", "feature/x", "feature/x", None, None, None]


def test_new_effort_is_reported_once() -> None:
    efforts = ("low", "low", None, "xhigh")
    read_events = events(*(turn(f"t{n}", effort=effort) for n, effort in enumerate(efforts)))
    assert read_events == [
        SessionSeen(at=SECONDS, effort="low"),
        SessionSeen(at=SECONDS, effort="xhigh"),
    ]


def test_token_count_without_info_is_no_call() -> None:
    assert events(event("token_count", info=None)) == []
    assert [type(each) for each in events(event("token_count"))] == [Unmetered]


def limit(used: Any, minutes: int, resets_at: Any = SECONDS + 3_600) -> Json:
    return {"used_percent": used, "window_minutes": minutes, "resets_at": resets_at}


def limits(primary: Any = None, secondary: Any = None) -> Json:
    """A token_count with rate limits alone, as before the first call."""
    rate_limits = {"limit_id": "codex", "primary": primary, "secondary": secondary}
    return event("token_count", info=None, rate_limits=rate_limits)


def quotas_of(*records: Json) -> list[Quotas | None]:
    return [each.quotas for each in events(meta(), *records)[1:] if isinstance(each, SessionSeen)]


def test_quotas_of_a_plan_are_reported_once_per_change() -> None:
    five, seven = Quota(100.0, SECONDS + 3_600), Quota(17.0, SECONDS + 3_600)
    both = limits(limit(100.0, 300), limit(17.0, 10_080))
    assert quotas_of(both, both, limits(limit(17.0, 10_080)), limits()) == [
        Quotas(SECONDS, five, seven),
        Quotas(SECONDS, None, seven),
    ]


@pytest.mark.parametrize(
    "primary",
    [None, limit(5, 60), limit("5", 300), limit(-1, 300), limit(5, 300, None), {}, "full", [[]]],
    ids=str,
)
def test_impossible_quota_is_ignored_and_its_call_counts(primary: Any) -> None:
    known = count(tokens(100, 10), tokens(100, 10))
    known["payload"]["rate_limits"] = {"primary": primary}
    assert quotas_of(known) == []
    assert len(calls(events(meta(), turn("t1"), known))) == 1


def test_zero_count_after_a_compaction_gives_its_after() -> None:
    read_events = events(*SESSION)
    at_once = Compacted(at=SECONDS, trigger="auto", before=2_060)
    again = Compacted(at=SECONDS, trigger="auto", before=2_060, after=400)
    assert of_kind(read_events, Compacted) == [at_once, again]
    assert [call.usage.sent for call in calls(read_events)] == [1_000, 2_000, 700, 800]


def test_compaction_without_an_estimate_comes_before_the_next_call() -> None:
    after = count(tokens(700, 10), tokens(700, 10))
    read_events = events(meta(), line("compacted", {"message": ""}), after)
    assert [type(each) for each in of_kind(read_events, Compacted, Call)] == [Compacted, Call]


@pytest.mark.parametrize("kind", ["task_complete", "turn_aborted", "task_started"])
def test_zero_count_after_the_turn_is_not_about_the_compaction(kind: str) -> None:
    late = count(estimate(400), tokens(9, 9))
    read_events = events(meta(), line("compacted", {"message": ""}), event(kind), late)
    assert of_kind(read_events, Compacted) == [Compacted(at=SECONDS)]


def test_two_compactions_in_a_row_are_two() -> None:
    result = line("compacted", {"message": ""})
    read_events = events(meta(), result, result, count(estimate(400), tokens(9, 9)))
    assert [each.after for each in read_events if isinstance(each, Compacted)] == [None, None, 400]


def test_repeated_zero_count_gives_nothing() -> None:
    again = count(estimate(400), tokens(9, 9), None)
    once = events(meta(), line("compacted", {}), again)
    assert events(meta(), line("compacted", {}), again, again) == once


def test_call_that_writes_the_summary_counts() -> None:
    summary_usage = tokens(900, 30)
    read_events = events(
        meta(),
        event("task_started"),
        record("resp_1", summary_usage, summary_usage),
        line("compacted", {"compaction_response_id": "resp_1"}),
        count(estimate(400), summary_usage),
    )
    assert [call.id for call in calls(read_events)] == ["resp_1"]
    assert of_kind(read_events, Compacted)[-1] == Compacted(at=SECONDS, before=930, after=400)


def test_compaction_in_a_turn_with_calls_is_automatic() -> None:
    first, second = tokens(800, 20), tokens(900, 30)
    read_events = events(
        meta(),
        event("task_started"),
        record("resp_1", first, first),
        record("resp_2", second, tokens(1_700, 50)),
        line("compacted", {"compaction_response_id": "resp_2"}),
        event("task_complete"),
    )
    assert of_kind(read_events, Compacted) == [Compacted(at=SECONDS, trigger="auto", before=820)]


def test_compaction_whose_summary_call_is_not_recorded_is_automatic() -> None:
    first = tokens(800, 20)
    read_events = events(
        meta(),
        event("task_started"),
        record("resp_1", first, first),
        line("compacted", {"compaction_response_id": "resp_9"}),
        event("task_complete"),
    )
    assert of_kind(read_events, Compacted) == [Compacted(at=SECONDS, trigger="auto", before=820)]


def test_valid_window_is_reported_once_per_change() -> None:
    read_events = events(*SESSION, count(estimate(1), tokens(1, 1), 0))
    assert [each.tokens for each in read_events if isinstance(each, WindowReported)] == [
        258_400,
        353_400,
    ]


def test_rollback_goes_back_to_the_call_before_the_turn() -> None:
    read_events = events(*SESSION)
    before = calls(read_events)[2].id
    assert of_kind(read_events, Rewound) == [Rewound(at=SECONDS, to=before)]


def test_rollback_of_all_turns_leaves_nothing_held() -> None:
    row = count(tokens(800, 20), tokens(800, 20))
    back = event("thread_rolled_back", num_turns=1)
    assert events(meta(), event("user_message"), row, back)[-1] == Rewound(at=SECONDS, to=None)


def test_rollback_of_more_turns_than_remembered_is_unknown() -> None:
    user_messages = [event("user_message")] * (MAX_TURNS + 1)
    far = event("thread_rolled_back", num_turns=MAX_TURNS + 1)
    assert events(meta(), *user_messages, far)[-1] == Trimmed(at=SECONDS)
    assert events(meta(), *user_messages, event("thread_rolled_back", num_turns=0))[1:] == []


def test_thread_name_is_the_title_unless_empty() -> None:
    assert events(*SESSION)[-1] == SessionSeen(at=SECONDS, title="A name")
    assert events(event("thread_name_updated", thread_name=None)) == []


# What Codex adds to a call's usage before it compares it with its limit.


def item(kind: str, size: int = 0, **fields: Any) -> Json:
    """An item of the conversation whose JSON has this many bytes."""
    payload: Json = {"type": kind, **fields, "more": ""}
    payload["more"] = "x" * max(0, size - len(msgspec.json.encode(payload)))
    return line("response_item", payload)


def message(role: str, text: str) -> Json:
    return line(
        "response_item",
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]},
    )


def reasoning(size: int) -> Json:
    """An item of encrypted reasoning that Codex estimates at this many tokens."""
    return item("reasoning", encrypted_content="x" * ((4 * size + 650) * 4 // 3))


def additions(*records: Json) -> list[tuple[int, int]]:
    """Return what is pending and the earlier reasoning, each time that it is reported."""
    reported = of_kind(events(meta(), *records), Added)
    return [(each.pending, each.earlier_reasoning) for each in reported if isinstance(each, Added)]


FIRST, SECOND = tokens(8_000, 20), tokens(9_000, 30)
FIRST_COUNT, SECOND_COUNT = count(FIRST, FIRST), count(SECOND, tokens(17_000, 50))
CALLED = item("function_call")
RESULT = item("function_call_output", 4_001)


def test_results_before_the_calls_usage_are_pending() -> None:
    """Until 0.144 the usage of a call is written after the results of its tools."""
    assert additions(CALLED, RESULT, FIRST_COUNT) == [(1_001, 0)]


def test_results_after_the_calls_usage_are_pending() -> None:
    """In 0.166 a record of the usage comes before the results, a count after them."""
    billed = record("resp_1", FIRST, FIRST)
    assert additions(CALLED, billed, RESULT, RESULT, FIRST_COUNT) == [(1_001, 0), (2_002, 0)]


def test_next_call_ends_what_is_pending() -> None:
    """While the model replies, the last call and what was added to it stay."""
    billed = record("resp_1", FIRST, FIRST)
    parsed = events(meta(), CALLED, billed, RESULT, CALLED, RESULT, SECOND_COUNT)
    assert [type(each) for each in parsed[1:]] == [Call, Added, WindowReported, Call, Added]
    assert additions(CALLED, billed, RESULT, CALLED, SECOND_COUNT) == [(1_001, 0)]


def test_call_whose_reply_is_not_recorded_contains_the_results() -> None:
    assert additions(CALLED, RESULT, FIRST_COUNT, SECOND_COUNT) == [(1_001, 0)]


def test_prompt_is_pending_and_makes_the_reasoning_before_it_earlier() -> None:
    prompt = message("user", "Go on.")
    size = -(-len(msgspec.json.encode(prompt["payload"])) // 4)
    assert additions(reasoning(500), FIRST_COUNT, prompt) == [(size, 500)]
    assert additions(reasoning(500), FIRST_COUNT, prompt, reasoning(300), SECOND_COUNT) == [
        (size, 500),
        (0, 500),
    ]


@pytest.mark.parametrize(
    "text", ["<environment_context>\n</environment_context>", "# AGENTS.md instructions for /p"]
)
def test_text_that_the_client_added_begins_no_turn(text: str) -> None:
    assert [more for _, more in additions(reasoning(500), FIRST_COUNT, message("user", text))] == [
        0
    ]


def test_reasoning_that_the_server_counts_is_not_added() -> None:
    info = {"last_token_usage": SECOND, "total_token_usage": tokens(17_000, 50)}
    counted = event("token_count", info=info | {"last_usage_includes_reasoning": True})
    prompt = message("user", "Go on.")
    reported = additions(reasoning(500), FIRST_COUNT, prompt, CALLED, counted, RESULT)
    assert reported[1:] == [(1_001, 0)]


@pytest.mark.parametrize(
    ("fields", "tokens_added"),
    [
        pytest.param({}, 1_200, id="taken out"),
        pytest.param({"encrypted_content": "REDACTED"}, 1_200, id="masked"),
        pytest.param({"encrypted_content": None}, 0, id="not encrypted"),
    ],
)
def test_reasoning_whose_content_is_masked_counts_by_what_was_billed(
    fields: Json, tokens_added: int
) -> None:
    usage = tokens(8_000, 1_020) | {"reasoning_output_tokens": 1_000}
    reported = additions(item("reasoning", **fields), count(usage, usage), message("user", "Go."))
    assert [more for _, more in reported] == [tokens_added]


def test_image_counts_the_same_whatever_its_size() -> None:
    def pending(size: int) -> int:
        image = f"data:image/png;base64,{'A' * size}"
        output = item("function_call_output", output=[{"type": "input_image", "image_url": image}])
        return additions(CALLED, FIRST_COUNT, output)[0][0]

    assert pending(9) == pending(90_000)
    assert 7_373 // 4 < pending(9) < 7_373 // 4 + 50


def test_compaction_came_at_what_codex_compared() -> None:
    """Not at what its last call held."""
    read_events = events(
        meta(), event("task_started"), reasoning(500), FIRST_COUNT,
        message("user", "Go on."), CALLED, RESULT, SECOND_COUNT, line("compacted", {}),
    )  # fmt: skip
    assert [each.before for each in read_events if isinstance(each, Compacted)] == [
        9_030 + 1_001 + 500
    ]


def test_call_of_the_summary_does_not_count_for_where_it_compacted() -> None:
    read_events = events(
        meta(),
        event("task_started"),
        CALLED,
        record("resp_1", FIRST, FIRST),
        RESULT,
        message("assistant", "A summary."),
        record("resp_2", SECOND, tokens(17_000, 50)),
        line("compacted", {"compaction_response_id": "resp_2"}),
    )
    assert [each.before for each in read_events if isinstance(each, Compacted)] == [8_020 + 1_001]


def test_nothing_is_added_after_a_compaction_until_the_next_prompt() -> None:
    before = [reasoning(500), FIRST_COUNT, message("user", "Go on."), line("compacted", {})]
    again = [CALLED, SECOND_COUNT]
    assert additions(*before, *again)[1:] == []


def test_rollback_leaves_the_reasoning_of_the_turns_before() -> None:
    def turn_with(tokens_of_reasoning: int, usage: Json) -> list[Json]:
        started = [event("user_message"), message("user", "Go on.")]
        return [*started, reasoning(tokens_of_reasoning), count(usage, usage)]

    turns = [*turn_with(500, tokens(1, 1)), *turn_with(300, tokens(2, 2))]
    back = [event("thread_rolled_back", num_turns=1), *turn_with(100, tokens(3, 3))]
    assert additions(*turns, *turn_with(100, tokens(3, 3)))[-1] == (0, 800)
    assert additions(*turns, *back)[-1] == (0, 500)


SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": OWN, "agent_nickname": "Tesla"}}}


def test_subagent_is_a_thread_of_its_parents_session() -> None:
    read_events = events(
        meta(CHILD, session_id=OWN, parent_thread_id=OWN, source=SPAWN),
        turn("01a1dd37-6b8d"),
        count(tokens(800, 20), tokens(800, 20)),
        line("compacted", {}),
        event("task_complete"),
    )
    assert isinstance(read_events[0], SessionSeen)
    assert read_events[0].session == OWN
    threads = {e.thread for e in read_events if isinstance(e, Call | WindowReported | Compacted)}
    assert threads == {"Tesla-9248f53a"}


@pytest.mark.parametrize(
    ("fields", "session", "thread"),
    [
        ({"source": "exec"}, CHILD, "main"),
        ({"source": {"subagent": "review"}}, CHILD, "main"),
        ({"source": {"custom": "x"}}, CHILD, "main"),
        ({"source": {"subagent": {"thread_spawn": {"parent_thread_id": OWN}}}}, OWN, CHILD),
        ({"source": {"subagent": "review"}, "session_id": OWN}, OWN, CHILD),
        ({"parent_thread_id": OWN, "agent_role": "worker"}, OWN, "worker-9248f53a"),
        ({"session_id": CHILD, "source": SPAWN}, OWN, "Tesla-9248f53a"),
    ],
)
def test_header_of_any_version_gives_session_and_thread(
    tmp_path: Path, fields: Json, session: str, thread: str
) -> None:
    places = Places(home=tmp_path, env={})
    write(tmp_path / ".codex/sessions/2026/11/15/rollout-x.jsonl", [meta(CHILD, **fields)])
    (listed,) = transcripts(places)
    assert (listed.session, listed.thread, listed.project) == (session, thread, "/home/me/project")


def test_copied_history_before_the_start_ordinal_is_skipped() -> None:
    usage = tokens(800, 20)
    read_events = events(
        meta(CHILD, source=SPAWN, subagent_history_start_ordinal=5),
        record("resp_1", usage, usage, ordinal=2),
        line("compacted", {}, ordinal=3),
        event("task_complete") | {"ordinal": 4},
        event("thread_rolled_back", num_turns=1) | {"ordinal": 4},
        event("user_message") | {"ordinal": 4},
        count(usage, usage) | {"ordinal": 5},
        record("resp_2", usage, tokens(1_600, 40), CHILD, ordinal=6),
    )
    assert [call.id for call in calls(read_events)] == ["resp_2"]
    assert of_kind(read_events, Compacted, Rewound, Trimmed) == []


def test_copied_history_is_recognised_by_thread_and_turn_ids() -> None:
    usage = tokens(800, 20)
    read_events = events(
        meta(CHILD, source=SPAWN),
        meta(OWN),
        turn("01a1dd36-0000"),
        count(usage, usage),
        record("resp_1", usage, usage, OWN),
        turn("01a1dd38-0000"),
        count(usage, usage),
        count(usage, tokens(1_600, 40)),
    )
    assert [call.thread for call in calls(read_events)] == []
    own = events(meta(CHILD, source=SPAWN), turn("01a1dd38-0000"), count(usage, usage))
    assert len(calls(own)) == 1


def test_empty_usage_record_is_no_call() -> None:
    assert events(meta(), record("resp_1", tokens(0, 0), tokens(9, 9)))[1:] == []


def test_first_versions_give_only_the_session() -> None:
    parser = RolloutParser()
    read_events = feed(
        parser,
        [
            {"id": OWN, "timestamp": AT, "instructions": None},
            {"type": "message", "role": "user", "content": []},
            {"record_type": "state"},
        ],
    )
    assert read_events == [
        SessionSeen(at=SECONDS, session=OWN, agent="codex", records_compactions=True)
    ]


@pytest.mark.parametrize(
    "unknown", [{}, {"type": "tomorrow", "payload": 3}, event("tomorrow", info="x")]
)
def test_unknown_kind_is_none(unknown: Json) -> None:
    assert RolloutParser().feed(msgspec.json.encode(unknown)) is None


@pytest.mark.parametrize(
    "bad",
    [
        line("session_meta", {"cwd": "/"}),
        line("session_meta", {"id": 5}),
        line("turn_context", {"model": 5}),
        line("token_usage_record", {"response_id": "r"}),
        event("token_count", info={"last_token_usage": {}}),
        count(tokens(10, 1, cached=11), tokens(10, 1)),
        record("r", tokens(-10, 1), tokens(10, 1)),
        event("thread_rolled_back"),
        event("task_started", model_context_window="big"),
        line("compacted", {"compaction_response_id": 5}),
        line("event_msg", {}),
        {"type": 5},
    ],
)
def test_malformed_records_raise_and_change_nothing(bad: Json) -> None:
    parser = RolloutParser()
    feed(parser, SESSION[:10])
    before = parser.carry()
    with pytest.raises((MalformedJson, InvalidUsage)):
        parser.feed(msgspec.json.encode(bad))
    assert parser.carry() == before


def test_reading_by_a_cursor_gives_the_same_events(tmp_path: Path) -> None:
    whole = list(SOURCE.read(transcript(write(tmp_path / "whole.jsonl", SESSION))))
    for split in range(len(SESSION) + 1):
        path = write(tmp_path / "part.jsonl", SESSION[:split])
        first = SOURCE.read(transcript(path))
        read_events = list(first)
        write(path, SESSION)
        read_events += SOURCE.read(transcript(path), first.cursor)
        assert read_events == whole


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTranscript):
        SOURCE.read(transcript(tmp_path / "gone.jsonl"), Cursor())


def test_rollout_can_be_read_from_an_open_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", SESSION)
    with path.open("rb") as file:
        assert list(SOURCE.parse(file)) == events(*SESSION)


def test_sessions_and_archived_sessions_are_listed(tmp_path: Path) -> None:
    home = tmp_path / "elsewhere"
    first = write(home / "sessions/2026/11/15/rollout-a.jsonl", [meta("a")])
    second = write(home / "archived_sessions/rollout-b.jsonl", [{"id": "b", "timestamp": AT}])
    broken = home / "sessions/rollout-c.jsonl"
    broken.write_text('{"half')
    (home / "sessions/history.jsonl").write_text("{}")
    (home / "sessions/rollout-d.jsonl").mkdir()
    (home / "sessions/rollout-e.jsonl").symlink_to(home / "nowhere")
    listed = {
        each.path: each
        for each in transcripts(Places(home=tmp_path, env={"CODEX_HOME": str(home)}))
    }
    assert set(listed) == {str(first), str(second), str(broken)}
    assert [listed[str(path)].session for path in (first, second, broken)] == ["a", "b", None]
    assert listed[str(first)].size == first.stat().st_size


def test_home_without_codex_has_no_transcripts(tmp_path: Path) -> None:
    assert list(transcripts(Places(home=tmp_path, env={}))) == []


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (msgspec.json.encode(meta()) + b"\n", "transcript"),
        (msgspec.json.encode(event("token_count")) + b"\n", "transcript"),
        (msgspec.json.encode(meta())[:150], "transcript"),
        (b'\0\n{"id":"x","timestamp":"2025","instructions":null}\n', "transcript"),
        (b'{"id":"x","timestamp":"2025","git":{}}', "transcript"),
        (b'{"type":"thread.started","thread_id":"x"}\n', "stream"),
        (b'{"type":"thread.started"}\n', None),
        (b'{"id":"x","timestamp":"2025"}', None),
        (b'{"type":"session","id":"x","timestamp":"2025","cwd":"/"}\n', None),
        (b'{"type":"user","sessionId":"x","timestamp":"2025","message":{}}\n', None),
        (b'{"type":"system","subtype":"init","session_id":"x"}\n', None),
        (b"[]\n", None),
        (b"", None),
    ],
)
def test_own_files_and_streams_are_recognised(head: bytes, form: str | None) -> None:
    assert SOURCE.recognise(head) == form


def read_settings(tmp_path: Path, user: str, project: str | None = None) -> tuple[Any, ...]:
    """Return the settings of these user and project files."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text(user)
    if project is not None:
        (tmp_path / "project/.codex").mkdir(parents=True)
        (tmp_path / "project/.codex/config.toml").write_text(project)
    where = str(tmp_path / "project") if project is not None else None
    client_settings = SOURCE.settings(Places(home=tmp_path, env={}), where)
    return client_settings.limit, dict(client_settings.windows), client_settings.auto_compact


def test_limit_and_window_come_from_the_config(tmp_path: Path) -> None:
    """Codex grants 95 % of the window."""
    text = 'model = "x"\nmodel_context_window = 100000\nmodel_auto_compact_token_limit = 60000\n'
    assert read_settings(tmp_path, text) == (60_000, {"*": 95_000}, None)


def test_profile_overrides_the_file_and_project_the_user(tmp_path: Path) -> None:
    user = (
        'profile = "small"\nmodel_context_window = 100000\nmodel_auto_compact_token_limit = 9\n'
        "[profiles.small]\nmodel_context_window = 50000\n"
    )
    project = "model_auto_compact_token_limit = 30000\n"
    assert read_settings(tmp_path, user, project) == (30_000, {"*": 47_500}, None)


NESTED = "a = " + 100_000 * "["


@pytest.mark.parametrize("text", ["not toml [", 'model_context_window = "big"', "", "\0", NESTED])
def test_malformed_settings_are_ignored(tmp_path: Path, text: str) -> None:
    assert read_settings(tmp_path, text) == (None, {}, None)


def test_no_settings_give_no_values(tmp_path: Path) -> None:
    assert SOURCE.settings(Places(home=tmp_path, env={})).limit is None


def turn_completed(prompt: int, output: int, cached: int = 0) -> Json:
    usage = tokens(prompt, output, cached)
    del usage["total_tokens"]
    return {"type": "turn.completed", "usage": usage}


STREAM: list[Json] = [
    {"type": "thread.started", "thread_id": OWN},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "x"}},
    turn_completed(1_000, 50),
    {"type": "thread.started", "thread_id": OWN},
    turn_completed(3_000, 110, 900),
    turn_completed(3_000, 110, 900),
    {"type": "turn.failed", "error": {"message": "x"}},
    {"type": "thread.started", "thread_id": CHILD},
    turn_completed(700, 10),
]


def test_growth_of_the_totals_is_spent() -> None:
    read_events = feed(SOURCE.stream(), STREAM)
    assert [each.usage for each in read_events if isinstance(each, Spent)] == [
        Usage(1_000, 0, 0, 50, 0),
        Usage(1_100, 900, 0, 60, 0),
        Usage(700, 0, 0, 10, 0),
    ]
    assert [each.session for each in read_events if isinstance(each, SessionSeen)] == [
        OWN,
        OWN,
        CHILD,
    ]
    assert calls(read_events) == []


def test_total_that_fell_is_spent_whole() -> None:
    read_events = feed(
        SOURCE.stream(), [STREAM[0], turn_completed(1_000, 50), turn_completed(200, 5)]
    )
    assert read_events[-1] == Spent(usage=Usage(200, 0, 0, 5, 0))


def test_stream_without_reasoning_and_cache_writes_is_read() -> None:
    usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}
    read_events = feed(SOURCE.stream(), [{"type": "turn.completed", "usage": usage}])
    assert read_events == [Spent(usage=Usage(6, 4, 0, 2))]


def test_unknown_line_is_none_and_turn_without_usage_raises() -> None:
    assert SOURCE.stream().feed(b'{"type":"tomorrow"}') is None
    with pytest.raises(UnexpectedJson):
        SOURCE.stream().feed(b'{"type":"turn.completed"}')


@examples(300)
@given(st.lists(garbage(records=SESSION), max_size=6), st.integers(0, len(SESSION)))
def test_garbage_in_a_rollout_raises_only_declared_errors(inputs: list[bytes], ready: int) -> None:
    parser = RolloutParser()
    feed(parser, SESSION[:ready])
    check_survives(parser, SOURCE, inputs)
    RolloutParser(parser.carry())


@examples(300)
@given(st.lists(garbage(records=STREAM), max_size=6))
def test_garbage_in_a_stream_raises_only_declared_errors(inputs: list[bytes]) -> None:
    check_survives(SOURCE.stream(), SOURCE, inputs)
