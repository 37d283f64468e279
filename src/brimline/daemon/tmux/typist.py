"""Type into an agent's tmux pane: never over the user's text, and verify every step."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.agents.observations import Pane
from brimline.daemon.tmux.pane import TmuxPane, lock_pane, remove_controls
from brimline.daemon.tmux.screen import (
    SCROLLED,
    UNKNOWN,
    Composer,
    ComposerState,
    Screen,
    read_composer,
)
from brimline.errors import CommandFailed

MAX_TEXT_CHARS = 20_000  # no client shows enough of a longer text to verify it
CLIENT_TIMEOUT_S = 5.0  # to show a pasted text, and again to submit it
LOCK_TIMEOUT_S = 10.0
POLL_S = 0.05
DRAW_S = 0.5  # a composer that is not recognised may be half drawn
ENTER_DELAY_S = 0.6  # Gemini CLI takes an Enter within 0.5 s of a paste as part of it
SCROLL_S = 1.0  # after this the end of a text is accepted as proof: composers scroll
PROOF_CHARS = 200  # the end that must be visible when the whole text is not
SCROLLED_PROOF_CHARS = 20  # the same in a composer of few rows, if whole rows are hidden

_FOLDED_PASTE = re.compile(r"\[[Pp]asted?\b[^\]\n]*\]")  # how clients show a long paste
_PLAIN_START = re.compile(r"[\w\"'(\[]")

STATE_REASONS = {
    "typed": "there is text in the composer",
    "busy": "the agent is busy",
    "compacting": "the agent is compacting",
    "scrolled": "the pane is scrolled back (copy mode)",
    "unknown": "the composer was not recognised",
}


class SubmitResult(msgspec.Struct, frozen=True):
    """Whether the client submitted a text; `text_remains`: our text is still in its composer."""

    submitted: bool
    reason: str | None = None
    text_remains: bool = False


class PaneView(msgspec.Struct, frozen=True):
    """A pane's composer and screen; no screen in copy mode, or if the pane is gone."""

    composer: Composer
    screen: Screen | None = None

    @property
    def is_gone(self) -> bool:
        return self.screen is None and self.composer == UNKNOWN


class Typist:
    """Reads and types into panes; `state` is the folder of the pane locks."""

    def __init__(self, state: Path, client_timeout_s: float = CLIENT_TIMEOUT_S) -> None:
        self._state, self._timeout_s = state, client_timeout_s

    async def view(self, pane: Pane, agent: str) -> PaneView:
        """Return what a pane shows now; an unknown composer if the pane or tmux is gone."""
        try:
            return await asyncio.to_thread(view_pane, TmuxPane(pane, self._state), agent)
        except CommandFailed:
            return PaneView(UNKNOWN)

    async def submit(
        self,
        pane: Pane,
        agent: str,
        text: str,
        *,
        is_command: bool = False,
        while_busy: bool = False,
        is_compacting: Callable[[], bool] = lambda: False,
    ) -> SubmitResult:
        """Type a text into an empty composer and submit it.

        Unless `is_command`, the text is a message and never runs one of the client's commands.
        `is_compacting` is asked just before the text is typed.
        """
        if not is_command:
            text = remove_controls(text).strip()
            text = text if _PLAIN_START.match(text) else f"Message: {text}"
        if len(text) > MAX_TEXT_CHARS:
            return SubmitResult(False, f"the text has more than {MAX_TEXT_CHARS:,} characters")

        def submit() -> SubmitResult:
            with lock_pane(pane, self._state, LOCK_TIMEOUT_S) as locked:
                state = _drawn_state(locked, agent)
                if state != "empty" and not (while_busy and state == "busy"):
                    return SubmitResult(False, STATE_REASONS[state])
                if is_compacting():
                    return SubmitResult(False, STATE_REASONS["compacting"])
                return _Submission(locked, agent, text, self._timeout_s).run()

        try:
            return await asyncio.to_thread(submit)
        except TimeoutError:
            return SubmitResult(False, "another process is typing into the pane")
        except CommandFailed as error:
            return SubmitResult(False, f"tmux: {error.reason}")

    async def retract(self, pane: Pane, agent: str, text: str) -> bool:
        """Delete a text of ours from a composer that contains nothing else; False if it did not."""

        def retract() -> bool:
            with lock_pane(pane, self._state, LOCK_TIMEOUT_S) as locked:
                return _Submission(locked, agent, text, self._timeout_s).retract()

        try:
            return await asyncio.to_thread(retract)
        except (TimeoutError, CommandFailed):
            return False


class _Submission:
    """One text on its way into a locked pane."""

    def __init__(self, pane: TmuxPane, agent: str, text: str, timeout_s: float) -> None:
        self._pane, self._agent, self._text, self._timeout_s = pane, agent, text, timeout_s
        self._started = time.monotonic()

    def run(self) -> SubmitResult:
        """Paste the text, verify that the composer contains it alone, submit, verify again."""
        self._pane.paste(self._text)
        if not self._wait_until(self._is_pasted):
            reason = "the composer does not contain exactly the pasted text"
            return SubmitResult(False, reason, text_remains=not self.retract())
        time.sleep(ENTER_DELAY_S)
        for _ in range(2):
            self._pane.press("Enter")
            if self._wait_until(self._is_gone, share=0.5):
                return SubmitResult(True)
            if not self._is_in_composer():
                break
        return SubmitResult(False, "the client did not submit the text", not self.retract())

    def retract(self) -> bool:
        """Delete the text with Backspace, unless the composer contains anything else."""
        if not self._is_in_composer():
            return False
        # An Enter that did not submit may have become a line break.
        self._pane.press("BSpace", len(self._text) + 2)
        return self._wait_until(self._is_gone)

    def _is_in_composer(self) -> bool:
        composer = view_pane(self._pane, self._agent).composer
        return composer.state == "typed" and (
            _is_same(composer.text, self._text) or _is_scrolled_end(composer.text, self._text)
        )

    def _is_pasted(self) -> bool:
        if self._is_in_composer():
            return True
        if time.monotonic() - self._started < SCROLL_S or len(self._text) <= PROOF_CHARS:
            return False
        screen = self._pane.capture()
        return screen is not None and _ends_at_cursor(screen, self._text)

    def _is_gone(self) -> bool:
        state = view_pane(self._pane, self._agent).composer.state
        return state in ("empty", "busy", "compacting")

    def _wait_until(self, condition: Callable[[], bool], share: float = 1.0) -> bool:
        end = time.monotonic() + self._timeout_s * share
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(POLL_S)
        return True


def view_pane(pane: TmuxPane, agent: str) -> PaneView:
    """Capture a pane and read its composer; raises CommandFailed."""
    screen = pane.capture()
    return PaneView(SCROLLED if screen is None else read_composer(agent, screen), screen)


def _drawn_state(pane: TmuxPane, agent: str) -> ComposerState:
    end = time.monotonic() + DRAW_S
    while (state := view_pane(pane, agent).composer.state) == "unknown" and time.monotonic() < end:
        time.sleep(POLL_S)
    return state


def _is_same(shown: str, text: str) -> bool:
    """Whether a composer shows a text: it wraps lines anywhere, and may fold a long paste."""
    if _FOLDED_PASTE.fullmatch(shown.strip()):
        return len(text) > PROOF_CHARS or "\n" in text
    return remove_blanks(shown) == remove_blanks(text)


def _is_scrolled_end(shown: str, text: str) -> bool:
    """Whether a composer of few rows shows the end of a text, with a row or more hidden."""
    end, whole = remove_blanks(shown), remove_blanks(text)
    first_row = remove_blanks(shown.partition("\n")[0])
    hidden = len(whole) - len(end)
    is_long_enough = len(end) >= SCROLLED_PROOF_CHARS and hidden >= len(first_row) // 2
    return is_long_enough and whole.endswith(end)


def _ends_at_cursor(screen: Screen, text: str) -> bool:
    cells = screen.rows[screen.cursor_y].cells
    before = "".join(cell.char for cell in cells if cell.column < screen.cursor_x)
    shown = screen.rows_text(0, screen.cursor_y) + before
    return remove_blanks(shown).endswith(remove_blanks(text)[-PROOF_CHARS:])


def remove_blanks(text: str) -> str:
    return "".join(text.split())
