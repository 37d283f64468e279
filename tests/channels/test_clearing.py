"""`handoff --clear` in a real tmux: driven by what hooks tell, gone on with after a restart."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from brimline.channels import clearing
from brimline.channels.clearing import Clearing, Pace
from brimline.channels.intents import Intent, keep, kept
from brimline.channels.tmux import Tmux
from brimline.errors import CommandFailed
from brimline.events import MAIN
from brimline.handoff import Document
from brimline.monitor.heard import Happening, Heard, Pane

from .conftest import Drawn

pytestmark = pytest.mark.slow

Make = Callable[..., Drawn]
SESSION, NEXT = "11111111-aaaa", "22222222-bbbb"
PATH = "/work/notes.md"
PROMPT = f"Read {PATH} and continue from where you left off."
DOCUMENT = Document.of("The parser is half done.", PATH, 0.0)
QUICK = Pace(every=0.05, idle=3.0, cleared=3.0)


class Daemon:
    """One life of what drives a clear; what ended was told to it."""

    def __init__(self, state: Path) -> None:
        self.told: list[Intent] = []
        self.clearing = Clearing(state, Tmux(state, 2.0), time.time, self._hear, QUICK)

    async def _hear(self, intent: Intent) -> None:
        self.told.append(intent)

    async def begin(self, client: Drawn, agent: str = "claude") -> None:
        """Ask for a clear of the client's session."""
        await self.clearing.begin(SESSION, agent, client.pane, DOCUMENT)

    async def restarted(self) -> None:
        """Go on with what another one left."""
        await self.clearing.recall()
        await self.clearing.resume()

    async def hook_after(self, client: Drawn) -> None:
        """The client's hook, which tells of a clear under the next session's id."""
        while "/clear" not in client.sent:
            await asyncio.sleep(0.02)
        await self.clearing.cleared(NEXT, client.pane)


def outcome(state: Path) -> tuple[str, str | None]:
    """The step that is on the disk, and why."""
    (intent,) = kept(state)
    return intent.step, intent.why


def play(work: Awaitable[None]) -> None:
    """Run a scene."""

    async def main() -> None:
        async with asyncio.timeout(60):
            await work

    asyncio.run(main())


def test_written_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decided last is on the disk last, however long the disk took for what was before."""
    pane = Pane("/tmp/tmux", "%1")
    keep(tmp_path, Intent(SESSION, "claude", pane, PATH, 1.0, step="clearing"))

    def slowly(state: Path, intent: Intent) -> None:
        time.sleep(0.1 if intent.after == "first" else 0.0)
        keep(state, intent)

    monkeypatch.setattr(clearing, "keep", slowly)

    async def scene() -> None:
        daemon = Daemon(tmp_path)
        await daemon.clearing.recall()
        hooks = [daemon.clearing.cleared(session, pane) for session in ("first", "second")]
        await asyncio.gather(*hooks)

    play(scene())
    assert [intent.after for intent in kept(tmp_path)] == ["second"]


def test_cleared_and_prompted(drawn: Make, tmp_path: Path) -> None:
    """The turn ends: `/clear`, the hook's word, then the prompt; the new session is known."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        assert daemon.clearing.holds(SESSION)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.hook_after(client)
        assert daemon.clearing.holds(NEXT)
        await daemon.clearing.settled()
        assert not daemon.clearing.holds(SESSION)

    play(scene())
    assert client.sent == ["/clear", PROMPT]
    assert [(i.step, i.after, i.why) for i in daemon.told] == [("done", NEXT, None)]
    assert outcome(tmp_path) == ("done", None)


def test_driven_by_what_is_heard(drawn: Make, tmp_path: Path) -> None:
    """The hooks' own words drive it; a subagent's end is not the turn's."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    def heard(what: Happening, session: str = SESSION, thread: str = MAIN) -> Heard:
        return Heard("1-1", "claude", session, what, 1.0, thread=thread, pane=client.pane)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.settled()
        for each in (heard("prompt"), heard("ended", thread="agent-1"), heard("ended", NEXT)):
            await daemon.clearing.hear(each)
        assert outcome(tmp_path) == ("waiting", None)
        await daemon.clearing.hear(heard("stopped"))
        await asyncio.sleep(0.1)
        assert outcome(tmp_path) == ("clearing", None)
        await daemon.clearing.hear(heard("cleared", NEXT))
        assert daemon.clearing.holds(NEXT)
        await daemon.clearing.close()

    play(scene())


def test_waits_for_the_turn(drawn: Make, tmp_path: Path) -> None:
    """While the agent is at work nothing is typed; the intent is on the disk."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("waiting", None)


def test_idle_pane_is_cleared_at_once(drawn: Make, tmp_path: Path) -> None:
    """Where no turn is on nobody will tell of its end: the clear is not waited for."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.hook_after(client)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_turn_that_goes_on(drawn: Make, tmp_path: Path) -> None:
    """A turn that somebody's hook keeps from ending is waited for again."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.settled()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("waiting", None))


def test_users_words_stay(drawn: Make, tmp_path: Path) -> None:
    """The user has typed something: it fails, says why, and their words stay."""
    client, daemon = drawn(), Daemon(tmp_path)
    client.type("half a thou")
    client.until_composer("claude", "typed")

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.settled()

    play(scene())
    assert client.composer("claude").text == "half a thou"
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", "something is typed in its composer")
    assert [intent.step for intent in daemon.told] == ["failed"]


def test_no_hook_no_prompt(drawn: Make, tmp_path: Path) -> None:
    """The pane alone is no proof: without the hook's word the prompt is not typed."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == ["/clear"]
    assert outcome(tmp_path)[0] == "failed"


def test_pane_that_stays(drawn: Make, tmp_path: Path) -> None:
    """The hook's word alone is no proof either: the pane must have changed."""
    client, daemon = drawn("keeps"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.hook_after(client)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == ["/clear"]
    assert outcome(tmp_path) == ("failed", "its pane is as it was before /clear")


def test_command_that_is_not_taken(drawn: Make, tmp_path: Path) -> None:
    """A client that does not take `/clear` has its pane as it was."""
    client, daemon = drawn("deaf"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.settled()

    play(scene())
    assert client.composer("claude").state == "empty"
    assert outcome(tmp_path) == ("failed", "it did not send the text off")


@pytest.mark.parametrize("told", [True, False])
def test_killed_while_it_waited(drawn: Make, tmp_path: Path, told: bool) -> None:
    """Killed before the turn ended: the next one hears of the end, or sees that it is over."""
    client = drawn()
    keep(tmp_path, Intent(SESSION, "claude", client.pane, PATH, time.time()))
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.clearing.recall()
        if told:
            await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.resume()
        await daemon.hook_after(client)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_killed_at_every_step(drawn: Make, tmp_path: Path) -> None:
    """Stopped between any two looks and begun again: cleared once, prompted once."""
    client = drawn()
    keep(tmp_path, Intent(SESSION, "claude", client.pane, PATH, time.time()))

    async def life(seconds: float) -> bool:
        daemon = Daemon(tmp_path)
        await daemon.clearing.recall()
        if "/clear" in client.sent:
            await daemon.clearing.cleared(NEXT, client.pane)
        await daemon.clearing.resume()
        try:
            async with asyncio.timeout(seconds):
                await daemon.hook_after(client)
                await daemon.clearing.settled()
        except TimeoutError:
            await daemon.clearing.close()
        return outcome(tmp_path)[0] in ("done", "failed")

    async def scene() -> None:
        seconds = 0.1
        while not await life(seconds):
            seconds += 0.15

    play(scene())
    assert outcome(tmp_path) == ("done", None)
    assert [client.sent.count(text) for text in ("/clear", PROMPT)] == [1, 1]
    assert set(client.sent) == {"/clear", PROMPT}


def test_killed_with_the_command_typed(drawn: Make, tmp_path: Path) -> None:
    """`/clear` that was typed and not sent off is taken back, and typed anew."""
    client = drawn()
    client.type("/clear")
    client.until_composer("claude", "typed")
    keep(tmp_path, Intent(SESSION, "claude", client.pane, PATH, time.time(), "clearing"))
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.restarted()
        await daemon.hook_after(client)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_killed_after_the_prompt(drawn: Make, tmp_path: Path) -> None:
    """A prompt that is on the screen was typed: it is not typed again."""
    client = drawn()
    client.type(PROMPT)
    client.press("Enter")
    client.until(lambda: client.sent)
    keep(tmp_path, Intent(SESSION, "claude", client.pane, PATH, time.time(), "prompting"))
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.restarted()
        await daemon.clearing.settled()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([PROMPT], ("done", None))


def test_session_that_ended(drawn: Make, tmp_path: Path) -> None:
    """The session is over before its turn ended: what runs in its pane now is not cleared."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.ended(SESSION)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.settled()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", "its session ended before it was cleared")


def test_others_are_not_meant(drawn: Make, tmp_path: Path) -> None:
    """What is told of another session, or another pane, begins and confirms nothing."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.turn_ended("other")
        await daemon.clearing.cleared("other", Pane(client.socket, "%9"))
        await daemon.clearing.ended("other")
        await daemon.clearing.settled()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)
    assert not daemon.clearing.holds("other")


def test_agent_without_a_clear(drawn: Make, tmp_path: Path) -> None:
    """An agent whose clear nobody could confirm is refused, and told what to do instead."""
    client, daemon = drawn(), Daemon(tmp_path)
    with pytest.raises(CommandFailed, match="--spawn"):
        play(daemon.begin(client, "gemini"))
    assert kept(tmp_path) == []


def test_pane_that_is_gone(drawn: Make, tmp_path: Path) -> None:
    """A pane that is gone is a failure that is told, and no crash."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        client.tmux("kill-pane", "-t", client.pane.id)
        await daemon.clearing.turn_ended(SESSION)
        await daemon.clearing.settled()

    play(scene())
    assert outcome(tmp_path) == ("failed", "its composer cannot be recognised")
