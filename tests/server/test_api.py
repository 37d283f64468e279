"""The HTTP API of a running daemon: sessions, their history, events that a program tells."""

import json
import time
import urllib.error
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
