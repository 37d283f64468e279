"""Which session a process cleared, known from its hooks."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from brimline.agents.observations import Observation, ObservationKind, Pane
from brimline.daemon.hook_requests.contacts import (
    CONTACTS_NAME,
    INIT_PID,
    MAX_SESSIONS,
    SessionContacts,
)
from brimline.daemon.process_tree import ProcessStart

HookRecord = tuple[int, str, ObservationKind]


def observation(
    session: str, what: ObservationKind, at: float = 99.0, project: str = "/p"
) -> Observation:
    return Observation("id", "claude", session, what, at, project=project)


def detection_after(*records: HookRecord) -> SessionContacts:
    """Return the detection after these records."""
    cleared = SessionContacts()
    for at, (pid, session, what) in enumerate(records):
        cleared.record(pid, observation(session, what, float(at)))
    return cleared


@pytest.mark.parametrize(
    ("observations", "before"),
    [
        pytest.param([(7, "a", "started"), (7, "a", "ended")], "a", id="its end was reported"),
        pytest.param([(7, "a", "prompt")], "a", id="its end comes later"),
        pytest.param([], None, id="it is unknown"),
        pytest.param([(8, "a", "prompt")], None, id="another process"),
        pytest.param([(7, "a", "prompt"), (8, "a", "prompt")], None, id="resumed elsewhere"),
        pytest.param([(7, "b", "prompt")], None, id="it kept its session"),
        pytest.param([(7, "a", "prompt"), (7, "x", "prompt")], None, id="a process with two"),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "prompt"), (7, "a", "ended")], "a", id="one of two ended"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "x", "ended"), (7, "a", "started")], "a", id="resumed another"
        ),
        pytest.param(
            [(7, "x", "ended"), (7, "a", "started"), (7, "a", "ended")], "a", id="and ended that"
        ),
        pytest.param([(7, "x", "prompt"), (7, "a", "cleared")], "a", id="for the second time"),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "cleared"), (7, "x", "ended")], "a", id="its late end"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "y", "prompt"), (7, "a", "cleared")], "a", id="after two"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "cleared"), (7, "x", "prompt")], None, id="lives again"
        ),
    ],
)
def test_cleared_session_is_named_only_when_it_is_certain(
    observations: list[HookRecord], before: str | None
) -> None:
    assert detection_after(*observations).predecessor(7, observation("b", "cleared")) == before


@pytest.mark.parametrize("pid", [0, INIT_PID])
def test_unknown_process_has_no_cleared_session(pid: int) -> None:
    """A client that posts hooks, or whose parent ended."""
    cleared = detection_after((pid, "a", "prompt"))
    assert cleared.predecessor(pid, observation("b", "cleared")) is None


def test_reused_process_id_in_another_project_is_no_clear() -> None:
    assert (
        detection_after((7, "a", "prompt")).predecessor(
            7, observation("b", "cleared", project="/q")
        )
        is None
    )


def test_repeated_clear_is_not_taken_for_the_current_session() -> None:
    cleared = detection_after((7, "a", "prompt"), (7, "b", "cleared"), (7, "c", "cleared"))
    again = observation("b", "cleared", 1.0)
    assert cleared.predecessor(7, again) is None
    cleared.record(7, again)
    assert cleared.predecessor(7, observation("d", "cleared")) == "c"


def test_end_of_a_subagent_is_not_the_end_of_its_session() -> None:
    cleared = detection_after((7, "a", "prompt"))
    cleared.record(
        7, Observation("id", "claude", "a", "ended", 5.0, project="/p", thread="agent-1")
    )
    cleared.record(7, observation("x", "prompt", 6.0))
    assert cleared.predecessor(7, observation("b", "cleared")) is None


def test_only_a_clear_continues_a_session() -> None:
    assert detection_after((7, "a", "ended")).predecessor(7, observation("b", "started")) is None


def test_only_the_last_sessions_are_remembered() -> None:
    observations: list[HookRecord] = [
        (100 + number, str(number), "prompt") for number in range(MAX_SESSIONS + 1)
    ]
    cleared = detection_after(*observations)
    at = float(MAX_SESSIONS + 9)
    assert cleared.predecessor(100, observation("b", "cleared", at)) is None
    assert cleared.predecessor(101, observation("b", "cleared", at)) == "1"


def test_contacts_outlive_a_daemon_and_an_unreadable_file_does_not_stop_the_next(
    tmp_path: Path,
) -> None:
    own, now, pane = os.getpid(), time.time(), Pane("socket", "%0")
    with subprocess.Popen(["sleep", "60"]) as child:
        known = SessionContacts()
        for pid, session, at in ((own, "a", now), (child.pid, "b", now), (own, "old", 99.0)):
            known.record(pid, observation(session, "prompt", at), pane)
        known.record(child.pid, observation("b", "ended", now + 1))
        save(known, tmp_path)
        restored = restore_contacts(tmp_path)
        assert restored.in_process(ProcessStart(own, now)) == ["a"]
        assert restored.in_process(ProcessStart(own, now + 1)) == []  # the id was used again
        assert restored.in_process(ProcessStart(child.pid, now)) == []  # it has ended
        assert "b" in restored
        assert "old" not in restored  # of a process before this one, as before a reboot
        child.kill()
    assert "b" not in restore_contacts(tmp_path)
    known.record(own, observation("a", "prompt", now + 1), pane)
    assert known.encode_changed() is None  # nothing but the time has changed
    (tmp_path / CONTACTS_NAME).write_bytes(b'{"a": [7')
    restore_contacts(tmp_path)


def test_contacts_that_could_not_be_saved_are_encoded_again(tmp_path: Path) -> None:
    known = SessionContacts()
    known.record(os.getpid(), observation("a", "prompt", time.time()))
    assert known.encode_changed() is not None
    assert known.encode_changed() is None
    known.is_saved = False
    save(known, tmp_path)
    assert "a" in restore_contacts(tmp_path)


def save(contacts: SessionContacts, state: Path) -> None:
    encoded = contacts.encode_changed()
    assert encoded is not None
    (state / CONTACTS_NAME).write_bytes(encoded)


def restore_contacts(state: Path) -> SessionContacts:
    restored = SessionContacts()
    restored.load(state)
    return restored
