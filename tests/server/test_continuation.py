"""A session that continues another in a new session: messages, pins, and the line of `status`."""

from typing import Any

from brimline.handoff.pins import PinFile, make_pin

from .running import Running

MODEL = "claude-sonnet-4-5"


def add_session(daemon: Running, id: str, title: str, sent: int) -> None:
    """Report a session with a title and a call."""
    usage: dict[str, Any] = {"input": sent, "cache_read": 0, "cache_write": 0, "output": 10}
    events: list[dict[str, Any]] = [
        {"type": "SessionSeen", "title": title},
        {"type": "Call", "id": f"{id}-1", "usage": usage, "model": MODEL},
    ]
    rows = [
        {"id": f"{id}-{n}", "session": id, "agent": "my-agent", "event": event}
        for n, event in enumerate(events)
    ]
    daemon.post("/v1/events", {"events": rows})


def continue_as(daemon: Running, session: str, other: str) -> int:
    return daemon.over_unix("POST", f"/v1/sessions/{session}/continued", {"session": other})[0]


def test_messages_and_pins_go_to_the_session_that_continues(daemon: Running) -> None:
    add_session(daemon, "first", "Build the parser.", 90_000)
    daemon.post("/v1/sessions/first/messages", {"text": "Mind the tabs."})
    pins = PinFile(daemon.state)
    pins.add(make_pin("Never touch the README.", 1e9, "user", session="first"))
    assert continue_as(daemon, "first", "second") == 201
    assert [each["session"] for each in daemon.get("/v1/messages")] == ["second"]
    assert [pin.session for pin in pins.load()] == ["second"]
    assert daemon.get("/v1/sessions/first")["session"]["became"] == "second"


def test_chain_is_one_line_of_status(daemon: Running) -> None:
    """With the title of the first and the number of sessions; JSON lists each."""
    for number, id in enumerate(("first", "second", "third"), 1):
        add_session(daemon, id, f"Title {number}.", number * 10_000)
    add_session(daemon, "other", "Another one.", 5_000)
    assert continue_as(daemon, "first", "second") == continue_as(daemon, "second", "third") == 201
    shown = daemon.answered("status", "--all").stdout
    assert "Title 1. (3)" in shown
    assert "Title 2." not in shown
    assert "Title 3." not in shown
    assert "Another one." in shown
    assert "2 sessions, none near their limit" in shown
    assert daemon.answered("status", "--all", "--json").stdout.count('"session_id"') == 4


def test_session_cannot_continue_itself_or_an_unknown_one(daemon: Running) -> None:
    add_session(daemon, "first", "Build the parser.", 90_000)
    assert continue_as(daemon, "first", "first") == 422
    assert continue_as(daemon, "none", "first") == 404
    path = "/v1/sessions/first/continued"
    assert daemon.refused(path, b'{"session": "second"}')[0] == 403  # not by a page
