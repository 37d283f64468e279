"""Typing into an agent's tmux pane: never over somebody's words, and never on trust."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from brimline.errors import CommandFailed
from brimline.observations import Pane
from brimline.tmux.composers import SCROLLED, UNKNOWN, Composer, State, composer
from brimline.tmux.pane import Held, PaneTaken, held, plain
from brimline.tmux.screen import Screen

LONGEST = 20_000
"""A text of more characters is not typed: no client shows enough of it to see what it took."""

PATIENCE = 5.0
"""So many seconds the client has to show what was pasted, and again to take it."""

LOCKED = 10.0
"""So many seconds another process may hold the pane."""

EVERY = 0.05
"""How often a pane is looked at while something is waited for."""

PAUSE = 0.6
"""So many seconds after a paste Enter is pressed: Gemini CLI takes one within 0.5 s for a part of
the paste."""

SETTLED = 1.0
"""After so many seconds less than the whole text is proof enough: composers scroll."""

DRAWN = 0.5
"""So many seconds a client may take to draw itself, before nobody recognises its composer."""

PROOF = 200
"""So many of the last characters are looked for, where the whole text cannot be seen."""

SCROLLED_END = 20
"""So many letters of the end of a text are proof of all of it, where whole rows before them went
out of a composer that is low."""

_FOLDED = re.compile(r"\[[Pp]asted?\b[^\]\n]*\]")
"""How clients show a paste that is too long for their composer."""

_WORDY = re.compile(r"[\w\"'(\[]")

WHY = {
    "typed": "something is typed in its composer",
    "busy": "it is at work",
    "compacting": "it is compacting",
    "scrolled": "somebody scrolls back in its pane",
    "unknown": "its composer cannot be recognised",
}


class Typed(msgspec.Struct, frozen=True):
    """Whether an agent took what was typed, and why not; `left`: what we typed is still there."""

    done: bool
    why: str | None = None
    left: bool = False


class Looked(msgspec.Struct, frozen=True):
    """A pane at a moment, and the composer in it; no screen where that is not to be seen."""

    composer: Composer
    screen: Screen | None = None

    @property
    def is_gone(self) -> bool:
        """Whether there is no pane any more."""
        return self.screen is None and self.composer == UNKNOWN


class Tmux:
    """The agents' panes; `state` is the folder of the locks that its processes share."""

    def __init__(self, state: Path, patience: float = PATIENCE) -> None:
        self._state = state
        self._patience = patience

    async def look(self, pane: Pane, agent: str) -> Looked:
        """How a pane is now; an unknown composer where it is gone, or there is no tmux."""
        return await asyncio.to_thread(self._look, pane, agent)

    async def tell(
        self,
        pane: Pane,
        agent: str,
        text: str,
        *,
        urgent: bool = False,
        compacting: Callable[[], bool] = lambda: False,
    ) -> Typed:
        """Tell an agent something, by its composer; what is `urgent` also while it is at work.

        A text is words, never one of the client's commands. `compacting` is asked last of all.
        """
        words = plain(text).strip()
        if not _WORDY.match(words):
            words = f"Message: {words}"
        return await asyncio.to_thread(self._type, pane, agent, words, urgent, compacting)

    async def command(self, pane: Pane, agent: str, text: str) -> Typed:
        """Give the client one of its own commands, such as `/clear`, while it is idle."""
        return await asyncio.to_thread(self._type, pane, agent, text, False, lambda: False)

    async def take_back(self, pane: Pane, agent: str, text: str) -> bool:
        """Remove a text of ours from a composer that holds nothing else; whether it was there."""
        return await asyncio.to_thread(self._take_back, pane, agent, text)

    def _look(self, pane: Pane, agent: str) -> Looked:
        try:
            return looked(Held(pane, self._state), agent)
        except CommandFailed:
            return Looked(UNKNOWN)

    def _type(
        self, pane: Pane, agent: str, text: str, urgent: bool, compacting: Callable[[], bool]
    ) -> Typed:
        if len(text) > LONGEST:
            return Typed(False, f"it has more than {LONGEST:,} characters")
        try:
            with held(pane, self._state, LOCKED) as ours:
                state = _settled(ours, agent)
                if state != "empty" and not (urgent and state == "busy"):
                    return Typed(False, WHY[state])
                if compacting():
                    return Typed(False, WHY["compacting"])
                return _Typing(ours, agent, text, self._patience).run()
        except PaneTaken:
            return Typed(False, "another process types into its pane")
        except CommandFailed as error:
            return Typed(False, f"tmux: {error.reason}")

    def _take_back(self, pane: Pane, agent: str, text: str) -> bool:
        try:
            with held(pane, self._state, LOCKED) as ours:
                typing = _Typing(ours, agent, text, self._patience)
                return typing.there() and typing.take_back()
        except (PaneTaken, CommandFailed):
            return False


class _Typing:
    """One text on its way into a pane that is held."""

    def __init__(self, pane: Held, agent: str, text: str, patience: float) -> None:
        self._pane, self._agent, self._text = pane, agent, text
        self._patience = patience
        self._begun = time.monotonic()

    def run(self) -> Typed:
        """Paste it, see that the composer has it and nothing else, send it off, see it gone."""
        self._pane.paste(self._text)
        if not self._until(self._shown):
            return Typed(False, "its composer did not take the text alone", self._left())
        time.sleep(PAUSE)
        for _ in range(2):
            self._pane.press("Enter")
            if self._until(self._gone, share=0.5):
                return Typed(True)
            if not self.there():
                break
        return Typed(False, "it did not send the text off", self._left())

    def take_back(self) -> bool:
        """Remove the text again, as somebody would who deletes each letter."""
        # An Enter that was not obeyed may have become a line break.
        self._pane.press("BSpace", len(self._text) + 2)
        return self._until(self._gone)

    def there(self) -> bool:
        """Whether the composer holds the whole text, or what the client shows for it."""
        now = looked(self._pane, self._agent).composer
        return now.state == "typed" and (
            _same(now.text, self._text) or _scrolled(now.text, self._text)
        )

    def _left(self) -> bool:
        """Whether the text stays; it is removed where nobody wrote beside it."""
        return not (self.there() and self.take_back())

    def _shown(self) -> bool:
        if self.there():
            return True
        if time.monotonic() - self._begun < SETTLED:
            return False
        screen = self._pane.look()
        return screen is not None and len(self._text) > PROOF and _ends_with(screen, self._text)

    def _gone(self) -> bool:
        return looked(self._pane, self._agent).composer.state in ("empty", "busy", "compacting")

    def _until(self, fits: Callable[[], bool], share: float = 1.0) -> bool:
        end = time.monotonic() + self._patience * share
        while not fits():
            if time.monotonic() > end:
                return False
            time.sleep(EVERY)
        return True


def _settled(pane: Held, agent: str) -> State:
    """How its composer is; one that cannot be recognised may be half drawn."""
    end = time.monotonic() + DRAWN
    while (state := looked(pane, agent).composer.state) == "unknown" and time.monotonic() < end:
        time.sleep(EVERY)
    return state


def looked(pane: Held, agent: str) -> Looked:
    """How a pane is that is held."""
    screen = pane.look()
    return Looked(SCROLLED if screen is None else composer(agent, screen), screen)


def _same(shown: str, text: str) -> bool:
    """Whether a composer shows a text; it breaks lines where it likes, and folds what is long."""
    if _FOLDED.fullmatch(shown.strip()):
        return len(text) > PROOF or "\n" in text
    return squeezed(shown) == squeezed(text)


def _scrolled(shown: str, text: str) -> bool:
    """Whether a low composer shows the end of a text; what is hidden is a row or more of it."""
    end, whole = squeezed(shown), squeezed(text)
    row = squeezed(shown.partition("\n")[0])
    hidden = len(whole) - len(end)
    return len(end) >= SCROLLED_END and hidden >= len(row) // 2 and whole.endswith(end)


def _ends_with(screen: Screen, text: str) -> bool:
    """Whether the end of a text stands before the cursor."""
    above = [row.text for row in screen.rows[: screen.y]]
    here = "".join(one.char for one in screen.rows[screen.y].letters if one.column < screen.x)
    return squeezed("".join([*above, here])).endswith(squeezed(text)[-PROOF:])


def squeezed(text: str) -> str:
    """A text without its blanks and line breaks."""
    return "".join(text.split())
