"""Replies with a receipt: what a client does until the daemon has stored the delivery."""

import os

import pytest

from .agent import MAX_RUN_S, TRIES, Agent
from .daemon import Behaviour, Daemon, answers, gives_receipt, never_confirms
from .test_client_unanswered import running_client, suspend

HOOK = b'{"session_id":"s","hook_event_name":"Stop"}'
TEXT, RECEIPT = b'{"reason":"Go on."}\n', b'{"messages":["m1","m2"],"handoff":"h"}'


def test_confirmed_receipt_is_neither_printed_nor_spooled(agent: Agent) -> None:
    with Daemon(agent.socket, gives_receipt(TEXT, RECEIPT, confirms=True)) as daemon:
        result, exchange = agent.answered(daemon, HOOK)
    assert (result.code, result.stdout, result.stderr) == (0, TEXT, b"")
    assert (exchange.acknowledged, exchange.request.wants_receipt) == (True, True)


@pytest.mark.parametrize(
    "behaviour",
    [gives_receipt(TEXT, RECEIPT, confirms=False), never_confirms(TEXT, RECEIPT)],
    ids=["it dies", "it is stopped"],
)
def test_unconfirmed_receipt_is_spooled_under_the_id_of_its_request(
    agent: Agent, behaviour: Behaviour
) -> None:
    with Daemon(agent.socket, behaviour) as daemon:
        result, exchange = agent.prints(daemon, HOOK, TEXT)
    assert (result.code, result.stderr) == (0, b"")
    assert result.seconds < MAX_RUN_S
    (event,) = agent.take_spooled()
    assert (event.kind, event.agent, event.body) == ("delivered", "claude", RECEIPT)
    assert (event.id, event.env) == (exchange.request.id, {})


def test_suspended_client_spools_an_unconfirmed_receipt(agent: Agent) -> None:
    with Daemon(agent.socket, never_confirms(TEXT, RECEIPT)):
        for _ in range(TRIES):
            if suspend_after_print(agent) == TEXT:
                break
            agent.take_spooled()
    assert [(one.kind, one.body) for one in agent.take_spooled()] == [("delivered", RECEIPT)]


def suspend_after_print(agent: Agent) -> bytes:
    """Suspend a client once it has printed its reply; return that."""
    with running_client(agent, HOOK) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        printed = process.stdout.read(len(TEXT))
        suspend(process)
    assert process.returncode == 0
    return printed


def test_unread_reply_is_not_acknowledged_and_leaves_no_receipt(agent: Agent) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with Daemon(agent.socket, gives_receipt(TEXT, RECEIPT, confirms=True)) as daemon:
        result, exchange = agent.answered(daemon, HOOK, stdout=writer)
    os.close(writer)
    assert (result.code, exchange.acknowledged) == (0, False)


def test_reply_without_a_receipt_is_acknowledged(agent: Agent) -> None:
    with Daemon(agent.socket, answers(TEXT)) as daemon:
        result, exchange = agent.answered(daemon, HOOK)
    assert (result.stdout, exchange.acknowledged) == (TEXT, True)
