"""Typing into a pane of a real tmux: only into an empty composer, and verified."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from brimline.agents.observations import Pane
from brimline.daemon.tmux.pane import lock_pane, pane_from_environment, remove_controls
from brimline.daemon.tmux.typist import MAX_TEXT_CHARS, Typist

from .conftest import FakeClient

pytestmark = pytest.mark.slow

StartClient = Callable[..., FakeClient]


@pytest.fixture
def typist(tmp_path: Path) -> Typist:
    """A typist with a generous timeout: a busy machine is slow, not wrong."""
    return Typist(tmp_path, client_timeout_s=60.0)


@pytest.fixture
def hasty_typist(tmp_path: Path) -> Typist:
    """A typist for clients that do not take a text."""
    return Typist(tmp_path, client_timeout_s=2.0)


def test_text_of_several_lines_is_submitted_as_one(
    start_client: StartClient, typist: Typist
) -> None:
    client = start_client()
    text = "First line.\nSecond line."
    assert asyncio.run(typist.submit(client.pane, "claude", text)).submitted
    assert client.sent == [text]


def test_text_longer_than_the_pane_is_submitted_whole(
    start_client: StartClient, typist: Typist
) -> None:
    client = start_client()
    text = "\n".join(f"This is line {n} of a long text." for n in range(60))
    assert asyncio.run(typist.submit(client.pane, "claude", text)).submitted
    assert client.sent == [text]


def test_text_in_a_small_pane_is_submitted_or_removed(
    start_client: StartClient, typist: Typist
) -> None:
    text = "Read /work/a/folder/far/down/notes.md and continue from where you left off. " * 2
    client = start_client("low", size=(40, 12))
    assert asyncio.run(typist.submit(client.pane, "claude", text)).submitted
    assert client.sent == [text.strip()]


def test_unsubmitted_text_is_removed_from_a_small_pane(
    start_client: StartClient, hasty_typist: Typist
) -> None:
    text = "Read /work/a/folder/far/down/notes.md and continue from where you left off. " * 2
    client = start_client("low", "deaf", size=(40, 12))
    result = asyncio.run(hasty_typist.submit(client.pane, "claude", text))
    assert (result.submitted, result.text_remains) == (False, False)
    assert client.composer("claude").state == "empty"


def test_text_that_lost_its_first_letters_is_not_submitted(
    start_client: StartClient, hasty_typist: Typist
) -> None:
    client = start_client("nibbles")
    result = asyncio.run(
        hasty_typist.submit(client.pane, "claude", "A message that is long enough to tell.")
    )
    assert (result.submitted, result.text_remains) == (False, True)
    assert client.sent == []


def test_nothing_is_typed_over_the_users_input(start_client: StartClient, typist: Typist) -> None:
    client = start_client()
    client.type("half a thou")
    client.until_composer("claude", "typed")
    result = asyncio.run(typist.submit(client.pane, "claude", "A message.", while_busy=True))
    assert (result.submitted, result.reason) == (False, "there is text in the composer")
    assert client.composer("claude").text == "half a thou"
    assert client.sent == []


def test_only_urgent_text_is_typed_while_the_agent_works(
    start_client: StartClient, typist: Typist
) -> None:
    client = start_client("busy")
    assert asyncio.run(typist.submit(client.pane, "claude", "Later.")).reason == "the agent is busy"
    assert asyncio.run(typist.submit(client.pane, "claude", "Now.", while_busy=True)).submitted
    assert client.sent == ["Now."]


def test_nothing_is_typed_during_a_compaction(start_client: StartClient, typist: Typist) -> None:
    client = start_client()
    result = asyncio.run(
        typist.submit(client.pane, "claude", "A message.", is_compacting=lambda: True)
    )
    assert (result.submitted, result.reason) == (False, "the agent is compacting")
    assert client.composer("claude").state == "empty"


def test_composer_that_moves_all_the_time_is_recognised(
    start_client: StartClient, typist: Typist
) -> None:
    client = start_client("restless")
    states = {asyncio.run(typist.view(client.pane, "claude")).composer.state for _ in range(100)}
    assert states == {"empty"}


def test_late_composer_is_awaited(start_client: StartClient, typist: Typist) -> None:
    client = start_client("late")
    assert asyncio.run(typist.submit(client.pane, "claude", "A message.")).submitted
    assert client.sent == ["A message."]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "somebody"])
def test_dialog_or_unknown_screen_is_left_alone(
    start_client: StartClient, typist: Typist, agent: str
) -> None:
    client = start_client("dialog")
    result = asyncio.run(typist.submit(client.pane, agent, "A message.", while_busy=True))
    assert result.reason == "the composer was not recognised"
    assert "A message" not in client.text


def test_unsubmitted_text_is_a_failure_and_removed(
    start_client: StartClient, hasty_typist: Typist
) -> None:
    client = start_client("deaf")
    result = asyncio.run(hasty_typist.submit(client.pane, "claude", "A message."))
    assert (result.submitted, result.text_remains) == (False, False)
    assert client.composer("claude").state == "empty"


def test_ignored_paste_is_a_failure(start_client: StartClient, hasty_typist: Typist) -> None:
    client = start_client("prickly")
    assert not asyncio.run(hasty_typist.submit(client.pane, "claude", "A message.")).submitted
    assert client.sent == []


def test_text_mixed_with_the_users_letters_is_left_unsubmitted(
    start_client: StartClient, hasty_typist: Typist
) -> None:
    client = start_client("meddled")
    result = asyncio.run(hasty_typist.submit(client.pane, "claude", "A message."))
    assert (result.submitted, result.text_remains) == (False, True)
    assert client.composer("claude").text == "xA message."
    assert client.sent == []


def test_scrolled_back_pane_is_left_alone(start_client: StartClient, typist: Typist) -> None:
    client = start_client()
    client.tmux("copy-mode", "-t", client.pane.id)
    result = asyncio.run(typist.submit(client.pane, "claude", "A message."))
    assert (result.submitted, result.reason) == (False, "the pane is scrolled back (copy mode)")
    client.tmux("send-keys", "-t", client.pane.id, "-X", "cancel")
    assert client.composer("claude").state == "empty"


def test_missing_pane_or_server_is_a_failure(start_client: StartClient, typist: Typist) -> None:
    client = start_client()
    gone = Pane(client.socket, "%99")
    assert not asyncio.run(typist.submit(gone, "claude", "A message.")).submitted
    nobody = Pane(f"{client.socket}-not", "%0")
    assert not asyncio.run(typist.submit(nobody, "claude", "A message.")).submitted
    assert asyncio.run(typist.view(nobody, "claude")).screen is None


@pytest.mark.parametrize("text", ["/clear", "!rm x", "#note", "  /quit", "@file"])
def test_message_is_never_a_command_of_the_client(
    start_client: StartClient, typist: Typist, text: str
) -> None:
    client = start_client()
    assert asyncio.run(typist.submit(client.pane, "claude", text)).submitted
    assert client.sent == [f"Message: {text.strip()}"]


def test_escapes_in_a_text_are_removed(start_client: StartClient, typist: Typist) -> None:
    """They could end the paste and press keys."""
    client = start_client()
    assert asyncio.run(typist.submit(client.pane, "claude", "a\x1b[201~\rb\x07c\x9b")).submitted
    assert client.sent == ["a[201~\nbc"]


def test_too_long_text_is_refused(start_client: StartClient, typist: Typist) -> None:
    client = start_client()
    result = asyncio.run(typist.submit(client.pane, "claude", "x" * (MAX_TEXT_CHARS + 1)))
    assert (result.submitted, client.composer("claude").state) == (False, "empty")


def test_two_texts_for_one_pane_are_typed_one_after_the_other(
    start_client: StartClient, typist: Typist
) -> None:
    client = start_client()

    async def both() -> None:
        texts = ("The first text.", "The second text.")
        results = await asyncio.gather(
            *(typist.submit(client.pane, "claude", text) for text in texts)
        )
        assert all(result.submitted for result in results)

    asyncio.run(both())
    assert sorted(client.sent) == ["The first text.", "The second text."]


def test_pane_locked_by_another_process_is_refused_until_it_ends(tmp_path: Path) -> None:
    pane = Pane("/tmp/nobody", "%1")
    with lock_pane(pane, tmp_path, 1.0):
        pass
    (lock,) = tmp_path.glob("pane-*.lock")
    script = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print(1, flush=True); "
    words = [sys.executable, "-c", f"{script}sys.stdin.read()", str(lock)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(TimeoutError), lock_pane(pane, tmp_path, 0.1):
            pass
        other.communicate()
    with lock_pane(pane, tmp_path, 1.0):
        handle = os.open(lock, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(handle)


def test_no_file_or_tmux_buffer_keeps_the_text(
    start_client: StartClient, typist: Typist, tmp_path: Path
) -> None:
    client = start_client()
    asyncio.run(typist.submit(client.pane, "claude", "A secret."))
    left = [path.name for path in tmp_path.iterdir() if path.name != "sent.jsonl"]
    assert [name.partition("-")[0] for name in left] == ["pane"]
    assert client.tmux("list-buffers") == ""


@pytest.mark.parametrize(
    ("tmux_variable", "pane", "expected"),
    [
        ("/tmp/tmux-0/default,812,0", "%3", Pane("/tmp/tmux-0/default", "%3")),
        ("/tmp/a,b/x,812,0", "%12", Pane("/tmp/a,b/x", "%12")),
        ("/tmp/tmux-0/default,812,0", "", None),
        ("/tmp/tmux-0/default,812,0", "3; kill-server", None),
        ("relative,1,0", "%3", None),
        ("", "%3", None),
        (",812,0", "%3", None),
        ("nonsense", "%3", None),
    ],
)
def test_pane_comes_from_valid_tmux_variables_only(
    tmux_variable: str, pane: str, expected: Pane | None
) -> None:
    assert pane_from_environment({"TMUX": tmux_variable, "TMUX_PANE": pane}) == expected


def test_no_pane_outside_tmux() -> None:
    assert pane_from_environment({}) is None
    assert pane_from_environment({"TMUX": "/tmp/tmux-0/default,812,0"}) is None
    assert pane_from_environment({"TMUX_PANE": "%3"}) is None


def test_control_characters_are_removed_and_line_breaks_kept() -> None:
    assert remove_controls("a\x1b]9;x\x07\r\nb\tc\x85é") == "a]9;x\nb   cé"
