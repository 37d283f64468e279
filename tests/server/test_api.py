"""The HTTP API of a running daemon: sessions, history, messages, pushed events."""

import json
import time
import urllib.error
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.context.prices import compute_cost, day_of
from brimline.context.usage import Usage

from .running import Running
from .test_daemon import SESSION, hook_input, status_input

pytestmark = pytest.mark.slow

USAGE = {"input": 100, "cache_read": 90_000, "cache_write": 10_000, "output": 500}
MODEL = "claude-sonnet-4-5"


def call_event(number: int, **more: Any) -> dict[str, Any]:
    event = {"type": "Call", "id": f"c{number}", "usage": USAGE, "model": MODEL, "at": time.time()}
    return {"id": f"e{number}", "session": "sdk-1", "agent": "my-agent", "event": event, **more}


def test_session_view_has_threads_levels_limit_handoff_and_unread(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    (view,) = daemon.get("/v1/sessions")
    assert view == daemon.get(f"/v1/sessions/{SESSION}")
    assert view["session"]["project"] == "/project"
    assert [thread["percent"] for thread in view["threads"]] == [60.0]
    assert (view["levels"], view["limit_at"]) == ([50.0, 65.0], 83.5)
    assert view["handoff"]["state"] == "none"
    assert (view["unread"], view["threads"][0]["pending_level"]) == (1, 50.0)


def test_repeated_events_have_no_second_effect(daemon: Running) -> None:
    batch = {"events": [call_event(1, project="/work"), call_event(2)]}
    assert daemon.post("/v1/events", batch) == {"taken": 2, "known": 0}
    more = {"events": [call_event(2), call_event(3)]}
    assert daemon.post("/v1/events", more) == {"taken": 1, "known": 1}
    view = daemon.get("/v1/sessions/sdk-1")
    assert (view["session"]["agent"], view["session"]["project"]) == ("my-agent", "/work")
    (main,) = view["threads"]
    assert (main["calls"], main["sent"], main["percent"]) == (3, 100_100, 50.1)
    assert view["trend"] == [100_100] * 3
    timeline = daemon.get("/v1/sessions/sdk-1/timeline")
    assert [row["call"] for row in timeline["calls"]] == ["c1", "c2", "c3"]
    assert [row["kind"] for row in timeline["signals"]] == ["level"]
    assert timeline["messages"] == []  # its program takes none


def test_timeline_has_the_cost_of_the_calls_with_a_known_price(daemon: Running) -> None:
    unpriced = call_event(2)
    unpriced["event"]["model"] = "no-such-model"
    daemon.post("/v1/events", {"events": [unpriced]})
    assert daemon.get("/v1/sessions/sdk-1/timeline")["cost"] is None
    daemon.post("/v1/events", {"events": [call_event(1)]})
    cost = compute_cost(MODEL, day_of(time.time()), 0, msgspec.convert(USAGE, Usage))
    assert daemon.get("/v1/sessions/sdk-1/timeline")["cost"] == cost


def test_timeline_has_the_cache_misses_of_every_thread(daemon: Running) -> None:
    """After a compaction only the system prompt, which the first call read, can be missed."""
    now = time.time()
    cold = {"input": 100, "cache_read": 0, "cache_write": 100_000, "output": 500}
    rows = [call_event(number) for number in range(7)]
    for number, row in enumerate(rows):
        row["event"] |= {"at": now - 90 + number, "usage": USAGE if number in (0, 3) else cold}
    rows[3]["event"] = {"type": "Compacted", "at": now - 87, "before": 100_600}
    rows[5]["event"] |= {"thread": "helper", "usage": USAGE}
    rows[6]["event"] |= {"thread": "helper", "at": now}
    daemon.post("/v1/events", {"events": rows})
    misses = daemon.get("/v1/sessions/sdk-1/timeline")["misses"]
    assert [(row["thread"], row["call"], row["number"], row["tokens"]) for row in misses] == [
        ("helper", "c6", 2, 99_600),
        ("main", "c1", 2, 99_600),
        ("main", "c2", 3, 99_600),
        ("main", "c4", 4, 90_000),
    ]
    causes = [row["cause"] for row in misses]
    assert causes == [*["tools or instructions changed"] * 3, "compaction"]
    assert misses[0]["cost"] == pytest.approx(99_600 * (3.75 - 0.30) / 1e6)


def test_event_without_a_time_has_that_of_its_arrival(daemon: Running) -> None:
    began, row = time.time(), call_event(1)
    del row["event"]["at"]
    daemon.post("/v1/events", {"events": [row]})
    (main,) = daemon.get("/v1/sessions/sdk-1")["threads"]
    (call,) = daemon.get("/v1/sessions/sdk-1/timeline")["calls"]
    assert began <= main["at"] == call["at"] <= time.time()
    assert main["source"] == "program"


def test_only_messages_of_the_session_are_acknowledged(daemon: Running) -> None:
    daemon.post("/v1/events", {"events": [call_event(1)]})
    other = daemon.post("/v1/sessions/sdk-2/messages", {"text": "hi"})["id"]
    (level,) = daemon.post("/v1/sessions/sdk-1/messages/take", None)
    body = {"ids": [other, level["id"], "nonsense"]}
    assert daemon.post("/v1/sessions/sdk-1/messages/delivered", body) == {"ids": [level["id"]]}
    assert [row["state"] for row in daemon.get("/v1/sessions/sdk-1/messages")] == ["delivered"]
    assert [row["state"] for row in daemon.get("/v1/sessions/sdk-2/messages")] == ["queued"]
    assert daemon.refused("/v1/sessions/sdk-2/messages/take", b"")[0] == 404


def test_acknowledged_events_survive_a_kill_and_count_once(daemon: Running) -> None:
    daemon.post("/v1/events", {"events": [call_event(1), call_event(2)]})
    daemon.kill()
    daemon.start()
    assert daemon.post("/v1/events", {"events": [call_event(2), call_event(3)]}) == {
        "taken": 1,
        "known": 1,
    }
    (main,) = daemon.get("/v1/sessions/sdk-1")["threads"]
    assert main["calls"] == 3


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"id": "e", "session": "s", "agent": "a", "event": {"type": "Nothing"}},
        {"id": "", "session": "s", "agent": "a", "event": {"type": "Cleared"}},
        {"id": "e", "session": "s", "agent": "a", "event": {"type": "Call", "id": "c"}},
    ],
)
def test_batch_with_an_invalid_event_is_rejected_whole_with_its_place(
    daemon: Running, event: dict[str, Any]
) -> None:
    body = json.dumps({"events": [call_event(1), event]}).encode()
    status, error = daemon.refused("/v1/events", body)
    assert status == 422
    assert "$.events[1]" in error["error"]
    assert daemon.get("/v1/sessions") == []


def test_historic_formulas_are_listed_per_call(daemon: Running) -> None:
    daemon.post("/v1/events", {"events": [call_event(1), call_event(2)]})
    formulas = daemon.get("/v1/sessions/sdk-1/formulas")
    assert formulas["latest"] == [100_100, 100_100]
    assert formulas["result_sums"] == [100_100, 200_200]


def test_pending_message_can_be_cancelled_once(daemon: Running) -> None:
    id = daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})["id"]
    place = f"/v1/sessions/{SESSION}/messages/{id}"
    assert daemon.delete(place) == {"cancelled": True}
    assert daemon.delete(place) == {"cancelled": False}
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""


def test_empty_message_is_rejected(daemon: Running) -> None:
    assert daemon.refused(f"/v1/sessions/{SESSION}/messages", b'{"text": " "}')[0] == 422


def test_sessions_can_be_limited_to_a_span(daemon: Running) -> None:
    old = call_event(1)
    old["event"]["at"] = time.time() - 3 * 86_400
    daemon.post("/v1/events", {"events": [old]})
    assert daemon.get("/v1/sessions") == []
    assert len(daemon.get("/v1/sessions?since=7d")) == 1
    assert len(daemon.get("/v1/sessions?since=all")) == 1
    assert daemon.refused("/v1/sessions?since=long")[0] == 422


def test_history_has_sessions_without_a_transcript_and_observed_limits(daemon: Running) -> None:
    events = [call_event(1)]
    compacted = {"type": "Compacted", "trigger": "auto", "before": 150_000, "at": time.time()}
    events.append({**call_event(2), "event": compacted})
    overflow = compacted | {"before": 190_000, "at": time.time() + 1, "overflow": True}
    events.append({**call_event(3), "event": overflow})
    daemon.post("/v1/events", {"events": events})
    history = daemon.get("/v1/history")
    assert [(day["sessions"], day["calls"], day["compactions"]) for day in history["days"]] == [
        (1, 1, 2)
    ]
    (session,) = history["sessions"]
    assert (session["session"], session["agent"], session["calls"]) == ("sdk-1", "my-agent", 1)
    assert history["total"]["cost"] == session["cost"] > 0
    (limit,) = history["limits"]
    assert (limit["agent"], limit["model"], limit["auto"]) == ("my-agent", MODEL, 2)
    assert limit["lowest"] == limit["median"] == limit["highest"] == 150_000


def test_client_that_compacts_elsewhere_is_reported_for_its_version(daemon: Running) -> None:
    def drifts() -> list[str | None]:
        limits = daemon.get("/v1/limits")
        assert limits == daemon.get("/v1/history")["limits"]
        return [limit["drift"] for limit in limits]

    def compact(number: int, before: int) -> None:
        compacted = {"trigger": "auto", "before": before, "at": time.time() + number}
        seen = {"type": "SessionSeen", "version": "2.1.330"}
        events: list[dict[str, Any]] = [seen, {"type": "Compacted", **compacted}]
        session = {"session": f"s{number}", "agent": "claude"}
        rows = [
            call_event(number),
            *({"id": f"{number}-{i}", "event": e} for i, e in enumerate(events)),
        ]
        daemon.post("/v1/events", {"events": [{**row, **session} for row in rows]})

    compact(1, 146_000)
    compact(2, 146_500)
    assert drifts() == [None]
    compact(3, 147_000)
    text = "compacted at 146K three times since 2.1.330, expected 167K"
    assert drifts() == [text]
    assert daemon.command("windows").stdout.splitlines()[-1].endswith(f"{MODEL}: {text}")
    assert f"{MODEL}: {text}" in daemon.command("doctor").stdout
    compact(4, 167_100)
    assert drifts() == [None]


def test_only_files_of_the_page_are_served(daemon: Running) -> None:
    assert daemon.refused("/assets/nothing.js")[0] == 404
    for path in ("/assets/..%2f..%2fapp.py", "/assets/../app.py", "/app.py"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            daemon.get(path)
        refused.value.close()
        assert refused.value.code == 404


def test_session_id_may_contain_a_slash(daemon: Running) -> None:
    odd = call_event(1) | {"session": "team/agent 1"}
    daemon.post("/v1/events", {"events": [odd]})
    place = "/v1/sessions/team%2Fagent%201"
    assert daemon.get(place)["session"]["id"] == "team/agent 1"
    assert len(daemon.get(f"{place}/timeline")["calls"]) == 1
    assert daemon.post(f"{place}/messages", {"text": "hi"})["id"]


def test_resumed_session_is_live(daemon: Running) -> None:
    daemon.hook(hook_input("SessionStart", source="startup"))
    daemon.hook(hook_input("SessionEnd", reason="other"))
    assert daemon.get(f"/v1/sessions/{SESSION}")["session"]["ended_at"] is not None
    daemon.hook(hook_input("SessionStart", source="resume"))
    assert daemon.get(f"/v1/sessions/{SESSION}")["session"]["ended_at"] is None


def test_event_ids_are_unique_only_within_a_session(daemon: Running) -> None:
    assert daemon.post("/v1/events", {"events": [call_event(1)]})["taken"] == 1
    other = {"events": [{**call_event(1), "session": "sdk-2"}]}
    assert daemon.post("/v1/events", other) == {"taken": 1, "known": 0}
    assert daemon.get("/v1/sessions/sdk-2")["threads"][0]["calls"] == 1


@pytest.mark.parametrize(
    "event",
    [
        {"type": "Call", "id": "c", "usage": {**USAGE, "input": 1 << 63}},
        {"type": "Compacted", "before": 1 << 63},
        {"type": "WindowReported", "tokens": 1 << 63},
    ],
)
def test_impossible_count_is_rejected_and_later_events_are_accepted(
    daemon: Running, event: dict[str, Any]
) -> None:
    row = {"id": "e", "session": "sdk-1", "agent": "a", "event": event}
    status, _ = daemon.refused("/v1/events", json.dumps({"events": [row]}).encode())
    assert status == 422
    assert daemon.post("/v1/events", {"events": [call_event(1)]})["taken"] == 1


def test_event_time_in_the_far_future_does_not_become_seen_at(daemon: Running) -> None:
    row = call_event(1)
    row["event"]["at"] = 1e300
    daemon.post("/v1/events", {"events": [row]})
    assert daemon.get("/v1/sessions/sdk-1")["session"]["seen_at"] < time.time() + 60


def test_message_says_whether_it_may_keep_a_turn_from_ending(daemon: Running) -> None:
    path = f"/v1/sessions/{SESSION}/messages"
    daemon.post(path, {"text": "later"})
    daemon.post(path, {"text": "before you stop", "blocks_stop": True})
    done = daemon.command("send", SESSION, "now", "--block-stop")
    assert done.returncode == 0, done.stderr
    assert [each["blocks_stop"] for each in daemon.get(path)] == [False, True, True]


def test_too_long_message_is_rejected_with_a_hint(daemon: Running) -> None:
    path = f"/v1/sessions/{SESSION}/messages"
    status, error = daemon.refused(path, json.dumps({"text": "x" * 9_001}).encode())
    assert (status, error["error"]) == (
        413,
        "the message has 9,001 characters, at most 9,000 are allowed",
    )
    assert "its path" in error["hint"]
    daemon.post(path, {"text": "x" * 9_000})


def test_pending_messages_of_all_sessions_include_unknown_ones(daemon: Running) -> None:
    daemon.post("/v1/sessions/one/messages", {"text": "a"})
    daemon.post("/v1/sessions/two/messages", {"text": "b"})
    assert [(m["session"], m["text"]) for m in daemon.get("/v1/messages")] == [
        ("one", "[message from user] a"),
        ("two", "[message from user] b"),
    ]


def test_message_cannot_be_cancelled_under_another_session(daemon: Running) -> None:
    sent = daemon.post("/v1/sessions/one/messages", {"text": "a"})["id"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        daemon.delete(f"/v1/sessions/two/messages/{sent}")
    with refused.value as error:
        assert error.code == 404
    assert daemon.delete(f"/v1/sessions/one/messages/{sent}") == {"cancelled": True}


def test_handoff_of_an_unknown_session_can_be_read(daemon: Running, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Go on.")
    daemon.hand_over("to-come", tmp_path / "notes.md")
    (row,) = daemon.get("/v1/sessions/to-come/handoff")["handoffs"]
    assert (row["session"], row["text"], row["calls"]) == ("to-come", "Go on.", None)
    assert daemon.refused("/v1/sessions/nosuch/handoff")[0] == 404


@pytest.mark.parametrize("id", ["", "%20"])
def test_message_or_handoff_without_a_session_is_rejected(
    daemon: Running, tmp_path: Path, id: str
) -> None:
    (tmp_path / "notes.md").write_text("Go on.")
    bodies = {"messages": {"text": "a"}, "handoff": {"path": str(tmp_path / "notes.md")}}
    for part, body in bodies.items():
        status, problem = daemon.over_unix("POST", f"/v1/sessions/{id}/{part}", body)
        assert (status, "invalid session id" in problem["error"]) == (422, True)
    assert daemon.get("/v1/messages") == []


def test_handoff_with_a_relative_path_is_rejected(daemon: Running) -> None:
    """The daemon has another working directory."""
    place = f"/v1/sessions/{SESSION}/handoff"
    status, error = daemon.over_unix("POST", place, {"path": "handoff.md"})
    assert (status, error["error"]) == (422, "the path must be absolute: 'handoff.md'")


def test_old_endpoint_accepts_a_valid_percentage_without_tokens(daemon: Running) -> None:
    """Also right after a restart."""
    daemon.hook(status_input(20_000), "statusline")
    path = "/hooks/context-usage"
    for posted in ({"used_percentage": 1_794_714_107.0}, {"used_percentage": None}, {}):
        daemon.post(path, {"session_id": SESSION, **posted, "context_window_size": 0})
        assert daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["sent"] == 20_000
    daemon.post(path, {"session_id": SESSION, "used_percentage": 40})
    assert daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["sent"] == 80_000
    daemon.kill()
    daemon.start()
    daemon.post(path, {"session_id": SESSION, "used_percentage": 41})
    assert daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["sent"] == 82_000
    daemon.post(path, {"session_id": SESSION, "used_percentage": 45, "total_tokens": 91_000})
    assert daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["sent"] == 91_000


def test_old_endpoint_ends_the_cycle_when_a_compaction_begins(daemon: Running) -> None:
    daemon.hook(status_input(20_000), "statusline")
    path = "/hooks/context-usage"
    full = {"session_id": SESSION, "used_percentage": 55, "context_window_size": 200_000}
    for _ in range(2):
        daemon.post(path, full)
        assert "55%" in daemon.hook(hook_input("UserPromptSubmit"))
        daemon.post(path, {"session_id": SESSION, "event": "compaction", "trigger": "auto"})


def test_old_endpoint_rearms_levels_of_a_session_with_a_transcript(
    daemon: Running, tmp_path: Path
) -> None:
    """The first lower figure after the event is of a new cycle, before the transcript has it."""
    path, transcript = "/hooks/context-usage", tmp_path / "session.jsonl"
    usage = {"input_tokens": 90_000, "output_tokens": 10}
    record = {"type": "assistant", "sessionId": SESSION, "version": "2.1.325",
              "timestamp": "2026-11-15T10:00:00Z",
              "message": {"id": "m1", "model": "claude-sonnet-4-5", "usage": usage}}  # fmt: skip
    transcript.write_text(json.dumps(record) + "\n")
    prompt = hook_input("UserPromptSubmit") | {"transcript_path": str(transcript)}
    daemon.hook(prompt)
    posted = {"session_id": SESSION, "context_window_size": 200_000}
    daemon.post(path, {**posted, "used_percentage": 60})
    assert "60%" in daemon.hook(prompt)
    daemon.post(path, {"session_id": SESSION, "event": "compaction", "trigger": "auto"})
    daemon.post(path, {**posted, "used_percentage": 60})  # a late copy
    daemon.post(path, {**posted, "used_percentage": 55})
    assert "55%" in daemon.hook(prompt)


def test_old_endpoint_cancels_queued_levels_at_a_reset_and_rearms_them(daemon: Running) -> None:
    daemon.hook(status_input(20_000), "statusline")
    path = "/hooks/context-usage"
    full = {"session_id": SESSION, "used_percentage": 55, "context_window_size": 200_000}
    daemon.post(path, full)
    assert [message["level"] for message in daemon.get("/v1/messages")] == [50]
    daemon.post(path, {"session_id": SESSION, "event": "context_reset"})
    assert daemon.get("/v1/messages") == []
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""
    daemon.post(path, full)
    assert "55%" in daemon.hook(hook_input("UserPromptSubmit"))


def test_history_of_periods_has_their_parts_and_no_gap(daemon: Running) -> None:
    now = time.time()
    old = {**call_event(1), "session": "old", "project": "/p/old"}
    event: Any = old["event"]
    old["event"] = {**event, "at": now - 3 * 86_400}
    daemon.post("/v1/events", {"events": [old, {**call_event(2), "project": "/p/new"}]})
    days = daemon.get("/v1/history/periods?since=7d&per=day&by=project")
    assert [[part["key"] for part in day["parts"]] for day in days] == [
        ["/p/old"], [], [], ["/p/new"]
    ]  # fmt: skip
    assert [day["total"]["calls"] for day in days] == [1, 0, 0, 1]
    assert [day["peak_sent"] is None for day in days] == [False, True, True, False]
    history = daemon.get("/v1/history?since=7d")
    assert sum(day["total"]["cost"] for day in days) == pytest.approx(history["total"]["cost"])
    (month, *_) = daemon.get("/v1/history/periods?since=7d&per=month&by=agent")
    assert [part["key"] for part in month["parts"]] == ["my-agent"]
    assert daemon.get("/v1/history/periods?since=7d") == days
    for query, expected in (("per=year", "one of day, week, month"), ("by=session", "agent")):
        code, problem = daemon.refused(f"/v1/history/periods?{query}")
        assert code == 422
        assert expected in problem["error"]


def test_history_takes_the_same_spans_as_sessions(daemon: Running) -> None:
    assert daemon.get("/v1/history?since=all").keys() == daemon.get("/v1/history").keys()
    assert daemon.refused("/v1/history?since=yesterday")[0] == 422


def test_page_of_another_port_is_refused(daemon: Running) -> None:
    headers = {"Origin": "http://127.0.0.1:3000"}
    body = json.dumps({"text": "hi"}).encode()
    assert daemon.refused("/v1/sessions/s/messages", body, headers)[0] == 403
    assert daemon.get("/v1/messages") == []


@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_hook_without_a_session_id_creates_no_session(daemon: Running, kind: Any) -> None:
    hook_body = status_input(90_000) if kind == "statusline" else hook_input("UserPromptSubmit")
    assert daemon.hook({**hook_body, "session_id": ""}, kind) == ""
    assert daemon.get("/v1/sessions") == []
    assert daemon.get("/v1/daemon")["malformed"] == 1
