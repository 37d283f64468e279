"""`handoff --clear` in a real tmux: driven by hooks, resumed after a restart."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from brimline.agents.observations import Observation, ObservationKind, Pane
from brimline.daemon.tmux import clear
from brimline.daemon.tmux.clear import (
    DOCUMENT_GONE,
    INTERRUPTED,
    NOT_CHANGED,
    PROMPTED,
    SESSION_ENDED,
    ClearTimings,
    SessionClearer,
)
from brimline.daemon.tmux.clear_requests import ClearRequest, ClearStep, load_requests, save_request
from brimline.daemon.tmux.typist import STATE_REASONS, Typist
from brimline.errors import CommandFailed
from brimline.handoff import Document

from .conftest import FakeClient

pytestmark = pytest.mark.slow

MAX_WAIT_S = 300.0
StartClient = Callable[..., FakeClient]
SESSION, NEXT = "11111111-aaaa", "22222222-bbbb"
PATH = "/etc/hosts"  # a short one that is there on every machine
PROMPT = f"Read {PATH} and continue from where you left off."
DOCUMENT = Document.of("The parser is half done.", PATH, 0.0)
# Generous: a busy machine is slow, not wrong. The others are for tests in which a wait must end.
PATIENT = ClearTimings(poll_s=0.05, idle_s=120.0, cleared_s=120.0, interrupted_s=1.0, watch_s=120.0)
SHORT_WATCH = replace(PATIENT, watch_s=1.0)
QUICK = replace(SHORT_WATCH, idle_s=3.0, cleared_s=3.0)
LONG_SETTLE = replace(PATIENT, poll_s=0.4)


class Daemon:
    """One run of the part that clears sessions; it collects the finished requests."""

    def __init__(self, state: Path, timings: ClearTimings = PATIENT) -> None:
        self.finished: list[ClearRequest] = []
        typist = Typist(state, 2.0 if timings is QUICK else MAX_WAIT_S)
        self.clearing = SessionClearer(state, typist, time.time, self._record, timings)

    async def _record(self, intent: ClearRequest) -> None:
        self.finished.append(intent)

    async def request(self, client: FakeClient, agent: str = "claude") -> None:
        await self.clearing.request_clear(SESSION, agent, client.pane, DOCUMENT)

    async def resume(self) -> None:
        """Continue with the requests of an earlier daemon."""
        await self.clearing.load()
        await self.clearing.resume()

    async def report_clear(self, client: FakeClient) -> None:
        """The client's hook: it reports the clear under the next session's id."""
        while "/clear" not in client.sent:
            await asyncio.sleep(0.02)
        await self.clearing.on_cleared(NEXT, client.pane)


def observation(kind: ObservationKind, **more: Any) -> Observation:
    """An observation of the session, now."""
    template = Observation("1-1", "claude", SESSION, kind, time.time())
    return replace(template, **more)


def outcome(state: Path) -> tuple[str, str | None]:
    """The stored step and its reason."""
    (intent,) = load_requests(state)
    return intent.step, intent.why


def play(work: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(MAX_WAIT_S):
            await work

    asyncio.run(main())


def test_last_decision_is_stored_last_even_if_the_disk_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_turn_end_types_clear_then_the_prompt_and_records_the_new_session(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        assert daemon.clearing.holds_messages(SESSION)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.report_clear(client)
        assert daemon.clearing.holds_messages(NEXT)
        await daemon.clearing.wait_until_idle()
        assert not daemon.clearing.holds_messages(SESSION)

    play(scene())
    assert client.sent == ["/clear", PROMPT]
    assert [(i.step, i.after, i.why) for i in daemon.finished] == [("done", NEXT, None)]
    assert outcome(tmp_path) == ("done", None)


def test_hooks_drive_the_clear_and_a_subagent_end_is_no_turn_end(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path, SHORT_WATCH)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.wait_until_idle()
        for each in (observation("ended", thread="agent-1"), observation("ended", session=NEXT)):
            await daemon.clearing.observe(each)
        assert outcome(tmp_path) == ("waiting", None)
        await daemon.clearing.observe(observation("stopped"))
        while outcome(tmp_path) != ("clearing", None):
            await asyncio.sleep(0.01)
        await daemon.clearing.observe(observation("cleared", session=NEXT, pane=client.pane))
        assert daemon.clearing.holds_messages(NEXT)
        await daemon.clearing.close()

    play(scene())


def test_nothing_is_typed_while_the_agent_works(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path, SHORT_WATCH)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("waiting", None)


def test_idle_pane_is_cleared_at_once(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.report_clear(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_turn_that_a_hook_continues_is_awaited_again(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path, QUICK)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("waiting", None))


def test_clear_fails_and_keeps_the_users_input(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client(), Daemon(tmp_path, QUICK)
    client.type("half a thou")
    client.until_composer("claude", "typed")

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.composer("claude").text == "half a thou"
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", STATE_REASONS["typed"])
    assert [intent.step for intent in daemon.finished] == ["failed"]


def test_prompt_is_not_typed_without_the_hook(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client(), Daemon(tmp_path, QUICK)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear"]
    assert outcome(tmp_path)[0] == "failed"


def test_prompt_is_not_typed_if_the_pane_did_not_change(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("keeps"), Daemon(tmp_path, QUICK)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.report_clear(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear"]
    assert outcome(tmp_path) == ("failed", NOT_CHANGED)


def test_client_that_ignores_clear_keeps_its_pane(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("deaf"), Daemon(tmp_path, QUICK)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.composer("claude").state == "empty"
    assert outcome(tmp_path) == ("failed", "the client did not submit the text")


def test_user_prompt_before_the_turn_end_cancels_the_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.observe(observation("prompt"))
        assert not daemon.clearing.has_requests
        client.press("Escape")
        client.until_composer("claude")
        await daemon.clearing.observe(observation("stopped"))
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", PROMPTED))
    assert [intent.why for intent in daemon.finished] == [PROMPTED]


def test_queued_prompt_right_after_the_turn_cancels_the_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client(), Daemon(tmp_path, LONG_SETTLE)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.observe(observation("stopped"))
        while outcome(tmp_path) != ("clearing", None):
            await asyncio.sleep(0.01)
        await daemon.clearing.observe(observation("prompt"))
        await asyncio.sleep(1.5 * LONG_SETTLE.settle_s)

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", PROMPTED))


def test_prompts_of_others_or_older_ones_do_not_cancel_the_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path)
    before = time.time() - 1.0
    observations = (
        observation("prompt", thread="agent-1"),
        observation("prompt", session=NEXT),
        observation("prompt", at=before, is_late=True),
    )

    async def scene() -> None:
        await daemon.request(client)
        for each in observations:
            await daemon.clearing.observe(each)
        await daemon.clearing.close()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)


def test_our_own_prompt_does_not_cancel_the_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    """It may be reported under the old session's id."""
    client, daemon = start_client(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.report_clear(client)
        while PROMPT not in client.sent:
            await asyncio.sleep(0.02)
        await daemon.clearing.observe(observation("prompt", session=NEXT))
        await daemon.clearing.observe(observation("prompt"))
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert outcome(tmp_path) == ("done", None)


def test_spooled_end_of_an_earlier_turn_does_not_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.observe(observation("stopped", at=time.time() - 60.0, is_late=True))
        await asyncio.sleep(0.1)
        await daemon.clearing.close()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)


@pytest.mark.parametrize("step", ["waiting", "clearing"])
def test_prompt_while_the_daemon_was_down_cancels_the_clear(
    start_client: StartClient, tmp_path: Path, step: ClearStep
) -> None:
    client, daemon = start_client(), Daemon(tmp_path)
    request = ClearRequest(
        SESSION, "claude", client.pane, PATH, time.time(), step, rows=("0" * 12,)
    )
    save_request(tmp_path, request)

    async def scene() -> None:
        await daemon.clearing.load()
        for kind in ("stopped", "prompt"):
            await daemon.clearing.observe(observation(kind, is_late=True))
        await daemon.clearing.resume()
        await asyncio.sleep(3 * PATIENT.settle_s)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", PROMPTED))


def test_interrupted_turn_is_not_cleared(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        await asyncio.sleep(PATIENT.settle_s)
        client.press("Escape")
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", INTERRUPTED))
    assert [intent.why for intent in daemon.finished] == [INTERRUPTED]


def test_queued_words_of_the_user_prevent_the_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy", "queued"), Daemon(tmp_path)
    with pytest.raises(CommandFailed, match="not been read yet"):
        play(daemon.request(client))
    assert load_requests(tmp_path) == []


def test_slow_write_does_not_overwrite_a_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ClearRequest(SESSION, "claude", Pane("/nowhere", "%1"), PATH, time.time())
    save_request(tmp_path, request)

    def slowly(state: Path, intent: ClearRequest) -> None:
        time.sleep(0.2 if intent.step == "clearing" else 0.0)
        save_request(state, intent)

    monkeypatch.setattr(clear, "save_request", slowly)

    async def scene() -> None:
        daemon = Daemon(tmp_path, LONG_SETTLE)
        await daemon.clearing.load()
        await daemon.clearing.on_turn_end(SESSION)
        await asyncio.sleep(0.05)
        await daemon.clearing.on_prompt(SESSION)
        await asyncio.sleep(0.3)

    play(scene())
    assert outcome(tmp_path) == ("failed", PROMPTED)


def test_restarted_daemon_clears_after_a_spooled_turn_end(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client()
    save_request(tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time()))
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.clearing.load()
        await daemon.clearing.observe(observation("stopped", is_late=True))
        await daemon.clearing.resume()
        await daemon.report_clear(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_restarted_daemon_does_not_clear_an_interrupted_turn(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client(), Daemon(tmp_path)
    save_request(tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time()))

    async def scene() -> None:
        await daemon.resume()
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([], ("failed", INTERRUPTED))


def test_restarts_at_any_step_clear_and_prompt_once(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client()
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
                await daemon.report_clear(client)
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


def test_restarted_daemon_removes_an_unsubmitted_clear_and_types_it_again(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client()
    client.type("/clear")
    client.until_composer("claude", "typed")
    save_request(
        tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time(), "clearing")
    )
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.resume()
        await daemon.report_clear(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]


def test_restarted_daemon_does_not_repeat_a_visible_prompt(
    start_client: StartClient, tmp_path: Path
) -> None:
    client = start_client()
    client.type(PROMPT)
    client.press("Enter")
    client.until(lambda: client.sent)
    save_request(
        tmp_path, ClearRequest(SESSION, "claude", client.pane, PATH, time.time(), "prompting")
    )
    daemon = Daemon(tmp_path)

    async def scene() -> None:
        await daemon.resume()
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert (client.sent, outcome(tmp_path)) == ([PROMPT], ("done", None))


def test_pane_of_an_ended_session_is_not_cleared(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_session_end(SESSION)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", SESSION_ENDED)


def test_other_sessions_and_panes_neither_start_nor_confirm_a_clear(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client("busy"), Daemon(tmp_path, SHORT_WATCH)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end("other")
        await daemon.clearing.on_cleared("other", Pane(client.socket, "%9"))
        await daemon.clearing.on_session_end("other")
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert outcome(tmp_path) == ("waiting", None)
    assert not daemon.clearing.holds_messages("other")


def test_agent_without_a_confirmable_clear_is_refused_with_a_hint(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client(), Daemon(tmp_path)
    with pytest.raises(CommandFailed, match="--spawn"):
        play(daemon.request(client, "gemini"))
    assert load_requests(tmp_path) == []


def test_deleted_document_prevents_the_clear(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client(), Daemon(tmp_path)
    document = replace(DOCUMENT, path=str(tmp_path / "notes.md"))

    async def scene() -> None:
        await daemon.clearing.request_clear(SESSION, "claude", client.pane, document)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == []
    assert outcome(tmp_path) == ("failed", DOCUMENT_GONE)


def test_scrolled_back_pane_is_cleared_when_it_shows_the_end_again(
    start_client: StartClient, tmp_path: Path
) -> None:
    client, daemon = start_client(), Daemon(tmp_path)
    client.tmux("copy-mode", "-t", client.pane.id)

    async def scene() -> None:
        await daemon.request(client)
        await daemon.clearing.on_turn_end(SESSION)
        await asyncio.sleep(10 * PATIENT.poll_s)
        client.tmux("send-keys", "-t", client.pane.id, "-X", "cancel")
        await daemon.report_clear(client)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert client.sent == ["/clear", PROMPT]
    assert outcome(tmp_path) == ("done", None)


def test_missing_pane_is_a_reported_failure(start_client: StartClient, tmp_path: Path) -> None:
    client, daemon = start_client(), Daemon(tmp_path)

    async def scene() -> None:
        await daemon.request(client)
        client.tmux("kill-pane", "-t", client.pane.id)
        await daemon.clearing.on_turn_end(SESSION)
        await daemon.clearing.wait_until_idle()

    play(scene())
    assert outcome(tmp_path) == ("failed", STATE_REASONS["unknown"])
