"""Typing into a pane of a real tmux: only into an empty composer, and only what is seen to land."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from brimline.observations import Pane
from brimline.tmux.pane import lock_pane, pane_from_environment, remove_controls
from brimline.tmux.typist import MAX_TEXT_CHARS, Typist

from .conftest import Drawn

pytestmark = pytest.mark.slow

Make = Callable[..., Drawn]


@pytest.fixture
def tmux(tmp_path: Path) -> Typist:
    """Ours, with a short patience for what never comes."""
    return Typist(tmp_path, client_timeout_s=2.0)


def test_text_is_sent_off(drawn: Make, tmux: Typist) -> None:
    """A text of several lines arrives as one, and is said to be delivered."""
    client = drawn()
    text = "First line.\nSecond line."
    assert asyncio.run(tmux.submit(client.pane, "claude", text)).submitted
    assert client.sent == [text]


def test_long_text(drawn: Make, tmux: Typist) -> None:
    """A text that is longer than the pane shows arrives whole, by its end."""
    client = drawn()
    text = "\n".join(f"This is line {n} of a long text." for n in range(60))
    assert asyncio.run(tmux.submit(client.pane, "claude", text)).submitted
    assert client.sent == [text]


def test_low_composer(drawn: Make, tmux: Typist) -> None:
    """In a small pane a composer shows the end of a text alone: it arrives, or is taken back."""
    text = "Read /work/a/folder/far/down/notes.md and continue from where you left off. " * 2
    client = drawn("low", size=(40, 12))
    assert asyncio.run(tmux.submit(client.pane, "claude", text)).submitted
    assert client.sent == [text.strip()]


def test_low_composer_not_sent_off(drawn: Make, tmux: Typist) -> None:
    """What a small pane does not send off is removed there too, though its beginning is hidden."""
    text = "Read /work/a/folder/far/down/notes.md and continue from where you left off. " * 2
    client = drawn("low", "deaf", size=(40, 12))
    told = asyncio.run(tmux.submit(client.pane, "claude", text))
    assert (told.submitted, told.text_remains) == (False, False)
    assert client.composer("claude").state == "empty"


def test_beginning_that_was_not_taken(drawn: Make, tmux: Typist) -> None:
    """A composer that lost the first letters holds another text: it is not sent off."""
    client = drawn("nibbles")
    told = asyncio.run(tmux.submit(client.pane, "claude", "A message that is long enough to tell."))
    assert (told.submitted, told.text_remains) == (False, True)
    assert client.sent == []


def test_never_over_typed_words(drawn: Make, tmux: Typist) -> None:
    """Where the user has typed something nothing is typed, and their words stay as they are."""
    client = drawn()
    client.type("half a thou")
    client.until_composer("claude", "typed")
    told = asyncio.run(tmux.submit(client.pane, "claude", "A message.", while_busy=True))
    assert (told.submitted, told.reason) == (False, "there is text in the composer")
    assert client.composer("claude").text == "half a thou"
    assert client.sent == []


def test_at_work(drawn: Make, tmux: Typist) -> None:
    """While the agent is at work only what is urgent is typed."""
    client = drawn("busy")
    assert asyncio.run(tmux.submit(client.pane, "claude", "Later.")).reason == "the agent is busy"
    assert asyncio.run(tmux.submit(client.pane, "claude", "Now.", while_busy=True)).submitted
    assert client.sent == ["Now."]


def test_never_during_a_compaction(drawn: Make, tmux: Typist) -> None:
    """What the daemon knows to be compacting is not typed into, whatever its pane shows."""
    client = drawn()
    told = asyncio.run(tmux.submit(client.pane, "claude", "A message.", is_compacting=lambda: True))
    assert (told.submitted, told.reason) == (False, "the agent is compacting")
    assert client.composer("claude").state == "empty"


def test_cursor_and_rows_of_one_moment(drawn: Make, tmux: Typist) -> None:
    """A client that draws itself higher or lower while it is looked at is recognised."""
    client = drawn("restless")
    states = {asyncio.run(tmux.view(client.pane, "claude")).composer.state for _ in range(100)}
    assert states == {"empty"}


def test_half_drawn(drawn: Make, tmux: Typist) -> None:
    """A client whose composer comes a moment later is not given up."""
    client = drawn("late")
    assert asyncio.run(tmux.submit(client.pane, "claude", "A message.")).submitted
    assert client.sent == ["A message."]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "somebody"])
def test_unknown_is_not_typed_into(drawn: Make, tmux: Typist, agent: str) -> None:
    """A dialog, and a pane that looks like no composer of the agent, is left alone."""
    client = drawn("dialog")
    told = asyncio.run(tmux.submit(client.pane, agent, "A message.", while_busy=True))
    assert told.reason == "the composer was not recognised"
    assert "A message" not in client.shown


def test_not_sent_off(drawn: Make, tmux: Typist) -> None:
    """A client that does not take Enter is no success, and the pane is as it was."""
    client = drawn("deaf")
    told = asyncio.run(tmux.submit(client.pane, "claude", "A message."))
    assert (told.submitted, told.text_remains) == (False, False)
    assert client.composer("claude").state == "empty"


def test_not_taken(drawn: Make, tmux: Typist) -> None:
    """A client that takes no paste is no success."""
    client = drawn("prickly")
    assert not asyncio.run(tmux.submit(client.pane, "claude", "A message.")).submitted
    assert client.sent == []


def test_somebody_types_meanwhile(drawn: Make, tmux: Typist) -> None:
    """Where the user's letters came between nothing is sent off, and nothing of theirs removed."""
    client = drawn("meddled")
    told = asyncio.run(tmux.submit(client.pane, "claude", "A message."))
    assert (told.submitted, told.text_remains) == (False, True)
    assert client.composer("claude").text == "xA message."
    assert client.sent == []


def test_scrolled_back(drawn: Make, tmux: Typist) -> None:
    """A pane that the user scrolls back in is left alone."""
    client = drawn()
    client.tmux("copy-mode", "-t", client.pane.id)
    told = asyncio.run(tmux.submit(client.pane, "claude", "A message."))
    assert (told.submitted, told.reason) == (False, "the pane is scrolled back (copy mode)")
    client.tmux("send-keys", "-t", client.pane.id, "-X", "cancel")
    assert client.composer("claude").state == "empty"


def test_pane_that_is_gone(drawn: Make, tmux: Typist) -> None:
    """A pane or a server that is gone is an answer, and no crash."""
    client = drawn()
    gone = Pane(client.socket, "%99")
    assert not asyncio.run(tmux.submit(gone, "claude", "A message.")).submitted
    nobody = Pane(f"{client.socket}-not", "%0")
    assert not asyncio.run(tmux.submit(nobody, "claude", "A message.")).submitted
    assert asyncio.run(tmux.view(nobody, "claude")).screen is None


@pytest.mark.parametrize("text", ["/clear", "!rm x", "#note", "  /quit", "@file"])
def test_text_is_no_command(drawn: Make, tmux: Typist, text: str) -> None:
    """A message is words to the agent: it is never a command to its client."""
    client = drawn()
    assert asyncio.run(tmux.submit(client.pane, "claude", text)).submitted
    assert client.sent == [f"Message: {text.strip()}"]


def test_text_cannot_leave_its_paste(drawn: Make, tmux: Typist) -> None:
    """Escape sequences in a text are not passed on: they could end the paste, and press keys."""
    client = drawn()
    assert asyncio.run(tmux.submit(client.pane, "claude", "a\x1b[201~\rb\x07c\x9b")).submitted
    assert client.sent == ["a[201~\nbc"]


def test_text_that_is_too_long(drawn: Make, tmux: Typist) -> None:
    """More than can be seen to arrive is refused before it is typed."""
    client = drawn()
    told = asyncio.run(tmux.submit(client.pane, "claude", "x" * (MAX_TEXT_CHARS + 1)))
    assert (told.submitted, client.composer("claude").state) == (False, "empty")


def test_two_at_once(drawn: Make, tmux: Typist) -> None:
    """Two texts for one pane are typed one after the other."""
    client = drawn()

    async def both() -> None:
        texts = ("The first text.", "The second text.")
        told = await asyncio.gather(*(tmux.submit(client.pane, "claude", text) for text in texts))
        assert all(one.submitted for one in told)

    asyncio.run(both())
    assert sorted(client.sent) == ["The first text.", "The second text."]


def test_lock_over_processes(tmp_path: Path) -> None:
    """A pane that another process holds is not had; when that process ends, it is."""
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


def test_nothing_is_left_behind(drawn: Make, tmux: Typist, tmp_path: Path) -> None:
    """The text is in no file and in no buffer of tmux when it was typed."""
    client = drawn()
    asyncio.run(tmux.submit(client.pane, "claude", "A secret."))
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
def test_pane_of_environment(tmux_variable: str, pane: str, expected: Pane | None) -> None:
    """The variables of tmux name the pane; other values name none."""
    assert pane_from_environment({"TMUX": tmux_variable, "TMUX_PANE": pane}) == expected


def test_no_pane_outside_tmux() -> None:
    assert pane_from_environment({}) is None
    assert pane_from_environment({"TMUX": "/tmp/tmux-0/default,812,0"}) is None
    assert pane_from_environment({"TMUX_PANE": "%3"}) is None


def test_plain() -> None:
    """What a terminal would obey is taken out; line breaks and letters stay."""
    assert remove_controls("a\x1b]9;x\x07\r\nb\tc\x85é") == "a]9;x\nb   cé"
