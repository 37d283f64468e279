"""Asking the client: the two ways, and everything that it may do instead of answering."""

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest

from brimline.agents.fresh_session.client import client_environment, find_command, read_version
from brimline.agents.fresh_session.request import (
    Unanswered,
    ask_by_command,
    ask_by_control_request,
    measure_fresh_session,
)
from brimline.agents.transcripts.source import Places
from brimline.errors import BaselineFailed

from .scripted import MESSAGES, PRINTED, USAGE, USED, Json, Machine, refusal, success

SHORT = 0.5
"""A patience that a silent client outlasts."""


def assistant(usage: Json) -> str:
    """The line in which `/context` tells its figures."""
    told = {"type": "assistant", "message": {"model": "<synthetic>"}, "context_usage": usage}
    return msgspec.json.encode(told).decode()


def failure(machine: Machine, timeout: float = 30.0) -> BaselineFailed:
    """Why the client did not tell."""
    client = msgspec.structs.replace(machine.client, timeout_s=timeout)
    with pytest.raises(BaselineFailed) as caught:
        measure_fresh_session(client)
    assert caught.value.agent == "claude"
    assert caught.value.hint
    return caught.value


def test_request(machine: Machine) -> None:
    """The request is asked once the MCP servers are there, and one start is enough."""
    assert measure_fresh_session(machine.client).tokens == 6_828
    start, *asked = machine.started
    assert start == "-p --input-format stream-json --output-format stream-json --verbose"
    assert [one.strip() for one in asked] == ["initialize", "mcp_status", "get_context_usage"]


def test_model_is_passed_on(machine: Machine) -> None:
    """The model that was asked for is the client's."""
    client = msgspec.structs.replace(machine.client, model="haiku")
    ask_by_control_request(client)
    assert machine.started[0].endswith("--verbose --model haiku")


def test_noise_is_passed_over(machine: Machine) -> None:
    """Hooks, warnings and lines of no format between the answers do no harm."""
    noise = ["warning: something", '{"type":"system","response":"x"}', "[]", "", '{"type":1}']
    machine.install(noise=noise)
    assert measure_fresh_session(machine.client).tokens == 6_828


def test_waits_for_mcp_servers(machine: Machine) -> None:
    """The client would answer before its MCP servers are connected: it is not asked before."""
    waiting = success({"mcpServers": [{"name": "db", "status": "pending"}, {"name": "x"}]})
    there = success({"mcpServers": [{"name": "db", "status": "connected"}]})
    machine.install({"mcp_status": [waiting, waiting, there]})
    assert measure_fresh_session(machine.client).without == ()
    asked = [one.strip() for one in machine.started[1:]]
    assert asked == ["initialize", *["mcp_status"] * 3, "get_context_usage"]


def test_late_mcp_servers_are_named(machine: Machine) -> None:
    """A server that does not connect is waited for as long as it is given, and then named."""
    waiting = success({"mcpServers": [{"name": "db", "status": "pending"}]})
    machine.install({"mcp_status": [waiting]})
    client = msgspec.structs.replace(machine.client, server_wait_s=0.2)
    assert measure_fresh_session(client).without == ("db",)


def test_client_that_knows_only_the_question(machine: Machine) -> None:
    """A client that refuses to begin or to tell its servers is asked all the same."""
    machine.install({"initialize": [refusal("no")], "mcp_status": [refusal("no")]})
    assert measure_fresh_session(machine.client).tokens == 6_828


def test_command_where_the_request_is_refused(machine: Machine) -> None:
    """A client without the request is asked by the command."""
    machine.install(
        {"get_context_usage": [refusal("Unsupported control request subtype")]},
        printed=['{"type":"system","subtype":"init"}', "noise", assistant(PRINTED)],
    )
    answer = measure_fresh_session(machine.client)
    assert (answer.source, answer.tokens) == ("/context", 6_828)
    assert machine.started[-1] == (
        "-p /context --output-format stream-json --verbose --no-session-persistence"
    )


def test_command_where_the_client_ends(machine: Machine) -> None:
    """So is one that ends at the request."""
    machine.install(
        dies_at="get_context_usage",
        end={"code": 1, "stderr": "unknown"},
        printed=[assistant(PRINTED)],
    )
    assert measure_fresh_session(machine.client).source == "/context"


def test_command_names_late_servers(machine: Machine) -> None:
    """What the command leaves out is known from the session's first line."""
    init = '{"type":"system","mcp_servers":[{"name":"db","status":"pending"}]}'
    machine.install(printed=[init, '{"type":"system"}', assistant(PRINTED)])
    assert ask_by_command(machine.client).without == ("db",)


def test_not_logged_in(machine: Machine) -> None:
    """A client that nobody is logged in to would guess: it is told so instead."""
    nobody = {"account": {"tokenSource": "none", "apiProvider": "firstParty"}}
    machine.install({"initialize": [success(nobody)]})
    assert failure(machine).reason == "it is not logged in, and would only estimate"


@pytest.mark.parametrize(
    "account",
    [
        {},
        {"tokenSource": "CLAUDE_CODE_OAUTH_TOKEN", "apiProvider": "firstParty"},
        {"tokenSource": "none", "apiKeySource": "apiKeyHelper", "apiProvider": "firstParty"},
        {"tokenSource": "none", "email": "a@example.org", "apiProvider": "firstParty"},
        {"apiProvider": "bedrock"},
        {"tokenSource": "none", "apiProvider": "vertex"},
    ],
)
def test_logged_in(machine: Machine, account: Json) -> None:
    """Every login that the client tells of is one; a cloud's own is not told."""
    machine.install({"initialize": [success({"account": account})]})
    assert measure_fresh_session(machine.client).tokens == 6_828


def test_command_that_asks_for_a_login(machine: Machine) -> None:
    """What is printed instead of figures is in the reason."""
    said = '{"type":"result","is_error":true,"result":"Not logged in \\u00b7 Please run /login"}'
    machine.install({"get_context_usage": [refusal("no")]}, printed=[said])
    assert failure(machine).reason == (
        "it ended with code 0; it printed 'Not logged in · Please run /login'"
    )


def test_nothing_counted(machine: Machine) -> None:
    """An answer without a system prompt is none."""
    usage = USAGE | {"categories": [{"name": "Skills", "tokens": 1_717}]}
    machine.install({"get_context_usage": [success(usage)]})
    assert failure(machine).reason == "it could not count the tokens of its system prompt"


def test_dies(machine: Machine) -> None:
    """A client that dies is quoted with its code and its last words."""
    machine.install(dies_at="initialize", end={"code": 3, "stderr": "first\nno space left"})
    assert failure(machine).reason == "it ended with code 3: no space left"


def test_garbage(machine: Machine) -> None:
    """A program that prints something else is quoted, and what it prints is cut."""
    machine.write("#!/bin/sh\necho hello " + "x" * 500 + "\n")
    assert failure(machine).reason == f"it ended with code 0; it printed 'hello {'x' * 74}'"


def test_binary_garbage(machine: Machine) -> None:
    """Bytes that are no text are no answer either."""
    machine.write("#!/bin/sh\nprintf '\\377\\376\\000{\\n'\n")
    assert failure(machine).reason.startswith("it ended with code 0; it printed ")


def test_silence(machine: Machine) -> None:
    """A client that says nothing is given up, and nothing of it stays."""
    machine.install({"get_context_usage": []})
    reason = failure(machine, SHORT).reason
    assert reason == f"no answer to get_context_usage in {SHORT:g} s"


def test_silent_command(machine: Machine) -> None:
    """So is the command."""
    machine.write("#!/bin/sh\nexec sleep 600\n")
    client = msgspec.structs.replace(machine.client, timeout_s=SHORT)
    with pytest.raises(BaselineFailed, match="no answer to /context in"):
        ask_by_command(client)


def test_endless_lines(machine: Machine) -> None:
    """A program that never stops printing is stopped."""
    machine.write("#!/bin/sh\nexec yes no\n")
    reason = failure(machine, SHORT).reason
    assert reason == f"no answer to get_context_usage in {SHORT:g} s; it printed 'no'"


def test_endless_line(machine: Machine) -> None:
    """A line without an end is neither waited for nor held."""
    machine.write("#!/bin/sh\nexec head -c 20000000 /dev/zero\n")
    assert failure(machine).reason.startswith("it ended with code 0")


def test_another_shape(machine: Machine) -> None:
    """Figures in another shape are no figures; which field it was is said."""
    usage = USAGE | {"categories": [{"name": "System prompt", "tokens": "many"}]}
    machine.install(
        {"get_context_usage": [success(usage)]},
        printed=[assistant({"categories": [{"name": "System prompt"}]})],
    )
    with pytest.raises(Unanswered, match=r"Expected `int`, got `str` - at `\$.categories"):
        ask_by_control_request(machine.client)
    assert "missing required field `tokens`" in failure(machine).reason


def test_children_do_not_outlive_it(machine: Machine) -> None:
    """What the client left running, its MCP servers for example, ends with it."""
    left = machine.log.with_suffix(".pid")
    machine.write(f"#!/bin/sh\nsleep 600 &\necho $! > {left}\nexit 0\n")
    failure(machine)
    with pytest.raises(ProcessLookupError):
        _wait_until_gone(int(left.read_text()))


def _wait_until_gone(pid: int) -> None:
    for _ in range(1_000):
        os.kill(pid, 0)
        if _is_zombie(pid):
            raise ProcessLookupError(pid)
        time.sleep(0.01)


def _is_zombie(pid: int) -> bool:
    """Whether it is dead, and only waits for whoever adopted it to notice."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and ") Z " in stat.read_text()


def test_guess_is_an_answer(machine: Machine) -> None:
    """A guess is told as one."""
    machine.install({"get_context_usage": [success(USAGE | {"categories": USED})]})
    assert measure_fresh_session(machine.client).estimated
    whole = USAGE | {"categories": [*USED, MESSAGES]}
    machine.install({"get_context_usage": [success(whole)]})
    assert not measure_fresh_session(machine.client).estimated


def test_version(machine: Machine) -> None:
    """The version is what the client says, without its name."""
    assert read_version(machine.client) == "2.1.325"


@pytest.mark.parametrize("said", ["", "hello", "usage: claude"])
def test_version_of_something_else(machine: Machine, said: str) -> None:
    """A program of the same name that is not Claude Code is found out."""
    machine.install(version=said)
    with pytest.raises(BaselineFailed, match="is not Claude Code"):
        read_version(machine.client)


def test_version_never_comes(machine: Machine) -> None:
    """A program that hangs is not waited for."""
    machine.write("#!/bin/sh\nexec sleep 600\n")
    client = msgspec.structs.replace(machine.client, timeout_s=SHORT)
    with pytest.raises(BaselineFailed, match="no answer to --version in"):
        read_version(client)


def test_cannot_be_started(machine: Machine) -> None:
    """A file that is no program is an error of ours, with the system's reason."""
    machine.write("#!/no/such/interpreter\n")
    with pytest.raises(BaselineFailed, match=r"cannot start .*claude: No such file"):
        read_version(machine.client)


def test_client_that_the_agent_sdk_bundles_is_found(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "claude_agent_sdk"
    (package / "_bundled").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_bundled" / "claude").symlink_to(machine.path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "claude_agent_sdk", raising=False)
    bare = Places(machine.home, {"PATH": "/nowhere"})
    assert find_command(bare) == str(package / "_bundled" / "claude")


def test_found_where_the_installer_put_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the PATH, the installers' own places are looked at; nowhere is an error."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    assert find_command(machine.places) == str(machine.path)
    bare = Places(machine.home, {"PATH": "/nowhere"})
    with pytest.raises(BaselineFailed, match="Claude Code is not installed"):
        find_command(bare)
    own = machine.home / ".local/bin/claude"
    own.parent.mkdir(parents=True)
    own.symlink_to(machine.path)
    assert find_command(bare) == str(own)


def test_outer_session_is_left_out(machine: Machine) -> None:
    """Asked from inside a session, the new one does not take the other's name for its own."""
    outer = machine.env | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_PID": "1"}
    assert client_environment(Places(machine.home, outer)) == machine.env
