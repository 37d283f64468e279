"""Messages for agents without hooks: typed into their pane, once, and only there."""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from brimline.inbox import Message, Urgency
from brimline.observations import Pane
from brimline.store.base import MarkMessage, PutSession, QueueMessage, Write
from brimline.store.failures import StoreFailed
from brimline.store.memory import MemoryStore
from brimline.store.rows import SessionRow
from brimline.tmux.message_delivery import MessageDelivery
from brimline.tmux.pane_search import find_pane, runs_in_pane
from brimline.tmux.typist import Typist

from .conftest import Drawn
from .terminal import Terminal

pytestmark = pytest.mark.slow

AGENTS = ("opencode", "pi")  # agents without hooks in these tests

Make = Callable[..., Drawn]


def message(id: str, text: str, urgency: Urgency = "sequential", session: str = "s1") -> Message:
    """A message from the user."""
    return Message(id, session, text, time.time(), urgency=urgency, sender="user")


def round_of(
    state: Path,
    pane: Pane | None,
    *messages: Message,
    agent: str = "pi",
    compacting: bool = False,
    rounds: int = 1,
    of_now: Callable[[Message], Message] = lambda message: message,
) -> tuple[int, list[str]]:
    """How many messages some rounds delivered, and what became of each."""

    async def main() -> tuple[int, list[str]]:
        store = MemoryStore()
        sessions = [PutSession(SessionRow(id, agent, time.time())) for id in ("s1", "s2")]
        await store.write([*sessions, *map(QueueMessage, messages)])
        mail = MessageDelivery(
            store,
            Typist(state, 2.0),
            time.time,
            lambda row: row.agent not in AGENTS,
            lambda row: pane,
            lambda id: compacting,
            of_now,
        )
        count = sum([await mail.deliver_pending() for _ in range(rounds)])
        return count, [found.state for found in await store.messages("s1")]

    return asyncio.run(main())


def test_delivered_once(drawn: Make, tmp_path: Path) -> None:
    """What waits is typed together, the urgent first, and in the next round no more."""
    client = drawn("pi")
    both = (message("m1", "Later."), message("m2", "First.", "urgent"))
    assert round_of(tmp_path, client.pane, *both, rounds=2) == (2, ["delivered", "delivered"])
    assert client.sent == ["First.\n\nLater."]


def test_typed_as_it_is_by_then(drawn: Make, tmp_path: Path) -> None:
    """What tells a figure tells that of the moment at which it is typed."""
    client = drawn("pi")

    def of_now(message: Message) -> Message:
        return msgspec.structs.replace(message, text="At 60%.")

    assert round_of(tmp_path, client.pane, message("m1", "At 52%."), of_now=of_now)[0] == 1
    assert client.sent == ["At 60%."]


class Failing(MemoryStore):
    """A store that cannot keep that something was delivered, the first time."""

    failed = False

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """As the store does, but for that."""
        if not self.failed and any(
            isinstance(w, MarkMessage) and w.to == "delivered" for w in writes
        ):
            self.failed = True
            raise StoreFailed("store", "disk full", "Free some space.")
        return await super().write(writes)


def test_typed_once_while_the_store_fails(drawn: Make, tmp_path: Path) -> None:
    """What was typed is not typed again, though it could not be kept; it is as soon as it can."""
    client = drawn("pi")

    async def main() -> list[str]:
        store, hour = Failing(), 3_600.0
        await store.write(
            [PutSession(SessionRow("s1", "pi", 1.0)), QueueMessage(message("m1", "Hello."))]
        )
        mail = MessageDelivery(
            store, Typist(tmp_path, 2.0), lambda: time.time() + hour, lambda row: False,
            lambda row: client.pane, lambda id: False, lambda message: message,
        )  # fmt: skip
        with pytest.raises(StoreFailed):
            await mail.deliver_pending()
        await mail.deliver_pending()
        return [found.state for found in await store.messages("s1")]

    assert asyncio.run(main()) == ["delivered"]
    assert client.sent == ["Hello."]


def test_waits_for_the_user(drawn: Make, tmp_path: Path) -> None:
    """While the user types it waits."""
    client = drawn("pi")
    client.type("half a thou")
    client.until_composer("pi", "typed")
    assert round_of(tmp_path, client.pane, message("m1", "Now.", "urgent")) == (0, ["queued"])
    assert client.composer("pi").text == "half a thou"


def test_not_taken_waits_again(drawn: Make, tmp_path: Path) -> None:
    """What the client did not take, and is not left in its pane, waits again."""
    client = drawn("pi", "deaf")
    assert round_of(tmp_path, client.pane, message("m1", "Now.")) == (0, ["queued"])


def test_left_is_not_typed_twice(drawn: Make, tmp_path: Path) -> None:
    """What stays in the composer beside the user's letters is theirs to send."""
    client = drawn("pi", "meddled")
    assert round_of(tmp_path, client.pane, message("m1", "Now."), rounds=2) == (0, ["delivered"])
    assert client.composer("pi").text == "xNow."


@pytest.mark.parametrize(
    ("agent", "compacting", "known"),
    [("claude", False, True), ("pi", True, True), ("pi", False, False)],
)
def test_not_by_the_pane(
    drawn: Make, tmp_path: Path, agent: str, compacting: bool, known: bool
) -> None:
    """An agent with hooks, one that compacts, and one without a pane gets nothing typed."""
    client = drawn("pi")
    pane = client.pane if known else None
    told = round_of(tmp_path, pane, message("m1", "Now."), agent=agent, compacting=compacting)
    assert told == (0, ["queued"])
    assert client.sent == []


@pytest.mark.parametrize(
    ("seen_at", "left"), [(1.0, "s2"), (2.0, "s1")], ids=["cleared", "resumed"]
)
def test_sent_on(tmp_path: Path, seen_at: float, left: str) -> None:
    """What is sent to a session that was cleared waits for the one that it became; one that was
    resumed since gets its own."""

    async def main() -> None:
        store = MemoryStore()
        cleared = SessionRow("s1", "claude", 1.0, became="s2", became_at=1.0)
        seen = SessionRow("s1", "claude", seen_at)
        await store.write(
            [PutSession(cleared), PutSession(seen), QueueMessage(message("m1", "One."))]
        )
        mail = MessageDelivery(
            store, Typist(tmp_path, 2.0), time.time, lambda row: True, lambda row: None,
            lambda id: False, lambda message: message,
        )  # fmt: skip
        assert await mail.deliver_pending() == 0
        assert [(m.session, m.text) for m in await store.pending_messages()] == [(left, "One.")]

    asyncio.run(main())


def program(folder: Path, name: str) -> str:
    """A program of this name that does nothing for a long time."""
    folder.mkdir(exist_ok=True)
    place = folder / name
    shutil.copy(str(shutil.which("sleep")), place)
    return str(place)


def test_found_by_folder_and_program(tmp_path: Path) -> None:
    """The pane is where the agent runs in the session's folder; of two nobody knows which."""
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    command = [program(tmp_path / "bin", "pi"), "600"]
    terminal = Terminal(command, project)
    try:
        user = 12345
        env = {"TMUX_TMPDIR": str(tmp_path)}
        place = tmp_path / f"tmux-{user}" / "default"
        place.parent.mkdir()
        place.symlink_to(terminal.socket)
        terminal.tmux("new-window", "-c", str(other), "--", *command)
        terminal.tmux("new-window", "-c", str(project), "--", "cat")

        def found() -> Pane | None:
            return find_pane("pi", str(project), env, user)

        terminal.until(found)
        assert found() == Pane(str(place), terminal.pane.id)
        assert find_pane("opencode", str(project), env, user) is None
        assert find_pane("pi", str(tmp_path), env, user) is None
        assert find_pane("pi", None, env, user) is None
        terminal.tmux("new-window", "-c", str(project), "--", *command)
        terminal.until(lambda: found() is None)
    finally:
        terminal.close()


def test_no_tmux_no_pane(tmp_path: Path) -> None:
    """Where there is no server, or what is there is none, there is no pane."""
    env = {"TMUX_TMPDIR": str(tmp_path)}
    assert find_pane("pi", "/", env, 1) is None
    (tmp_path / "tmux-1").mkdir()
    (tmp_path / "tmux-1" / "default").touch()
    assert find_pane("pi", "/", env, 1) is None
    assert not runs_in_pane("pi", 1 << 22)
