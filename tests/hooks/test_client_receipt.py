"""An answer that must be delivered once: what a client does until the daemon has stored that."""

import os

import pytest

from .agent import TOO_LONG, TRIES, Agent
from .daemon import Behaviour, Daemon, answers, gives_receipt, never_confirms
from .test_client_unanswered import suspend, suspended

HOOK = b'{"session_id":"s","hook_event_name":"Stop"}'
TEXT, RECEIPT = b'{"reason":"Go on."}\n', b'{"messages":["m1","m2"],"handoff":"h"}'


def test_confirmed(agent: Agent) -> None:
    """The text is printed, without the receipt; what the daemon has stored is not spooled."""
    with Daemon(agent.socket, gives_receipt(TEXT, RECEIPT, confirms=True)) as daemon:
        done, heard = agent.answered(daemon, HOOK)
    assert (done.code, done.out, done.told) == (0, TEXT, b"")
    assert (heard.acknowledged, heard.request.wants_receipt) == (True, True)


@pytest.mark.parametrize(
    "behaviour",
    [gives_receipt(TEXT, RECEIPT, confirms=False), never_confirms(TEXT, RECEIPT)],
    ids=["it dies", "it is stopped"],
)
def test_not_confirmed(agent: Agent, behaviour: Behaviour) -> None:
    """The receipt is spooled under the id of the request, and nothing else is."""
    with Daemon(agent.socket, behaviour) as daemon:
        done, heard = agent.unanswered(daemon, HOOK, "hook")
    assert (done.code, done.out, done.told) == (0, TEXT, b"")
    assert done.seconds < TOO_LONG
    (kept,) = agent.spooled()
    assert (kept.kind, kept.agent, kept.body) == ("delivered", "claude", RECEIPT)
    assert (kept.id, kept.env) == (heard.request.id, {})


def test_suspended_before_it_is_confirmed(agent: Agent) -> None:
    """A client that was not run until its time was over spools the receipt all the same."""
    with Daemon(agent.socket, never_confirms(TEXT, RECEIPT)):
        for _ in range(TRIES):
            if suspend_after_print(agent) == TEXT:
                break
            agent.spooled()
    assert [(one.kind, one.body) for one in agent.spooled()] == [("delivered", RECEIPT)]


def suspend_after_print(agent: Agent) -> bytes:
    """Run a client, suspend it when it has printed its answer; what that was."""
    with suspended(agent, HOOK) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        printed = process.stdout.read(len(TEXT))
        suspend(process)
    assert process.returncode == 0
    return printed


def test_not_printed(agent: Agent) -> None:
    """An answer that nobody reads is neither acknowledged nor given a receipt."""
    reader, writer = os.pipe()
    os.close(reader)
    with Daemon(agent.socket, gives_receipt(TEXT, RECEIPT, confirms=True)) as daemon:
        done, heard = agent.answered(daemon, HOOK, stdout=writer)
    os.close(writer)
    assert (done.code, heard.acknowledged) == (0, False)


def test_daemon_of_an_earlier_version(agent: Agent) -> None:
    """It gives no receipt and confirms nothing: it is acknowledged, and nothing is spooled."""
    with Daemon(agent.socket, answers(TEXT)) as daemon:
        done, heard = agent.answered(daemon, HOOK)
    assert (done.out, heard.acknowledged) == (TEXT, True)
