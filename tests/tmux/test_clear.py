"""`handoff --clear` in a real tmux: driven by what hooks tell, gone on with after a restart."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from brimline.errors import CommandFailed
from brimline.handoff import Document
from brimline.observations import Observation, ObservationKind, Pane
from brimline.tmux import clear
from brimline.tmux.clear import (
    DOCUMENT_GONE,
    INTERRUPTED,
    NOT_CHANGED,
    PROMPTED,
    SESSION_ENDED,
    SessionClearer,
)
from brimline.tmux.clear_requests import ClearRequest, ClearStep, load_requests, save_request
from brimline.tmux.pane_watcher import ClearTimings
from brimline.tmux.typist import STATE_REASONS, Typist

from .conftest import Drawn

pytestmark = pytest.mark.slow

Make = Callable[..., Drawn]
SESSION, NEXT = "11111111-aaaa", "22222222-bbbb"
PATH = "/etc/hosts"  # a short one that is there on every machine
PROMPT = f"Read {PATH} and continue from where you left off."
DOCUMENT = Document.of("The parser is half done.", PATH, 0.0)
QUICK = ClearTimings(poll_s=0.05, idle_s=3.0, cleared_s=3.0, interrupted_s=1.0, watch_s=2.0)


class Daemon:
    """One life of what drives a clear; what ended was told to it."""

    def __init__(self, state: Path) -> None:
        self.told: list[ClearRequest] = []
        self.clearing = SessionClearer(state, Typist(state, 2.0), time.time, self._hear, QUICK)

    async def _hear(self, intent: ClearRequest) -> None:
        self.told.append(intent)

    async def begin(self, client: Drawn, agent: str = "claude") -> None:
        """Ask for a clear of the client's session."""
        await self.clearing.request_clear(SESSION, agent, client.pane, DOCUMENT)

    async def restarted(self) -> None:
        """Go on with what another one left."""
        await self.clearing.load()
        await self.clearing.resume()

    async def hook_after(self, client: Drawn) -> None:
        """The client's hook, which tells of a clear under the next session's id."""
        while "/clear" not in client.sent:
            await asyncio.sleep(0.02)
        await self.clearing.on_cleared(NEXT, client.pane)


def heard(what: ObservationKind, **more: Any) -> Observation:
    """What a hook tells of the session, now."""
    told = Observation("1-1", "claude", SESSION, what, time.time())
    return replace(told, **more)


def outcome(state: Path) -> tuple[str, str | None]:
    """The step that is on the disk, and why."""
    (intent,) = load_requests(state)
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
    save_request(tmp_path, ClearRequest(SESSION, "claude", pane, PATH, 1.0, step="clearing"))

    def slowly(state: Path, intent: ClearRequest) -> None:
        time.sleep(0.1 if intent.after == "first" else 0.0)
        save_request(state, intent)

    monkeypatch.setattr(clear, "save_request", slowly)

    async def scene() -> None:
        daemon = Daemon(tmp_path)
        await daemon.clearing.load()
        hooks = [daemon.clearing.on_cleared(session, pane) for session in ("first", "second")]
        await asyncio.gather(*hooks)

    play(scene())
    assert [intent.after for intent in load_requests(tmp_path)] == ["second"]


def test_cleared_and_prompted(drawn: Make, tmp_path: Path) -> None:
    """The turn ends: `/clear`, the hook's word, then the prompt; the new session is known."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        assert daemon.clearing.holds_messages(SESSION)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.hook_after(client)
        assert daemon.clearing.holds_messages(NEXT)
        await daemon.clearing.wait_until_idle()
        assert not daemon.clearing.holds_messages(SESSION)

    play(scene())
    assert client.sent == ["/clear", PROMPT]
    assert [(i.step, i.after, i.why) for i in daemon.told] == [("done", NEXT, None)]
    assert outcome(tmp_path) == ("done", None)


def test_driven_by_what_is_heard(drawn: Make, tmp_path: Path) -> None:
    """The hooks' own words drive it; a subagent's end is not the turn's."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.wait_until_idle()
        for each in (heard("ended", thread="agent-1"), heard("ended", session=NEXT)):
            await daemon.clearing.observe(each)
        assert outcome(tmp_path) == ("waiting", None)
        await daemon.clearing.observe(heard("stopped"))
        await asyncio.sleep(0.1)
        assert outcome(tmp_path) == ("clearing", None)
        await daemon.clearing.observe(heard("cleared", session=NEXT, pane=client.pane))
        assert daemon.clearing.holds_messages(NEXT)
        await daemon.clearing.close()

    play(scene())


def test_waits_for_the_turn(drawn: Make, tmp_path: Path) -> None:
    """While the agent is at work nothing is typed; the intent is on the disk."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("waiting", None)


def test_idle_pane_is_cleared_at_once(drawn: Make, tmp_path: Path) -> None:
    """Where no turn is on nobody will tell of its end: the clear is not waited for."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.hook_after(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_turn_that_goes_on(drawn: Make, tmp_path: Path) -> None:
    """A turn that somebody's hook keeps from ending is waited for again."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("waiting", None))


def test_users_words_stay(drawn: Make, tmp_path: Path) -> None:
    """The user has typed something: it fails, says why, and their words stay."""
    client, daemon = drawn(), Daemon(tmp_path)
    client.type("half a thou")
    client.until_composer("claude", "typed")

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.composer("claude").text == "half a thou"
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", STATE_REASONS["typed"])
    assert [intent.step for intent in daemon.told] == ["failed"]


def test_no_hook_no_prompt(drawn: Make, tmp_path: Path) -> None:
    """The pane alone is no proof: without the hook's word the prompt is not typed."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear"]
    assert outcome(tmp_path)[0] == "failed"


def test_pane_that_stays(drawn: Make, tmp_path: Path) -> None:
    """The hook's word alone is no proof either: the pane must have changed."""
    client, daemon = drawn("keeps"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.hook_after(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear"]
    assert outcome(tmp_path) == ("failed", NOT_CHANGED)


def test_command_that_is_not_taken(drawn: Make, tmp_path: Path) -> None:
    """A client that does not take `/clear` has its pane as it was."""
    client, daemon = drawn("deaf"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.composer("claude").state == "empty"
    assert outcome(tmp_path) == ("failed", "the client did not submit the text")


def test_prompt_calls_it_off(drawn: Make, tmp_path: Path) -> None:
    """The user says something before the turn's end was told: its end clears nothing."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.observe(heard("prompt"))
        assert not daemon.clearing.has_requests
        client.press("Escape")
        client.until_composer("claude")
        await daemon.clearing.observe(heard("stopped"))
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", PROMPTED))
    assert [intent.why for intent in daemon.told] == [PROMPTED]


def test_prompt_right_after_the_turn(drawn: Make, tmp_path: Path) -> None:
    """Words that were queued are a prompt as soon as the turn has ended: they are not wiped."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.observe(heard("stopped"))
        await asyncio.sleep(QUICK.settle_s / 2)
        await daemon.clearing.observe(heard("prompt"))
        await asyncio.sleep(3 * QUICK.settle_s)

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", PROMPTED))


def test_prompts_that_are_not_meant(drawn: Make, tmp_path: Path) -> None:
    """A subagent's, another session's, and one that is older and was spooled call nothing off."""
    client, daemon = drawn("busy"), Daemon(tmp_path)
    before = time.time() - 1.0
    others = (
        heard("prompt", thread="agent-1"),
        heard("prompt", session=NEXT),
        heard("prompt", at=before, is_late=True),
    )

    async def scene() -> None:
        await daemon.begin(client)
        for each in others:
            await daemon.clearing.observe(each)
        await daemon.clearing.close()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)


def test_own_prompt_calls_nothing_off(drawn: Make, tmp_path: Path) -> None:
    """The prompt that we type is told of like any other, under an id that may be the old one."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.hook_after(client)
        while PROMPT not in client.sent:
            await asyncio.sleep(0.02)
        await daemon.clearing.observe(heard("prompt", session=NEXT))
        await daemon.clearing.observe(heard("prompt"))
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert outcome(tmp_path) == ("done", None)


def test_older_end_in_the_spool(drawn: Make, tmp_path: Path) -> None:
    """The end of an earlier turn, told late, is not the end of the one that asked."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.observe(heard("stopped", at=time.time() - 60.0, is_late=True))
        await asyncio.sleep(0.1)
        await daemon.clearing.close()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)


@pytest.mark.parametrize("step", ["waiting", "clearing"])
def test_prompt_while_nobody_listened(drawn: Make, tmp_path: Path, step: ClearStep) -> None:
    """The daemon was away for the end and the user's next prompt: that one is heard first."""
    client, daemon = drawn(), Daemon(tmp_path)
    asked = ClearRequest(SESSION, "claude", client.pane, PATH, time.time(), step, rows=("0" * 12,))
    save_request(tmp_path, asked)

    async def scene() -> None:
        await daemon.clearing.load()
        for what in ("stopped", "prompt"):
            await daemon.clearing.observe(heard(what, is_late=True))
        await daemon.clearing.resume()
        await asyncio.sleep(3 * QUICK.settle_s)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", PROMPTED))


def test_interrupted_turn(drawn: Make, tmp_path: Path) -> None:
    """Esc, and nothing typed: a pane that stays idle without the hook's word is not cleared."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await asyncio.sleep(QUICK.settle_s)
        client.press("Escape")
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", INTERRUPTED))
    assert [intent.why for intent in daemon.told] == [INTERRUPTED]


def test_words_that_are_to_be_read(drawn: Make, tmp_path: Path) -> None:
    """The user has queued words that the document cannot know: the agent reads them first."""
    client, daemon = drawn("busy", "queued"), Daemon(tmp_path)
    with pytest.raises(CommandFailed, match="not been read yet"):
        play(daemon.begin(client))
    assert load_requests(tmp_path) == []


def test_called_off_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that was being written when it was called off is not written over that."""
    asked = ClearRequest(SESSION, "claude", Pane("/nowhere", "%1"), PATH, time.time())
    save_request(tmp_path, asked)

    def slowly(state: Path, intent: ClearRequest) -> None:
        time.sleep(0.2 if intent.step == "clearing" else 0.0)
        save_request(state, intent)

    monkeypatch.setattr(clear, "save_request", slowly)

    async def scene() -> None:
        daemon = Daemon(tmp_path)
        await daemon.clearing.load()
        await daemon.clearing.on_turn_end(SESSION)
        await asyncio.sleep(0.05)
        await daemon.clearing.on_prompt(SESSION)
        await asyncio.sleep(0.3)

    play(scene())
    assert outcome(tmp_path) == ("failed", PROMPTED)


def test_killed_while_it_waited(drawn: Make, tmp_path: Path) -> None:
    """Killed before the turn ended: the next one hears of its end, out of the spool."""
    client = drawn()
    save_request(tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time()))
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.clearing.load()
        await daemon.clearing.observe(heard("stopped", is_late=True))
        await daemon.clearing.resume()
        await daemon.hook_after(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_killed_while_it_was_interrupted(drawn: Make, tmp_path: Path) -> None:
    """Killed, and the turn is over without a word of its end: it is not cleared."""
    client, daemon = drawn(), Daemon(tmp_path)
    save_request(tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time()))

    async def scene() -> None:
        await daemon.restarted()
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", INTERRUPTED))


def test_killed_at_every_step(drawn: Make, tmp_path: Path) -> None:
    """Stopped between any two looks and begun again: cleared once, prompted once."""
    client = drawn()
    save_request(tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time()))

    async def life(seconds: float) -> bool:
        daemon = Daemon(tmp_path)
        await daemon.clearing.load()
        await daemon.clearing.on_turn_end(SESSION)
        if "/clear" in client.sent:
            await daemon.clearing.on_cleared(NEXT, client.pane)
        await daemon.clearing.resume()
        try:
            async with asyncio.timeout(seconds):
                await daemon.hook_after(client)
                await daemon.clearing.wait_until_idle()
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
    save_request(
        tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time(), "clearing")
    )
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.restarted()
        await daemon.hook_after(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_killed_after_the_prompt(drawn: Make, tmp_path: Path) -> None:
    """A prompt that is on the screen was typed: it is not typed again."""
    client = drawn()
    client.type(PROMPT)
    client.press("Enter")
    client.until(lambda: client.sent)
    save_request(
        tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time(), "prompting")
    )
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.restarted()
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([PROMPT], ("done", None))


def test_session_that_ended(drawn: Make, tmp_path: Path) -> None:
    """The session is over before its turn ended: what runs in its pane now is not cleared."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_session_end(SESSION)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", SESSION_ENDED)


def test_others_are_not_meant(drawn: Make, tmp_path: Path) -> None:
    """What is told of another session, or another pane, begins and confirms nothing."""
    client, daemon = drawn("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end("other")
        await daemon.clearing.on_cleared("other", Pane(client.socket, "%9"))
        await daemon.clearing.on_session_end("other")
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)
    assert not daemon.clearing.holds_messages("other")


def test_agent_without_a_clear(drawn: Make, tmp_path: Path) -> None:
    """An agent whose clear nobody could confirm is refused, and told what to do instead."""
    client, daemon = drawn(), Daemon(tmp_path)
    with pytest.raises(CommandFailed, match="--spawn"):
        play(daemon.begin(client, "gemini"))
    assert load_requests(tmp_path) == []


def test_document_that_is_gone(drawn: Make, tmp_path: Path) -> None:
    """Nobody could go on from a document that was deleted meanwhile: nothing is cleared."""
    client, daemon = drawn(), Daemon(tmp_path)
    document = replace(DOCUMENT, path=str(tmp_path / "notes.md"))

    async def scene() -> None:
        await daemon.clearing.request_clear(SESSION, "claude", client.pane, document)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", DOCUMENT_GONE)


def test_scrolled_back_when_the_turn_ends(drawn: Make, tmp_path: Path) -> None:
    """The user looks at what was said before: it is waited until the pane shows its end again."""
    client, daemon = drawn(), Daemon(tmp_path)
    client.tmux("copy-mode", "-t", client.pane.id)

    async def scene() -> None:
        await daemon.begin(client)
        await daemon.clearing.on_turn_end(SESSION)
        await asyncio.sleep(10 * QUICK.poll_s)
        client.tmux("send-keys", "-t", client.pane.id, "-X", "cancel")
        await daemon.hook_after(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]
    assert outcome(tmp_path) == ("done", None)


def test_pane_that_is_gone(drawn: Make, tmp_path: Path) -> None:
    """A pane that is gone is a failure that is told, and no crash."""
    client, daemon = drawn(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.begin(client)
        client.tmux("kill-pane", "-t", client.pane.id)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert outcome(tmp_path) == ("failed", STATE_REASONS["unknown"])
