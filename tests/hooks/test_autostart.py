"""A hook or status line without a daemon starts one, detached from the agent."""

import fcntl
import os
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

from .agent import CLIENT, MAX_RUN_S, Agent
from .daemon import Daemon, answers, waits
from .recording_daemon import (
    STAY,
    DaemonStart,
    make_interpreter,
    own_session_id,
    recorded_starts,
    waiting_command,
)
from .test_client_unanswered import LINE, fill_backlog, offline_line

HOOK = b'{"session_id":"s","hook_event_name":"SessionStart","source":"startup"}'
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets us wait for orphans")


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python whose Brimline only records how it was started."""
    return make_interpreter(tmp_path_factory.mktemp("interpreter") / "venv")


@pytest.fixture(params=["python", "compiled"])
def direct(request: pytest.FixtureRequest, python: str, folder: Path) -> Agent:
    """An agent with either client that runs this Python."""
    command = [python, "-I", "-S", str(CLIENT)]
    if request.param == "compiled":
        command = [str(request.getfixturevalue("compiled")), python, str(CLIENT)]
    return Agent(command, folder, folder / "hook.sock")


@pytest.fixture
def waiting_agent(direct: Agent) -> Agent:
    """An agent whose run ends after all processes that it started."""
    return replace(direct, command=waiting_command(direct.command))


def single_start(agent: Agent) -> DaemonStart:
    """Check that one daemon was started and the event is spooled for it."""
    (one,) = recorded_starts(agent.folder)
    (event,) = agent.take_spooled()
    assert (event.kind, event.body) == ("hook", HOOK)
    return one


def test_daemon_environment_has_no_session_variables_but_the_state_folder() -> None:
    env = {b"HOME": b"/h", b"BRIMLINE_PARENT": b"p", b"BRIMLINE_LEVELS": b"40", b"TMUX": b"t"}
    daemon_env = autostart.daemon_environment("/state", env)
    state = {b"BRIMLINE_STATE_DIR": b"/state"}
    assert daemon_env == {b"HOME": b"/h", b"BRIMLINE_LEVELS": b"40", **state}
    assert autostart.daemon_environment("/state", {b"BRIMLINE_STATE_DIR": b"/other"}) == state


@LINUX
def test_daemon_starts_in_its_own_session_at_the_root_without_project_imports(
    waiting_agent: Agent,
) -> None:
    result = waiting_agent.run(HOOK, "start")
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    one = single_start(waiting_agent)
    assert (one.words, one.safe, one.folder) == (["serve", "--autostart"], True, "/")
    assert one.session not in (own_session_id(), 0)


@LINUX
def test_daemon_inherits_only_the_log_and_the_start_lock(waiting_agent: Agent) -> None:
    waiting_agent.run(HOOK, "start")
    log, lock = str(waiting_agent.folder / "serve.log"), str(waiting_agent.folder / "start.lock")
    assert single_start(waiting_agent).streams == {"0": "/dev/null", "1": log, "2": log, "3": lock}
    assert (waiting_agent.folder / "serve.log").read_text() == "it was started\n"


@LINUX
def test_daemon_inherits_the_variables_of_the_user_but_not_of_the_session(
    waiting_agent: Agent,
) -> None:
    users = {"HOME": "/home/u", "PATH": "/bin", "LC_ALL": "C", "BRIMLINE_LEVELS": "40"}
    sessions = {
        "TMUX": "t,1,0",
        "BRIMLINE_PARENT": "p",
        "BRIMLINE_SESSION": "s",
        "CLAUDE_CODE_SESSION_ID": "s",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1",
        "ANTHROPIC_API_KEY": "secret",
    }
    replace(waiting_agent, env={**users, **sessions}).run(HOOK, "start")
    env = single_start(waiting_agent).env
    assert env.pop("BRIMLINE_STATE_DIR") == str(waiting_agent.folder)
    assert env == users


@LINUX
def test_hook_whose_input_is_late_starts_the_daemon(waiting_agent: Agent) -> None:
    reader, writer = os.pipe()
    result = waiting_agent.run(reader, "start")
    os.close(reader)
    os.close(writer)
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    assert len(recorded_starts(waiting_agent.folder)) == 1


@LINUX
def test_stale_socket_does_not_prevent_the_start(waiting_agent: Agent) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(waiting_agent.socket))
    waiting_agent.run(HOOK, "start")
    single_start(waiting_agent)


@LINUX
def test_daemon_starts_without_a_log(waiting_agent: Agent) -> None:
    (waiting_agent.folder / "serve.log").mkdir()
    waiting_agent.run(HOOK, "start")
    assert single_start(waiting_agent).streams["2"] == "/dev/null"


@LINUX
@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_hooks_installed_without_autostart_start_no_daemon(
    waiting_agent: Agent, kind: RequestKind
) -> None:
    waiting_agent.run(HOOK, kind)
    assert recorded_starts(waiting_agent.folder) == []
    assert [event.kind for event in waiting_agent.take_spooled()] == [kind]


@LINUX
@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_any_hook_or_status_line_starts_a_daemon_but_a_second_one_only_after_a_minute(
    waiting_agent: Agent, kind: RequestKind
) -> None:
    for _ in range(3):
        waiting_agent.run(HOOK, f"{kind}-restart")
    assert len(recorded_starts(waiting_agent.folder)) == 1
    assert [event.kind for event in waiting_agent.take_spooled()] == [kind] * 3
    set_last_restart(waiting_agent, time.time() - autostart.RESTART_INTERVAL_S + 10)
    waiting_agent.run(HOOK, f"{kind}-restart")
    assert len(recorded_starts(waiting_agent.folder)) == 1
    set_last_restart(waiting_agent, time.time() - autostart.RESTART_INTERVAL_S)
    waiting_agent.run(HOOK, f"{kind}-restart")
    assert len(recorded_starts(waiting_agent.folder)) == 2


@LINUX
def test_restart_is_not_put_off_by_a_start_or_by_a_clock_that_was_set_back(
    waiting_agent: Agent,
) -> None:
    waiting_agent.run(HOOK, "start")
    waiting_agent.run(HOOK, "hook-restart")
    assert len(recorded_starts(waiting_agent.folder)) == 2
    set_last_restart(waiting_agent, time.time() + 3_600)
    waiting_agent.run(HOOK, "hook-restart")
    assert len(recorded_starts(waiting_agent.folder)) == 3


@LINUX
def test_status_line_says_that_the_daemon_starts(
    direct: Agent, waiting_agent: Agent, tmp_path: Path
) -> None:
    """Also if the hook of the session's start has started it; one that died is off."""

    starting, off = (offline_line(direct, state) for state in (b"daemon starting", b"daemon off"))
    stay = tmp_path / "stay"
    stay.touch()
    replace(direct, env={STAY: str(stay)}).run(HOOK, "start")
    wait_until(lambda: recorded_starts(direct.folder) != [])
    for _ in range(2):
        assert direct.run(LINE, "statusline-restart").stdout == starting
    assert direct.run(LINE, "statusline").stdout == off
    assert len(recorded_starts(direct.folder)) == 1
    stay.unlink()
    with (direct.folder / autostart.START_LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    started = waiting_agent.run(LINE, "statusline-restart")  # until that one has ended
    assert started.stdout == starting
    assert len(recorded_starts(direct.folder)) == 2
    assert direct.run(LINE, "statusline-restart").stdout == off
    disabled = replace(direct, env={"BRIMLINE_AUTOSTART": "0"})
    assert disabled.run(LINE, "statusline-restart").stdout == off


@pytest.mark.parametrize("kind", ["start", "statusline-restart"])
def test_daemon_is_not_started_in_a_folder_that_cannot_be_created(direct: Agent, kind: str) -> None:
    (direct.folder / "file").touch()
    lost = replace(direct, folder=direct.folder / "file" / "state")
    line = offline_line(direct, b"daemon off") if kind == "statusline-restart" else b""
    assert lost.run(LINE, kind).stdout == line


@LINUX
def test_first_hook_creates_the_state_folder_and_starts_the_daemon(waiting_agent: Agent) -> None:
    fresh = replace(waiting_agent, folder=waiting_agent.folder / "new" / "state")
    fresh.run(HOOK, "start")
    single_start(fresh)


@LINUX
def test_daemon_that_the_user_stopped_is_started_only_by_a_new_session(
    waiting_agent: Agent,
) -> None:
    (waiting_agent.folder / autostart.STOPPED_MARK).touch()
    waiting_agent.run(HOOK, "hook-restart")
    assert recorded_starts(waiting_agent.folder) == []
    waiting_agent.take_spooled()
    waiting_agent.run(HOOK, "start")
    single_start(waiting_agent)


def set_last_restart(agent: Agent, at: float) -> None:
    os.utime(agent.folder / autostart.START_LOCK, (at, at))


@LINUX
@pytest.mark.parametrize("kind", ["start", "hook-restart", "statusline-restart"])
def test_only_autostart_0_prevents_the_start(waiting_agent: Agent, kind: str) -> None:
    replace(waiting_agent, env={"BRIMLINE_AUTOSTART": "0"}).run(HOOK, kind)
    assert recorded_starts(waiting_agent.folder) == []
    assert len(waiting_agent.take_spooled()) == 1
    replace(waiting_agent, env={"BRIMLINE_AUTOSTART": "1"}).run(HOOK, kind)
    assert len(recorded_starts(waiting_agent.folder)) == 1


@LINUX
def test_no_second_daemon_beside_a_suspended_one(waiting_agent: Agent, stopped: Path) -> None:
    replace(waiting_agent, socket=stopped).run(HOOK, "start")
    assert recorded_starts(waiting_agent.folder) == []
    assert len(waiting_agent.take_spooled()) == 1


@LINUX
@pytest.mark.parametrize("kind", ["start", "hook-restart"])
def test_no_second_daemon_beside_one_that_does_not_answer(waiting_agent: Agent, kind: str) -> None:
    with Daemon(waiting_agent.socket, waits):
        waiting_agent.run(HOOK, kind)
    assert recorded_starts(waiting_agent.folder) == []
    assert [event.kind for event in waiting_agent.take_spooled()] == ["hook"]


@LINUX
def test_no_second_daemon_beside_one_with_a_full_backlog(waiting_agent: Agent) -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(waiting_agent.socket))
        listener.listen(0)
        fill_backlog(stack, waiting_agent.socket)
        waiting_agent.run(HOOK, "start")
    assert recorded_starts(waiting_agent.folder) == []


@LINUX
@pytest.mark.parametrize("kind", ["start", "hook-restart"])
def test_many_hooks_at_once_start_one_daemon(
    waiting_agent: Agent, tmp_path: Path, kind: str
) -> None:
    """All events are spooled, and a later session can start a daemon again."""
    count, stay = 12, tmp_path / "stay"
    stay.touch()
    staying = replace(waiting_agent, env={STAY: str(stay)})
    with ThreadPoolExecutor(count) as several:
        running = [several.submit(staying.run, HOOK, kind) for _ in range(count)]
        wait_until(lambda: recorded_starts(waiting_agent.folder) != [])
        wait_until(lambda: sum(each.done() for each in running) >= count - 1)
        stay.unlink()
    assert {(run.result().code, run.result().stderr) for run in running} == {(0, b"")}
    assert len(recorded_starts(waiting_agent.folder)) == 1
    assert (len(waiting_agent.take_spooled()), waiting_agent.take_dropped()) == (count, 0)
    waiting_agent.run(HOOK, "start")
    assert len(recorded_starts(waiting_agent.folder)) == 2


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait up to 20 s for a condition."""
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)


def test_start_hook_gets_the_reply_of_a_running_daemon(direct: Agent) -> None:
    with Daemon(direct.socket, answers(b"{}")) as daemon:
        result, exchange = direct.answered(daemon, HOOK, "start")
    assert (result.stdout, exchange.request.kind, exchange.acknowledged) == (b"{}", "hook", True)


@pytest.mark.parametrize("kind", ["start", "hook-restart", "statusline-restart"])
def test_hook_ends_while_the_daemon_that_it_started_still_runs(
    direct: Agent, tmp_path: Path, kind: str
) -> None:
    stay = tmp_path / "stay"
    stay.touch()
    try:
        result = replace(direct, env={STAY: str(stay)}).run(HOOK, kind)
        assert (result.code, result.stderr) == (0, b"")
        assert result.seconds < MAX_RUN_S
        while not recorded_starts(direct.folder):
            time.sleep(0.02)
    finally:
        stay.unlink()
