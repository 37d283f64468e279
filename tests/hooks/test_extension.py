"""How our extensions ask the daemon: run by a real node, on a real socket."""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.agents import all_agents, get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.agents.hook_command import Program
from brimline.hooks.client.exchange import MAX_VALUE_BYTES, PASSED_VARIABLES
from brimline.setup.extension import extension_source
from clients.install import node

from .agent import CLIENT, TOO_LONG, Agent
from .daemon import (
    GARBAGE,
    NOBODY,
    Behaviour,
    Daemon,
    answers,
    answers_late,
    dies,
    gives_receipt,
    never_confirms,
    sends,
    waits,
)

AGENTS = [agent.name for agent in all_agents() if agent.install_spec.is_extension]
EVENT = {"session_id": "s", "hook_event_name": "SessionStart", "cwd": "/caf\u00e9"}
BODY = json.dumps(EVENT).encode()
ENV = {name.decode(): f"value of {name.decode()} = \u00e9" for name in PASSED_VARIABLES}
ANSWER = b'{"hookSpecificOutput":{"hookEventName":"x","additionalContext":"Write a handoff."}}'
TELLING = """
const event = JSON.parse((await import("node:fs")).readFileSync(0, "utf8"))
const asking = [reportEvent(event)]
%s
process.stdout.write((await Promise.all(asking)).map(String).join(" "))
"""
"""What an agent does with an event; it says what it was answered."""

BUSY = "for (const end = Date.now() + 300; Date.now() < end; );"
SOON = f"setTimeout(() => setImmediate(() => {{ {BUSY} }}), 20)"
AGAIN = "asking.push(reportEvent(event))"
RECORDING = "import sys; open(sys.argv[-1], 'w').write(sys.argv[3])\n"
"""A client that keeps what kind of event it was run for in the place of the spool."""

Make = Callable[..., Agent]


@pytest.fixture
def extended(request: pytest.FixtureRequest, folder: Path) -> Make:
    """Makes an agent with our extension, Pi's or the one asked for; `more` it does meanwhile."""
    recipe = get_agent(getattr(request, "param", "pi")).install_spec

    def make(more: str = "", script: Path = CLIENT, autostart: bool = False) -> Agent:
        place = (str(folder / "hook.sock"), str(folder / "spool"))
        program = Program(sys.executable, str(script), *place)
        code = extension_source(recipe, program, autostart).decode() + TELLING % more
        file = folder / "agent.mjs"
        file.write_text(code, "utf-8")
        return Agent([str(node().binary), str(file)], folder, folder / "hook.sock", ENV)

    return make


@pytest.mark.parametrize("extended", AGENTS, indirect=True)
def test_request(extended: Make) -> None:
    """The daemon is told the event, whose it is, and the variables that matter."""
    agent = extended()
    told = replace(agent, env={**ENV, "HOME": "/home/someone"})
    with Daemon(agent.socket, answers(b"")) as daemon:
        done, heard = told.answered(daemon, BODY)
    assert (done.code, done.out, done.told) == (0, b"undefined", b"")
    assert (heard.request.kind, heard.request.pid, heard.request.env) == ("hook", done.pid, ENV)
    assert heard.request.agent in AGENTS
    assert json.loads(heard.request.body) == EVENT
    assert re.fullmatch(rf"[0-9]{{19}}-{done.pid}", heard.request.id)


def test_long_variable(extended: Make) -> None:
    """A variable that is too long is left out, an empty one is not."""
    env = {"TERM": "", "TMUX": "x" * MAX_VALUE_BYTES, "TMUX_PANE": "\u00e9" * MAX_VALUE_BYTES}
    agent = extended()
    with Daemon(agent.socket, answers(b"")) as daemon:
        _, heard = replace(agent, env=env).answered(daemon, BODY)
    del env["TMUX_PANE"]
    assert heard.request.env == env


def test_two_events_at_once(extended: Make) -> None:
    """Each has an id of its own, in their order."""
    agent, ids = extended(AGAIN), list[str]()

    def keeps(connection: socket.socket, request: HookRequest) -> bool:
        ids.append(request.id)
        return answers(b"")(connection, request)

    with Daemon(agent.socket, keeps) as daemon:
        agent.answered(daemon, BODY)
    assert ids == sorted(set(ids))
    assert len(ids) >= 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ANSWER, "Write a handoff."),
        (b'{"decision":"block","reason":"Go on."}', "Go on."),
        (b"{}", "undefined"),
        (b"", "undefined"),
        (b"\xff{", "undefined"),
        (b'{"reason":"' + b"x" * 200_000 + b'"}', "x" * 200_000),
    ],
    ids=["context", "reason", "nothing", "empty", "no text", "long"],
)
def test_answer(extended: Make, answer: bytes, said: str) -> None:
    """The agent gets what is said; it is acknowledged, and nothing is spooled."""
    agent = extended()
    with Daemon(agent.socket, answers(answer)) as daemon:
        done, heard = agent.answered(daemon, BODY)
    assert heard.acknowledged
    assert (done.code, done.out, done.told) == (0, said.encode(), b"")


RECEIPT = b'{"messages":["m1"]}'


def test_confirmed_delivery(extended: Make) -> None:
    """What the daemon has stored needs no receipt."""
    agent = extended()
    with Daemon(agent.socket, gives_receipt(ANSWER, RECEIPT, confirms=True)) as daemon:
        done, heard = agent.answered(daemon, BODY)
    assert (done.out, heard.acknowledged) == (b"Write a handoff.", True)


@pytest.mark.parametrize(
    "behaviour", [gives_receipt(ANSWER, RECEIPT, False), never_confirms(ANSWER, RECEIPT)]
)
def test_unconfirmed_delivery(extended: Make, behaviour: Behaviour) -> None:
    """The receipt of what the agent got is spooled if the daemon does not confirm it."""
    agent = extended()
    with Daemon(agent.socket, behaviour) as daemon:
        done = agent.run(BODY)
        heard = daemon.heard(done.pid)
    assert (done.code, done.out, done.told) == (0, b"Write a handoff.", b"")
    assert heard is not None
    (kept,) = agent.spooled()
    assert (kept.kind, kept.id, kept.body) == ("delivered", heard.request.id, RECEIPT)


def takes_time(connection: socket.socket, request: HookRequest) -> bool:
    """Answer while the agent is busy."""
    time.sleep(0.06)
    return answers(ANSWER)(connection, request)


@pytest.mark.parametrize("busy", [BUSY, SOON], ids=["at once", "meanwhile"])
def test_answer_to_a_busy_agent(extended: Make, busy: str) -> None:
    """An answer that came in time is taken, however late the agent gets to it."""
    agent = extended(busy)
    with Daemon(agent.socket, takes_time) as daemon:
        done, heard = agent.answered(daemon, BODY)
    assert (done.out, heard.acknowledged) == (b"Write a handoff.", True)


def check(agent: Agent, seconds: float = TOO_LONG) -> str:
    """That an event is spooled once, in time, and nothing is said; gives its id."""
    done = agent.run(BODY)
    assert (done.code, done.out, done.told) == (0, b"undefined", b"")
    assert done.seconds < seconds
    (kept,) = agent.spooled()
    assert (kept.kind, json.loads(kept.body)) == ("hook", EVENT)
    return kept.id


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_garbage(extended: Make, raw: bytes) -> None:
    """A daemon that answers garbage has not answered; what it heard is spooled under that id."""
    agent = extended()
    with Daemon(agent.socket, sends(raw)) as daemon:
        kept, heard = check(agent), daemon.heard()
    assert heard is not None
    assert (heard.request.id, heard.acknowledged) == (kept, False)


@pytest.mark.parametrize("behaviour", [waits, dies, answers_late])
def test_no_answer(extended: Make, behaviour: Behaviour) -> None:
    """A daemon that says nothing, dies, or is late."""
    agent = extended()
    with Daemon(agent.socket, behaviour) as daemon:
        kept, heard = check(agent), daemon.heard()
    assert heard is not None
    assert (heard.request.id, heard.acknowledged) == (kept, False)


def test_stopped_daemon(extended: Make, stopped: Path) -> None:
    """A daemon that was stopped takes connections in, and never answers."""
    agent = extended()
    stopped.rename(agent.socket)
    check(agent)


def nothing(path: Path) -> None:
    """Leave nobody and nothing there."""


def stale(path: Path) -> None:
    """Leave the socket of a daemon that died."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


@pytest.mark.parametrize("leave", [nothing, stale, Path.touch, Path.mkdir])
def test_nobody_there(extended: Make, leave: Callable[[Path], None]) -> None:
    """No daemon, whatever lies in its place."""
    agent = extended()
    leave(agent.socket)
    check(agent)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_elses(extended: Make) -> None:
    """Where another user listens, who is told nothing."""
    agent = extended()
    agent.folder.chmod(0o777)
    os.seteuid(NOBODY)
    theirs = Daemon(agent.socket, answers(ANSWER))
    os.seteuid(0)
    with theirs:
        check(agent)
        assert theirs.heard() is None


@pytest.mark.parametrize(
    ("leave", "autostart", "kind"),
    [
        (nothing, True, "start"),
        (stale, True, "start"),
        (nothing, False, "hook"),
        (Path.mkdir, True, "start"),
    ],
)
def test_session_starts_the_daemon(
    extended: Make, leave: Callable[[Path], None], autostart: bool, kind: str
) -> None:
    """Where there is nobody and that is wished, and not where a daemon is only slow."""
    script = extended().folder / "recording.py"
    script.write_text(RECORDING)
    agent = extended(script=script, autostart=autostart)
    leave(agent.socket)
    agent.run(BODY)
    assert (agent.folder / "spool").read_text() == kind


def test_slow_daemon_is_not_started(extended: Make) -> None:
    """A daemon that does not answer is there."""
    script = extended().folder / "recording.py"
    script.write_text(RECORDING)
    agent = extended(script=script, autostart=True)
    with Daemon(agent.socket, waits):
        agent.run(BODY)
    assert (agent.folder / "spool").read_text() == "hook"


def test_brimline_is_gone(extended: Make) -> None:
    """Where nothing of ours is left, an agent goes on as ever."""
    agent = extended(script=Path("/gone/client.py"))
    done = agent.run(BODY)
    assert (done.code, done.out, done.told, agent.spooled()) == (0, b"undefined", b"", [])
