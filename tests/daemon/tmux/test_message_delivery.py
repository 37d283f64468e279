"""Messages for agents without hooks: typed once, and only into their pane."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from brimline.agents.observations import Pane
from brimline.agents.transcripts.source import Places
from brimline.context.inbox import Message, Urgency
from brimline.daemon.local_environment import LocalEnvironment
from brimline.daemon.tmux.message_delivery import NO_PANE, NOT_RUNNING, MessageDelivery
from brimline.daemon.tmux.pane import find_pane, runs_in_pane
from brimline.daemon.tmux.typist import Typist
from brimline.errors import StoreFailed
from brimline.store.base import MarkMessage, PutSession, QueueMessage, Write
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore

from .conftest import FakeClient
from .terminal import Terminal

pytestmark = pytest.mark.slow

AGENTS = ("opencode", "pi")  # agents without hooks in these tests

StartClient = Callable[..., FakeClient]
TYPIST_WAIT_S = 60.0  # generous: a busy machine is slow, not wrong
NOT_TAKEN_S = 2.0


def message(id: str, text: str, urgency: Urgency = "sequential", session: str = "s1") -> Message:
    """A message from the user."""
    return Message(id, session, text, time.time(), urgency=urgency, sender="user")


def deliver(
    state: Path,
    pane: Pane | None,
    *messages: Message,
    agent: str = "pi",
    compacting: bool = False,
    rounds: int = 1,
    of_now: Callable[[Message], Message] = lambda message: message,
    typist_wait_s: float = TYPIST_WAIT_S,
) -> tuple[int, list[str]]:
    """Run delivery rounds; returns the number of deliveries and the state of each message."""

    async def main() -> tuple[int, list[str]]:
        store = MemoryStore()
        sessions = [PutSession(SessionRow(id, agent, time.time())) for id in ("s1", "s2")]
        await store.write([*sessions, *map(QueueMessage, messages)])
        mail = MessageDelivery(
            store,
            Typist(state, typist_wait_s),
            time.time,
            lambda row: row.agent not in AGENTS,
            lambda row: pane,
            lambda id: compacting,
            of_now,
        )
        count = sum([await mail.deliver_pending() for _ in range(rounds)])
        return count, [stored.state for stored in await store.messages("s1")]

    return asyncio.run(main())


def test_waiting_messages_are_typed_together_urgent_first_and_once(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("pi")
    both = (message("m1", "Later."), message("m2", "First.", "urgent"))
    assert deliver(tmp_path, client.pane, *both, rounds=2) == (2, ["delivered", "delivered"])
    assert client.sent == ["First.\n\nLater."]


def test_message_with_a_figure_is_refreshed_when_typed(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("pi")

    def of_now(message: Message) -> Message:
        return msgspec.structs.replace(message, text="At 60%.")

    assert deliver(tmp_path, client.pane, message("m1", "At 52%."), of_now=of_now)[0] == 1
    assert client.sent == ["At 60%."]


class FailingStore(MemoryStore):
    """A store whose first attempt to record a delivery fails."""

    failed = False

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        if not self.failed and any(
            isinstance(w, MarkMessage) and w.to == "delivered" for w in writes
        ):
            self.failed = True
            raise StoreFailed("store", "disk full", "Free some space.")
        return await super().write(writes)


def test_message_is_typed_once_even_if_the_store_fails(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("pi")

    async def main() -> list[str]:
        store, hour = FailingStore(), 3_600.0
        await store.write(
            [PutSession(SessionRow("s1", "pi", 1.0)), QueueMessage(message("m1", "Hello."))]
        )
        mail = MessageDelivery(
            store, Typist(tmp_path, TYPIST_WAIT_S), lambda: time.time() + hour, lambda row: False,
            lambda row: client.pane, lambda id: False, lambda message: message,
        )  # fmt: skip
        with pytest.raises(StoreFailed):
            await mail.deliver_pending()
        await mail.deliver_pending()
        return [stored.state for stored in await store.messages("s1")]

    assert asyncio.run(main()) == ["delivered"]
    assert client.sent == ["Hello."]


def test_message_waits_while_the_user_types(start_client: StartClient, tmp_path: Path) -> None:
    client = start_client("pi")
    client.type("half a thou")
    client.until_composer("pi", "typed")
    assert deliver(tmp_path, client.pane, message("m1", "Now.", "urgent")) == (0, ["queued"])
    assert client.composer("pi").text == "half a thou"


def test_message_that_the_client_ignored_waits_again(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("pi", "deaf")
    result = deliver(tmp_path, client.pane, message("m1", "Now."), typist_wait_s=NOT_TAKEN_S)
    assert result == (0, ["queued"])


def test_message_left_in_the_composer_is_not_typed_again(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("pi", "meddled")
    text = message("m1", "Now.")
    result = deliver(tmp_path, client.pane, text, rounds=2, typist_wait_s=NOT_TAKEN_S)
    assert result == (0, ["delivered"])
    assert client.composer("pi").text == "xNow."


@pytest.mark.parametrize(
    ("agent", "compacting", "has_pane"),
    [("claude", False, True), ("pi", True, True), ("pi", False, False)],
)
def test_nothing_is_typed_for_agents_with_hooks_compacting_or_without_pane(
    start_client: StartClient, tmp_path: Path, agent: str, compacting: bool, has_pane: bool
) -> None:
    client = start_client("pi")
    pane = client.pane if has_pane else None
    outcome = deliver(tmp_path, pane, message("m1", "Now."), agent=agent, compacting=compacting)
    assert outcome == (0, ["queued"])
    assert client.sent == []


def wake(
    state: Path, pane: Pane | None, row: SessionRow | None, hook_was_faster: bool = False
) -> tuple[str | None, str]:
    """Wake an agent with hooks; returns why it was not, and the message's state."""

    async def main() -> tuple[str | None, str]:
        store = MemoryStore()
        await store.write([PutSession(row)] if row else [])
        await store.write(
            [QueueMessage(message("m1", "Later.")), QueueMessage(message("m2", "Up."))]
        )
        if hook_was_faster:
            await store.write([MarkMessage("m2", "delivered", ("queued",), time.time())])
        mail = MessageDelivery(
            store, Typist(state, TYPIST_WAIT_S), time.time, lambda row: True, lambda row: pane,
            lambda id: False, lambda message: message,
        )  # fmt: skip
        why_not = await mail.wake("s1", "m2")
        first, second = await store.messages("s1")
        assert first.state == "queued"  # it comes with the hook of the typed prompt
        return why_not, second.state

    return asyncio.run(main())


RUNNING = SessionRow("s1", "claude", 9.0)


def test_idle_agent_with_hooks_is_woken_by_one_message(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("claude")
    assert wake(tmp_path, client.pane, RUNNING) == (None, "delivered")
    assert client.sent == ["Up."]


def test_nobody_is_woken_while_the_user_types(start_client: StartClient, tmp_path: Path) -> None:
    client = start_client("claude")
    client.type("half a thou")
    client.until_composer("claude", "typed")
    assert wake(tmp_path, client.pane, RUNNING) == ("there is text in the composer", "queued")
    assert client.composer("claude").text == "half a thou"


def test_working_agent_is_not_woken(start_client: StartClient, tmp_path: Path) -> None:
    client = start_client("claude", "busy")
    client.until_composer("claude", "busy")
    assert wake(tmp_path, client.pane, RUNNING) == ("the agent is busy", "queued")
    assert client.sent == []


def test_message_that_a_hook_delivered_first_is_not_typed(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client("claude")
    assert wake(tmp_path, client.pane, RUNNING, hook_was_faster=True) == (None, "delivered")
    assert client.sent == []


@pytest.mark.parametrize(
    "row",
    [
        None,
        SessionRow("s1", "claude", 9.0, ended_at=9.0),
        SessionRow("s1", "claude", 9.0, became="s2", became_at=9.0),
    ],
    ids=["unknown", "ended", "cleared"],
)
def test_agent_that_does_not_run_is_not_woken(tmp_path: Path, row: SessionRow | None) -> None:
    assert wake(tmp_path, Pane("/no", "%1"), row) == (NOT_RUNNING, "queued")


def test_agent_without_a_pane_is_not_woken(tmp_path: Path) -> None:
    assert wake(tmp_path, None, RUNNING) == (NO_PANE, "queued")


@pytest.mark.parametrize(
    ("seen_at", "left"), [(1.0, "s2"), (2.0, "s1")], ids=["cleared", "resumed"]
)
async def test_message_for_a_cleared_session_goes_to_its_successor(
    tmp_path: Path, seen_at: float, left: str
) -> None:
    """A session that was resumed since gets its own messages."""

    store = MemoryStore()
    cleared = SessionRow("s1", "claude", 1.0, became="s2", became_at=1.0)
    resumed = SessionRow("s1", "claude", seen_at)
    await store.write(
        [PutSession(cleared), PutSession(resumed), QueueMessage(message("m1", "One."))]
    )
    mail = MessageDelivery(
        store, Typist(tmp_path, TYPIST_WAIT_S), time.time, lambda row: True, lambda row: None,
        lambda id: False, lambda message: message,
    )  # fmt: skip
    assert await mail.deliver_pending() == 0
    assert [(m.session, m.text) for m in await store.pending_messages()] == [(left, "One.")]


def program(folder: Path, name: str) -> str:
    """A program of this name that sleeps."""
    folder.mkdir(exist_ok=True)
    place = folder / name
    shutil.copy(str(shutil.which("sleep")), place)
    return str(place)


def test_pane_is_found_by_folder_and_program_unless_two_match(tmp_path: Path) -> None:
    project, second = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    second.mkdir()
    command = [program(tmp_path / "bin", "pi"), "600"]
    terminal = Terminal(command, project)
    try:
        user = os.getuid()
        env = {"TMUX_TMPDIR": str(tmp_path)}
        place = tmp_path / f"tmux-{user}" / "default"
        place.parent.mkdir()
        place.symlink_to(terminal.socket)
        terminal.tmux("new-window", "-c", str(second), "--", *command)
        terminal.tmux("new-window", "-c", str(project), "--", "cat")

        def find() -> Pane | None:
            return find_pane("pi", str(project), env, user)

        terminal.until(find)
        assert find() == Pane(str(place), terminal.pane.id)
        assert find_pane("opencode", str(project), env, user) is None
        assert find_pane("pi", str(tmp_path), env, user) is None
        assert find_pane("pi", None, env, user) is None
        environment = LocalEnvironment(
            Places(tmp_path, env), tmp_path / "state", lambda signal, state: None, lambda _: False
        )

        def can_deliver(agent: str, is_document: bool = False) -> bool:
            return asyncio.run(environment.can_deliver(agent, str(project), is_document))

        assert can_deliver("pi")
        assert not can_deliver("pi", is_document=True)
        assert not can_deliver("opencode")
        assert not can_deliver("my-agent")
        terminal.tmux("new-window", "-c", str(project), "--", *command)
        terminal.until(lambda: find() is None)
    finally:
        terminal.close()


def test_no_pane_without_a_tmux_server(tmp_path: Path) -> None:
    env = {"TMUX_TMPDIR": str(tmp_path)}
    assert find_pane("pi", "/", env, 1) is None
    (tmp_path / "tmux-1").mkdir()
    (tmp_path / "tmux-1" / "default").touch()
    assert find_pane("pi", "/", env, 1) is None
    assert not runs_in_pane("pi", 1 << 22)
