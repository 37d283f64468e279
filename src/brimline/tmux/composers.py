"""Where an agent's user types: whether something stands there, seen from the pane alone.

Each client's looks were recorded with the version that tests/clients/versions.toml names. What
looks otherwise, a dialog or a newer client, is unknown, and nobody types into that.
"""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from brimline.tmux.screen import Letter, Screen

State: TypeAlias = Literal["empty", "typed", "busy", "compacting", "scrolled", "unknown"]
"""`busy` and `compacting`: nothing is typed, and the agent is at work, or its client is.
`scrolled`: somebody looks at what was said before, and the composer is not to be seen."""

NEVER = re.compile(r"(?!)")

NEAR = 12
"""So many rows above a composer a client says that it is at work; further up is what was said."""

TALLEST = 60
"""So many rows a composer may have."""


class Composer(msgspec.Struct, frozen=True):
    """What an agent's composer holds; the text without its line breaks' indentation."""

    state: State
    text: str = ""


UNKNOWN, SCROLLED = Composer("unknown"), Composer("scrolled")


class ComposerBox(msgspec.Struct, frozen=True):
    """The rows in which a user types, from `top` to before `bottom`; the text begins at `left`."""

    top: int
    bottom: int
    left: int


class ClientScreen(msgspec.Struct, frozen=True):
    """How one client looks: how its composer is found, what it says above and below when at work.

    `placeholder` is what an empty composer says; None: it is dim. `queued` is said where words wait
    for the agent to read them.
    """

    find: Callable[[Screen], ComposerBox | None]
    above: re.Pattern[str] = NEVER
    below: re.Pattern[str] = NEVER
    compacting: re.Pattern[str] = NEVER
    placeholder: re.Pattern[str] | None = None
    queued: re.Pattern[str] = NEVER


def composer(agent: str, screen: Screen) -> Composer:
    """What an agent's composer holds; unknown where it cannot be told for sure."""
    looks = LOOKS.get(agent)
    box = looks.find(screen) if looks is not None else None
    if looks is None or box is None or not box.top <= screen.y < box.bottom:
        return UNKNOWN
    text = "\n".join(_line(screen, place, box.left) for place in range(box.top, box.bottom))
    if text.strip() and not _placeholder(looks, screen, box, text):
        return Composer("typed", text.strip())
    return Composer(_at_work(looks, screen, box))


def has_queued(agent: str, screen: Screen) -> bool:
    """Whether words that were sent off wait above a composer, until the agent reads them."""
    looks = LOOKS.get(agent)
    box = looks.find(screen) if looks is not None else None
    if looks is None or box is None:
        return False
    rows = screen.rows[max(0, box.top - NEAR) : box.bottom]
    return looks.queued.search("\n".join(row.text for row in rows)) is not None


def _at_work(looks: ClientScreen, screen: Screen, box: ComposerBox) -> State:
    above = "\n".join(row.text for row in screen.rows[max(0, box.top - NEAR) : box.top])
    below = "\n".join(row.text for row in screen.rows[box.bottom :])
    if looks.compacting.search(above):
        return "compacting"
    return "busy" if looks.above.search(above) or looks.below.search(below) else "empty"


def _line(screen: Screen, place: int, left: int) -> str:
    return "".join(letter.char for letter in screen.rows[place].letters if letter.column >= left)


def _placeholder(looks: ClientScreen, screen: Screen, box: ComposerBox, text: str) -> bool:
    """Whether what stands there is the client's own hint: the cursor is before it."""
    if (screen.x, screen.y) != (box.left, box.top):
        return False
    if looks.placeholder is not None:
        return looks.placeholder.fullmatch(text.strip()) is not None
    letters = [one for row in screen.rows[box.top : box.bottom] for one in row.after(box.left)]
    rest = [one for one in letters if not _under_cursor(one, screen)]
    return bool(rest) and all(letter.dim for letter in rest)


def _under_cursor(letter: Letter, screen: Screen) -> bool:
    """The letter below a block cursor is drawn in reverse, and not dim."""
    return letter.column == screen.x and letter in screen.rows[screen.y].letters


def _between(top: str, bottom: str, marker: str) -> Callable[[Screen], ComposerBox | None]:
    """Find a composer between two rows; its first row begins with a marker."""
    above, below, first = re.compile(top), re.compile(bottom), re.compile(marker)

    def find(screen: Screen) -> ComposerBox | None:
        places = range(screen.y, max(0, screen.y - TALLEST), -1)
        start = next((place for place in places if above.fullmatch(screen.row(place - 1))), None)
        ends = range(screen.y + 1, min(len(screen.rows), screen.y + TALLEST))
        end = next((place for place in ends if below.fullmatch(screen.row(place))), None)
        if start is None or end is None:
            return None
        # The text of a row is without the blanks at its end, and a marker may end in one.
        found = first.match(screen.row(start) + " ")
        return ComposerBox(start, end, found.end()) if found else None

    return find


def _codex(screen: Screen) -> ComposerBox | None:
    """Codex: `›` before the text; below it a blank row, then one or two rows to the end."""
    start = screen.y
    while start > screen.y - TALLEST and _INDENTED.fullmatch(screen.row(start)):
        start -= 1
    last = max((i for i, row in enumerate(screen.rows) if row.text), default=0)
    ends = [place for place in (last - 1, last - 2) if not screen.row(place)]
    if not screen.shown or not screen.row(start).startswith("›") or not ends:
        return None
    return ComposerBox(start, ends[-1], 2)


def _opencode(screen: Screen) -> ComposerBox | None:
    """opencode: a bar at the left; below the text a blank row, the agent and its model, a foot."""
    foot = next((p for p in range(screen.y, len(screen.rows)) if _FOOT.match(screen.row(p))), None)
    if foot is None or not _MODEL.match(screen.row(foot - 1)):
        return None
    top = foot
    while _BAR.match(screen.row(top - 1)):
        top -= 1
    bare = screen.row(foot - 2).strip() == "┃" == screen.row(top).strip()
    left = screen.row(foot - 1).index("┃") + 3
    return ComposerBox(top + 1, foot - 2, left) if bare and top + 1 < foot - 2 else None


_BAR = re.compile(r"\s*┃")
_FOOT = re.compile(r"\s*╹▀{10,}$")
_MODEL = re.compile(r"\s*┃  \S.* · \S")
_INDENTED = re.compile(r"(  .*)?")
_RULE = r"─{10,}"
_LABELLED = r"─{2,}.*─"

LOOKS: dict[str, ClientScreen] = {
    "claude": ClientScreen(
        _between(r"─{10,}.*", _RULE, "❯[\N{NO-BREAK SPACE} ]"),
        above=re.compile(r"^[·✢✳✶✻✽*] \w[^…\n]*…( \(.*)?$", re.MULTILINE),
        below=re.compile(r"esc to interrupt"),
        compacting=re.compile(
            r"^\S (Compacting conversation|Running P(re|ost)Compact hooks)", re.MULTILINE
        ),
        queued=re.compile(r"^  \S+( \S+)? to send now$|^❯.Press up to .*queued", re.MULTILINE),
    ),
    "codex": ClientScreen(_codex, above=re.compile(r"^\S \w.*esc to interrupt\)", re.MULTILINE)),
    "gemini": ClientScreen(
        _between(r"▄{10,}", r"▀{10,}", r" [*>] "),
        above=re.compile(r"^ \S .*\(esc to cancel", re.MULTILINE),
        placeholder=re.compile(r"Type your message or @path/to/file"),
    ),
    "pi": ClientScreen(
        _between(_LABELLED, _LABELLED, ""), above=re.compile(r"^──+ [^─↑\s].*─$", re.MULTILINE)
    ),
    "opencode": ClientScreen(
        _opencode,
        below=re.compile(r"esc interrupt"),
        placeholder=re.compile(r"Ask anything\.\.\..*"),
    ),
}
"""By the agent's name."""
