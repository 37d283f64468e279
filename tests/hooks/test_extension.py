"""Our extensions on a real node: requests to the daemon, replies, spool, autostart."""

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
from brimline.install.extension import extension_source
from brimline.install.launcher import write_launcher
from clients.install import node

from .agent import CLIENT, MAX_RUN_S, Agent, ClientResult
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

AGENTS = [
    agent.name for agent in all_agents() if agent.has_hooks and agent.install_spec.is_extension
]
EVENT = {"session_id": "s", "hook_event_name": "SessionStart", "cwd": "/caf\u00e9"}
BODY = json.dumps(EVENT).encode()
ENV = {name.decode(): f"value of {name.decode()} = \u00e9" for name in PASSED_VARIABLES}
ANSWER = b'{"hookSpecificOutput":{"hookEventName":"x","additionalContext":"Write a handoff."}}'
# Sends the event of stdin; prints what the extension returns.
SENDING_SCRIPT = """
const event = JSON.parse((await import("node:fs")).readFileSync(0, "utf8"))
const asking = [reportEvent(event)]
%s
process.stdout.write((await Promise.all(asking)).map(String).join(" "))
"""

BUSY = "for (const end = Date.now() + 300; Date.now() < end; );"
SOON = f"setTimeout(() => setImmediate(() => {{ {BUSY} }}), 20)"
AGAIN = "asking.push(reportEvent(event))"
# A client that writes the kind of its event to the path of the spool.
RECORDING_CLIENT = "import sys; open(sys.argv[-1], 'w').write(sys.argv[3])\n"

MakeAgent = Callable[..., Agent]


@pytest.fixture
def make_agent(request: pytest.FixtureRequest, folder: Path) -> MakeAgent:
    """Makes an agent with Pi's extension or the parametrized one; `more` is run after the event."""
    recipe = get_agent(getattr(request, "param", "pi")).install_spec

    def make(more: str = "", script: Path = CLIENT, autostart: bool = False) -> Agent:
        place = (str(folder / "hook.sock"), str(folder / "spool"))
        program = Program(sys.executable, str(script), *place)
        write_launcher(program)
        code = extension_source(recipe, program, autostart).decode() + SENDING_SCRIPT % more
        file = folder / "agent.mjs"
        file.write_text(code, "utf-8")
        return Agent([str(node().binary), str(file)], folder, folder / "hook.sock", ENV)

    return make


@pytest.mark.parametrize("make_agent", AGENTS, indirect=True)
def test_request_has_the_event_agent_and_listed_variables(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent_with_env = replace(agent, env={**ENV, "HOME": "/home/someone"})
    with Daemon(agent.socket, answers(b"")) as daemon:
        result, exchange = agent_with_env.answered(daemon, BODY)
    assert (result.code, result.stdout, result.stderr) == (0, b"undefined", b"")
    assert (exchange.request.kind, exchange.request.pid, exchange.request.env) == (
        "hook",
        result.pid,
        ENV,
    )
    assert exchange.request.agent in AGENTS
    assert json.loads(exchange.request.body) == EVENT
    assert re.fullmatch(rf"[0-9]{{19}}-{result.pid}", exchange.request.id)


def test_too_long_variable_is_left_out(make_agent: MakeAgent) -> None:
    env = {"TERM": "", "TMUX": "x" * MAX_VALUE_BYTES, "TMUX_PANE": "\u00e9" * MAX_VALUE_BYTES}
    agent = make_agent()
    with Daemon(agent.socket, answers(b"")) as daemon:
        _, exchange = replace(agent, env=env).answered(daemon, BODY)
    del env["TMUX_PANE"]
    assert exchange.request.env == env


def test_concurrent_events_have_ordered_ids(make_agent: MakeAgent) -> None:
    agent, ids = make_agent(AGAIN), list[str]()

    def keeps(connection: socket.socket, request: HookRequest) -> bool:
        ids.append(request.id)
        return answers(b"")(connection, request)

    with Daemon(agent.socket, keeps) as daemon:
        agent.answered(daemon, BODY)
    assert ids == sorted(set(ids))
    assert len(ids) >= 2


@pytest.mark.parametrize(
    ("answer", "text"),
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
def test_reply_reaches_the_agent_and_is_acknowledged(
    make_agent: MakeAgent, answer: bytes, text: str
) -> None:
    agent = make_agent()
    with Daemon(agent.socket, answers(answer)) as daemon:
        result, exchange = agent.answered(daemon, BODY)
    assert exchange.acknowledged
    assert (result.code, result.stdout, result.stderr) == (0, text.encode(), b"")


RECEIPT = b'{"messages":["m1"]}'


def test_confirmed_delivery_spools_no_receipt(make_agent: MakeAgent) -> None:
    agent = make_agent()
    with Daemon(agent.socket, gives_receipt(ANSWER, RECEIPT, confirms=True)) as daemon:
        result, exchange = agent.answered(daemon, BODY)
    assert (result.stdout, exchange.acknowledged) == (b"Write a handoff.", True)


@pytest.mark.parametrize(
    "behaviour", [gives_receipt(ANSWER, RECEIPT, False), never_confirms(ANSWER, RECEIPT)]
)
def test_unconfirmed_delivery_spools_its_receipt(
    make_agent: MakeAgent, behaviour: Behaviour
) -> None:
    agent = make_agent()
    with Daemon(agent.socket, behaviour) as daemon:
        result, exchange = agent.prints(daemon, BODY, b"Write a handoff.")
    assert (result.code, result.stderr) == (0, b"")
    (event,) = agent.take_spooled()
    assert (event.kind, event.id, event.body) == ("delivered", exchange.request.id, RECEIPT)


def answers_slowly(connection: socket.socket, request: HookRequest) -> bool:
    time.sleep(0.06)
    return answers(ANSWER)(connection, request)


@pytest.mark.parametrize("busy", [BUSY, SOON], ids=["at once", "meanwhile"])
def test_reply_in_time_counts_when_the_agent_is_busy(make_agent: MakeAgent, busy: str) -> None:
    agent = make_agent(busy)
    with Daemon(agent.socket, answers_slowly) as daemon:
        result, exchange = agent.answered(daemon, BODY)
    assert (result.stdout, exchange.acknowledged) == (b"Write a handoff.", True)


def check_spooled(agent: Agent, result: ClientResult) -> str:
    """The event was spooled once, in time, and nothing returned; return its id."""
    assert (result.code, result.stdout, result.stderr) == (0, b"undefined", b"")
    assert result.seconds < MAX_RUN_S
    (event,) = agent.take_spooled()
    assert (event.kind, json.loads(event.body)) == ("hook", EVENT)
    return event.id


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_no_reply(make_agent: MakeAgent, raw: bytes) -> None:
    agent = make_agent()
    with Daemon(agent.socket, sends(raw)) as daemon:
        result, exchange = agent.unanswered(daemon, BODY, "hook")
    event_id = check_spooled(agent, result)
    assert (exchange.request.id, exchange.acknowledged) == (event_id, False)


@pytest.mark.parametrize("behaviour", [waits, dies, answers_late])
def test_event_without_a_reply_is_spooled_under_the_same_id(
    make_agent: MakeAgent, behaviour: Behaviour
) -> None:
    agent = make_agent()
    with Daemon(agent.socket, behaviour) as daemon:
        result, exchange = agent.unanswered(daemon, BODY, "hook")
    event_id = check_spooled(agent, result)
    assert (exchange.request.id, exchange.acknowledged) == (event_id, False)


def test_event_for_a_suspended_daemon_is_spooled(make_agent: MakeAgent, stopped: Path) -> None:
    agent = make_agent()
    stopped.rename(agent.socket)
    check_spooled(agent, agent.run(BODY))


def leave_nothing(path: Path) -> None:
    """Leave no file."""


def leave_stale_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


@pytest.mark.parametrize("leave", [leave_nothing, leave_stale_socket, Path.touch, Path.mkdir])
def test_event_without_a_daemon_is_spooled(
    make_agent: MakeAgent, leave: Callable[[Path], None]
) -> None:
    agent = make_agent()
    leave(agent.socket)
    check_spooled(agent, agent.run(BODY))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_socket_of_another_user_gets_no_request(make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.folder.chmod(0o777)
    os.seteuid(NOBODY)
    theirs = Daemon(agent.socket, answers(ANSWER))
    os.seteuid(0)
    with theirs:
        check_spooled(agent, agent.run(BODY))
        assert theirs.last_exchange() is None


@pytest.mark.parametrize(
    ("leave", "autostart", "kind"),
    [
        (leave_nothing, True, "start"),
        (leave_stale_socket, True, "start"),
        (leave_nothing, False, "hook"),
        (Path.mkdir, True, "start"),
    ],
)
def test_missing_daemon_is_started_if_autostart_is_on(
    make_agent: MakeAgent, leave: Callable[[Path], None], autostart: bool, kind: str
) -> None:
    script = make_agent().folder / "recording.py"
    script.write_text(RECORDING_CLIENT)
    agent = make_agent(script=script, autostart=autostart)
    leave(agent.socket)
    agent.run(BODY)
    assert (agent.folder / "spool").read_text() == kind


@pytest.mark.parametrize("make_agent", AGENTS, indirect=True)
def test_daemon_that_died_within_a_session_is_started_again(make_agent: MakeAgent) -> None:
    script = make_agent().folder / "recording.py"
    script.write_text(RECORDING_CLIENT)
    agent = make_agent(script=script, autostart=True)
    leave_stale_socket(agent.socket)
    agent.run(json.dumps({**EVENT, "hook_event_name": "PostToolUse"}).encode())
    assert (agent.folder / "spool").read_text() == "hook-restart"


def test_slow_daemon_is_not_started_again(make_agent: MakeAgent) -> None:
    script = make_agent().folder / "recording.py"
    script.write_text(RECORDING_CLIENT)
    agent = make_agent(script=script, autostart=True)
    with Daemon(agent.socket, waits):
        agent.run(BODY)
    assert (agent.folder / "spool").read_text() == "hook"


@pytest.mark.parametrize("has_launcher", [True, False])
def test_uninstalled_brimline_is_silent(make_agent: MakeAgent, has_launcher: bool) -> None:
    agent = make_agent(script=Path("/gone/client.py"))
    if not has_launcher:
        (agent.folder / "brimline-hook").unlink()
    result = agent.run(BODY)
    assert (result.code, result.stdout, result.stderr, agent.take_spooled()) == (
        0,
        b"undefined",
        b"",
        [],
    )
