"""A session's start where there is no daemon: one is started that has nothing of the agent."""

import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.agents.hook_adapter import RequestKind
from brimline.hooks.client import autostart

from .agent import CLIENT, TOO_LONG, Agent
from .daemon import Daemon, answers, waits
from .started import STAY, Started, interpreter, own_session, started, waited_for
from .test_client_unanswered import crowd

HOOK = b'{"session_id":"s","hook_event_name":"SessionStart","source":"startup"}'
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets us wait for orphans")


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python in which a daemon only tells how it was started."""
    return interpreter(tmp_path_factory.mktemp("interpreter") / "venv")


@pytest.fixture(params=["python", "compiled"])
def direct(request: pytest.FixtureRequest, python: str, folder: Path) -> Agent:
    """An agent with either client, which runs that Python."""
    command = [python, "-I", "-S", str(CLIENT)]
    if request.param == "compiled":
        command = [str(request.getfixturevalue("compiled")), python, str(CLIENT)]
    return Agent(command, folder, folder / "hook.sock")


@pytest.fixture
def patient(direct: Agent) -> Agent:
    """The same; when it has run, all that it started has ended."""
    return replace(direct, command=waited_for(direct.command))


def the_one(agent: Agent) -> Started:
    """That one daemon was started, and the event is there for it."""
    (one,) = started(agent.folder)
    (kept,) = agent.spooled()
    assert (kept.kind, kept.body) == ("hook", HOOK)
    return one


def test_switch_and_variables_are_the_settings_own() -> None:
    """What is not passed on is what a session has for itself; the state folder is always told."""
    env = {b"HOME": b"/h", b"BRIMLINE_PARENT": b"p", b"BRIMLINE_LEVELS": b"40", b"TMUX": b"t"}
    told = autostart.daemon_environment("/state", env)
    state = {b"BRIMLINE_STATE_DIR": b"/state"}
    assert told == {b"HOME": b"/h", b"BRIMLINE_LEVELS": b"40", **state}
    assert autostart.daemon_environment("/state", {b"BRIMLINE_STATE_DIR": b"/other"}) == state


@LINUX
def test_no_daemon(patient: Agent) -> None:
    """It is started in a session of its own, at the root, and imports nothing from a project."""
    done = patient.run(HOOK, "start")
    assert (done.code, done.out, done.told) == (0, b"", b"")
    one = the_one(patient)
    assert (one.words, one.safe, one.folder) == (["serve", "--autostart"], True, "/")
    assert one.session not in (own_session(), 0)


@LINUX
def test_streams(patient: Agent) -> None:
    """Of the agent's descriptors it has none; it has the log, and the lock that a hook took."""
    patient.run(HOOK, "start")
    log, lock = str(patient.folder / "serve.log"), str(patient.folder / "start.lock")
    assert the_one(patient).streams == {"0": "/dev/null", "1": log, "2": log, "3": lock}
    assert (patient.folder / "serve.log").read_text() == "it was started\n"


@LINUX
def test_environment(patient: Agent) -> None:
    """It has the user's variables, not the session's; its state folder is the hook's."""
    users = {"HOME": "/home/u", "PATH": "/bin", "LC_ALL": "C", "BRIMLINE_LEVELS": "40"}
    sessions = {
        "TMUX": "t,1,0",
        "BRIMLINE_PARENT": "p",
        "BRIMLINE_SESSION": "s",
        "CLAUDE_CODE_SESSION_ID": "s",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1",
        "ANTHROPIC_API_KEY": "secret",
    }
    replace(patient, env={**users, **sessions}).run(HOOK, "start")
    told = the_one(patient).env
    assert told.pop("BRIMLINE_STATE_DIR") == str(patient.folder)
    assert told == users


@LINUX
def test_stale_socket(patient: Agent) -> None:
    """A socket that a dead daemon left is no daemon."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(patient.socket))
    patient.run(HOOK, "start")
    the_one(patient)


@LINUX
def test_no_log(patient: Agent) -> None:
    """Where there can be no log, it is started all the same."""
    (patient.folder / "serve.log").mkdir()
    patient.run(HOOK, "start")
    assert the_one(patient).streams["2"] == "/dev/null"


@LINUX
@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_other_hooks(patient: Agent, kind: RequestKind) -> None:
    """No other hook starts anything, nor does a status line."""
    patient.run(HOOK, kind)
    assert started(patient.folder) == []
    assert [kept.kind for kept in patient.spooled()] == [kind]


@LINUX
def test_switched_off(patient: Agent) -> None:
    """BRIMLINE_AUTOSTART=0 starts nothing; any other value does not switch it off."""
    replace(patient, env={"BRIMLINE_AUTOSTART": "0"}).run(HOOK, "start")
    assert started(patient.folder) == []
    assert len(patient.spooled()) == 1
    replace(patient, env={"BRIMLINE_AUTOSTART": "1"}).run(HOOK, "start")
    the_one(patient)


@LINUX
def test_stopped_daemon(patient: Agent, stopped: Path) -> None:
    """A daemon that was stopped is there: none is started beside it."""
    replace(patient, socket=stopped).run(HOOK, "start")
    assert started(patient.folder) == []
    assert len(patient.spooled()) == 1


@LINUX
def test_slow_daemon(patient: Agent) -> None:
    """A daemon that hears and does not answer is there."""
    with Daemon(patient.socket, waits):
        patient.run(HOOK, "start")
    assert started(patient.folder) == []
    assert [kept.kind for kept in patient.spooled()] == ["hook"]


@LINUX
def test_crowded_daemon(patient: Agent) -> None:
    """A daemon that so many wait for that there is no room is there."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(patient.socket))
        listener.listen(0)
        crowd(stack, patient.socket)
        patient.run(HOOK, "start")
    assert started(patient.folder) == []


@LINUX
def test_many_sessions_start_one_daemon(patient: Agent, tmp_path: Path) -> None:
    """Of many hooks at once one starts the daemon; all are recorded, and later one starts again."""
    count, stay = 12, tmp_path / "stay"
    stay.touch()
    staying = replace(patient, env={STAY: str(stay)})
    with ThreadPoolExecutor(count) as several:
        running = [several.submit(staying.run, HOOK, "start") for _ in range(count)]
        wait_until(lambda: started(patient.folder) != [])
        wait_until(lambda: sum(each.done() for each in running) >= count - 1)
        stay.unlink()
    assert {(done.result().code, done.result().told) for done in running} == {(0, b"")}
    assert len(started(patient.folder)) == 1
    assert (len(patient.spooled()), patient.dropped()) == (count, 0)
    patient.run(HOOK, "start")
    assert len(started(patient.folder)) == 2


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, or for as long as a busy machine may take."""
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)


def test_daemon_that_answers(direct: Agent) -> None:
    """It hears of a hook like any other, and its answer is the agent's."""
    with Daemon(direct.socket, answers(b"{}")) as daemon:
        done, heard = direct.answered(daemon, HOOK, "start")
    assert (done.out, heard.request.kind, heard.acknowledged) == (b"{}", "hook", True)


def test_not_waited_for(direct: Agent, tmp_path: Path) -> None:
    """The agent has its hook's end, and the end of its streams, while the daemon lives."""
    stay = tmp_path / "stay"
    stay.touch()
    try:
        done = replace(direct, env={STAY: str(stay)}).run(HOOK, "start")
        assert (done.code, done.out, done.told) == (0, b"", b"")
        assert done.seconds < TOO_LONG
        while not started(direct.folder):
            time.sleep(0.02)
    finally:
        stay.unlink()
