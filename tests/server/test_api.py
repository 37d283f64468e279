"""The HTTP API of a running daemon: sessions, their history, events that a program tells."""

import json
import time
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from .running import Running
from .test_daemon import SESSION, hook_input, status_input

pytestmark = pytest.mark.slow

USAGE = {"input": 100, "cache_read": 90_000, "cache_write": 10_000, "output": 500}
MODEL = "claude-sonnet-4-5"


def call(number: int, **more: Any) -> dict[str, Any]:
    """A call of a program's own agent, as it tells it."""
    event = {"type": "Call", "id": f"c{number}", "usage": USAGE, "model": MODEL, "at": time.time()}
    return {"id": f"e{number}", "session": "sdk-1", "agent": "my-agent", "event": event, **more}


def test_session_view(daemon: Running) -> None:
    """A session has its threads, where levels and limit lie, its handoff and what waits for it."""
    daemon.hook(status_input(120_000), "statusline")
    daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    (view,) = daemon.get("/v1/sessions")
    assert view == daemon.get(f"/v1/sessions/{SESSION}")
    assert view["session"]["project"] == "/project"
    assert [thread["percent"] for thread in view["threads"]] == [60.0]
    assert (view["levels"], view["limit_at"]) == ([50.0, 65.0], 83.5)
    assert view["handoff"]["state"] == "none"
    assert view["unread"] == 2


def test_events(daemon: Running) -> None:
    """A program tells its calls in batches; what is told again has no effect again."""
    batch = {"events": [call(1, project="/work"), call(2)]}
    assert daemon.post("/v1/events", batch) == {"taken": 2, "known": 0}
    more = {"events": [call(2), call(3)]}
    assert daemon.post("/v1/events", more) == {"taken": 1, "known": 1}
    view = daemon.get("/v1/sessions/sdk-1")
    assert (view["session"]["agent"], view["session"]["project"]) == ("my-agent", "/work")
    (main,) = view["threads"]
    assert (main["calls"], main["sent"], main["percent"]) == (3, 100_100, 50.0)
    assert view["trend"] == [100_100] * 3
    timeline = daemon.get("/v1/sessions/sdk-1/timeline")
    assert [row["call"] for row in timeline["calls"]] == ["c1", "c2", "c3"]
    assert [row["kind"] for row in timeline["signals"]] == ["level"]
    assert [row["level"] for row in timeline["messages"]] == [50.0]


def test_events_survive_a_restart(daemon: Running) -> None:
    """What was acknowledged is there after a kill, and counts once."""
    daemon.post("/v1/events", {"events": [call(1), call(2)]})
    daemon.kill()
    daemon.start()
    assert daemon.post("/v1/events", {"events": [call(2), call(3)]}) == {"taken": 1, "known": 1}
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
def test_events_that_are_none(daemon: Running, event: dict[str, Any]) -> None:
    """A batch with something else in it is refused whole, with where it is."""
    body = json.dumps({"events": [call(1), event]}).encode()
    status, told = daemon.refused("/v1/events", body)
    assert status == 422
    assert "$.events[1]" in told["error"]
    assert daemon.get("/v1/sessions") == []


def test_formulas(daemon: Running) -> None:
    """What each historic formula would have said after each call."""
    daemon.post("/v1/events", {"events": [call(1), call(2)]})
    told = daemon.get("/v1/sessions/sdk-1/formulas")
    assert told["latest"] == [100_100, 100_100]
    assert told["result_sums"] == [100_100, 200_200]


def test_cancel(daemon: Running) -> None:
    """A message that waits can be cancelled, once."""
    id = daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})["id"]
    place = f"/v1/sessions/{SESSION}/messages/{id}"
    assert daemon.delete(place) == {"cancelled": True}
    assert daemon.delete(place) == {"cancelled": False}
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""


def test_empty_message(daemon: Running) -> None:
    """Nothing is no message."""
    assert daemon.refused(f"/v1/sessions/{SESSION}/messages", b'{"text": " "}')[0] == 422


def test_span(daemon: Running) -> None:
    """Sessions of late, or of another span, or all."""
    old = call(1)
    old["event"]["at"] = time.time() - 3 * 86_400
    daemon.post("/v1/events", {"events": [old]})
    assert daemon.get("/v1/sessions") == []
    assert len(daemon.get("/v1/sessions?since=7d")) == 1
    assert len(daemon.get("/v1/sessions?since=all")) == 1
    assert daemon.refused("/v1/sessions?since=long")[0] == 422


def test_history(daemon: Running) -> None:
    """Days and sessions by the agents' own files, limits by the compactions that were seen."""
    events = [call(1)]
    compacted = {"type": "Compacted", "trigger": "auto", "before": 150_000, "at": time.time()}
    events.append({**call(2), "event": compacted})
    daemon.post("/v1/events", {"events": events})
    told = daemon.get("/v1/history")
    assert (told["days"], told["sessions"]) == ([], [])
    (limit,) = told["limits"]
    assert (limit["agent"], limit["model"], limit["auto"]) == ("my-agent", MODEL, 1)
    assert limit["lowest"] == limit["median"] == limit["highest"] == 150_000


def test_nothing_beside_the_page(daemon: Running) -> None:
    """A part of the page that is not there is not found, and no other file is served."""
    assert daemon.refused("/assets/nothing.js")[0] == 404
    for path in ("/assets/..%2f..%2fapp.py", "/assets/../app.py", "/app.py"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            daemon.get(path)
        refused.value.close()
        assert refused.value.code == 404


def test_id_with_a_slash(daemon: Running) -> None:
    """A session's id is the agent's own, and may be anything."""
    odd = call(1) | {"session": "team/agent 1"}
    daemon.post("/v1/events", {"events": [odd]})
    place = "/v1/sessions/team%2Fagent%201"
    assert daemon.get(place)["session"]["id"] == "team/agent 1"
    assert len(daemon.get(f"{place}/timeline")["calls"]) == 1
    assert daemon.post(f"{place}/messages", {"text": "hi"})["id"]


def test_resumed(daemon: Running) -> None:
    """A session that ended and was resumed lives."""
    daemon.hook(hook_input("SessionStart", source="startup"))
    daemon.hook(hook_input("SessionEnd", reason="other"))
    assert daemon.get(f"/v1/sessions/{SESSION}")["session"]["ended_at"] is not None
    daemon.hook(hook_input("SessionStart", source="resume"))
    assert daemon.get(f"/v1/sessions/{SESSION}")["session"]["ended_at"] is None


def test_events_of_two_programs(daemon: Running) -> None:
    """The ids of events are a session's own: two programs may count alike."""
    assert daemon.post("/v1/events", {"events": [call(1)]})["taken"] == 1
    other = {"events": [{**call(1), "session": "sdk-2"}]}
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
def test_counts_that_cannot_be(daemon: Running, event: dict[str, Any]) -> None:
    """A count that no store could hold is refused, and what follows it is taken."""
    told = {"id": "e", "session": "sdk-1", "agent": "a", "event": event}
    status, _ = daemon.refused("/v1/events", json.dumps({"events": [told]}).encode())
    assert status == 422
    assert daemon.post("/v1/events", {"events": [call(1)]})["taken"] == 1


def test_time_that_cannot_be(daemon: Running) -> None:
    """A session is not last seen in the far future, whatever a program tells."""
    told = call(1)
    told["event"]["at"] = 1e300
    daemon.post("/v1/events", {"events": [told]})
    assert daemon.get("/v1/sessions/sdk-1")["session"]["seen_at"] < time.time() + 60


def test_message_that_is_too_long(daemon: Running) -> None:
    """What an agent would not be given whole is refused, with what to do instead."""
    path = f"/v1/sessions/{SESSION}/messages"
    status, told = daemon.refused(path, json.dumps({"text": "x" * 9_001}).encode())
    assert (status, told["error"]) == (
        413,
        "the message has 9,001 characters, at most 9,000 are allowed",
    )
    assert "its path" in told["hint"]
    daemon.post(path, {"text": "x" * 9_000})


def test_messages_of_all(daemon: Running) -> None:
    """What waits for any session is told together, also for one that was not heard of."""
    daemon.post("/v1/sessions/one/messages", {"text": "a"})
    daemon.post("/v1/sessions/two/messages", {"text": "b"})
    assert [(m["session"], m["text"]) for m in daemon.get("/v1/messages")] == [
        ("one", "a"),
        ("two", "b"),
    ]


def test_cancelling_anothers(daemon: Running) -> None:
    """A message is cancelled by its own session's name alone."""
    sent = daemon.post("/v1/sessions/one/messages", {"text": "a"})["id"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        daemon.delete(f"/v1/sessions/two/messages/{sent}")
    with refused.value as error:
        assert error.code == 404
    assert daemon.delete(f"/v1/sessions/one/messages/{sent}") == {"cancelled": True}


def test_document_of_a_session_to_come(daemon: Running, tmp_path: Path) -> None:
    """A document that is kept for a session that was not heard of yet is there to be read."""
    (tmp_path / "notes.md").write_text("Go on.")
    daemon.hand_over("to-come", tmp_path / "notes.md")
    (row,) = daemon.get("/v1/sessions/to-come/handoff")["handoffs"]
    assert (row["session"], row["text"], row["calls"]) == ("to-come", "Go on.", None)
    assert daemon.refused("/v1/sessions/nosuch/handoff")[0] == 404


@pytest.mark.parametrize("id", ["", "%20"])
def test_nothing_is_kept_for_nobody(daemon: Running, tmp_path: Path, id: str) -> None:
    """A message or a document for a session without a name would wait for ever: it is refused."""
    (tmp_path / "notes.md").write_text("Go on.")
    told = {"messages": {"text": "a"}, "handoff": {"path": str(tmp_path / "notes.md")}}
    for part, body in told.items():
        status, problem = daemon.over_unix("POST", f"/v1/sessions/{id}/{part}", body)
        assert (status, "invalid session id" in problem["error"]) == (422, True)
    assert daemon.get("/v1/messages") == []


def test_document_by_a_relative_path(daemon: Running) -> None:
    """A daemon has a folder of its own: a path must mean the same to both sides."""
    place = f"/v1/sessions/{SESSION}/handoff"
    status, told = daemon.over_unix("POST", place, {"path": "handoff.md"})
    assert (status, told["error"]) == (422, "the path must be absolute: 'handoff.md'")


def test_old_endpoint_with_a_percentage_alone(daemon: Running) -> None:
    """A script that posts no tokens is understood by its percentage, unless that is none; also
    by a daemon that was just started."""
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


def test_old_endpoint_arms_anew(daemon: Running) -> None:
    """A compaction that is only told to begin ends the cycle, as in that design."""
    daemon.hook(status_input(20_000), "statusline")
    path = "/hooks/context-usage"
    full = {"session_id": SESSION, "used_percentage": 55, "context_window_size": 200_000}
    for _ in range(2):
        daemon.post(path, full)
        assert "55%" in daemon.hook(hook_input("UserPromptSubmit"))
        daemon.post(path, {"session_id": SESSION, "event": "compaction", "trigger": "auto"})


def test_history_of_all_time(daemon: Running) -> None:
    """The history takes the same spans as the sessions."""
    assert daemon.get("/v1/history?since=all").keys() == daemon.get("/v1/history").keys()
    assert daemon.refused("/v1/history?since=yesterday")[0] == 422


def test_page_of_another_port(daemon: Running) -> None:
    """A page that another program serves here may neither ask nor tell an agent anything."""
    headers = {"Origin": "http://127.0.0.1:3000"}
    body = json.dumps({"text": "hi"}).encode()
    assert daemon.refused("/v1/sessions/s/messages", body, headers)[0] == 403
    assert daemon.get("/v1/messages") == []


@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_session_without_a_name(daemon: Running, kind: Any) -> None:
    """What tells no session's id is no hook, and makes no session."""
    told = status_input(90_000) if kind == "statusline" else hook_input("UserPromptSubmit")
    assert daemon.hook({**told, "session_id": ""}, kind) == ""
    assert daemon.get("/v1/sessions") == []
    assert daemon.get("/v1/daemon")["malformed"] == 1
