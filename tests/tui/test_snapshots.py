"""Pictures of the screen, compared with those that were looked at.

`BRIMLINE_SNAPSHOTS=write` writes them anew; look at them before they are committed.
"""

import os
from pathlib import Path

import pytest

from .app_driver import Seen, look_at, watch
from .daemon import FakeDaemon
from .svg_snapshot import SNAPSHOTS, neutral, rows


@pytest.mark.parametrize(
    ("name", "size", "colour", "keys", "there"),
    [
        ("overview-80", (80, 24), True, "", "~/mobile-app"),
        ("overview-200", (200, 24), True, "", "~/mobile-app"),
        ("overview-colourless", (80, 24), False, "j", "~/mobile-app"),
        ("filter", (80, 24), True, "slash s h o p", "Enter keep"),
        ("session-80", (80, 24), True, "j j enter", "status line, measured, 12s ago"),
        ("session-200", (200, 50), True, "j j enter", "And run the tests."),
        ("message", (80, 24), True, "j j enter u h i", "urgent message: Enter send"),
        ("help", (80, 40), True, "question_mark", "q, Ctrl-C"),
        ("small", (50, 8), True, "", "needs 60x10"),
    ],
)
def test_screen_matches_its_snapshot(
    daemon: FakeDaemon,
    tmp_path: Path,
    name: str,
    size: tuple[int, int],
    colour: bool,
    keys: str,
    there: str,
) -> None:
    """The screen equals its recorded snapshot."""

    async def test(seen: Seen) -> None:
        await seen.shows("needs" if name == "small" else "~/crawler")
        await seen.press(*keys.split())
        await seen.shows(there)
        if "enter" in keys:
            await seen.until(lambda lines: any("200K ┤" in line for line in lines))
        _check_snapshot(seen.svg, SNAPSHOTS / f"{name}.svg")

    look_at(watch(daemon.socket, tmp_path, colour), test, size)


def _check_snapshot(svg: str, kept: Path) -> None:
    made = neutral(svg)
    if os.environ.get("BRIMLINE_SNAPSHOTS") == "write":
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(made, "utf-8")
    before = kept.read_text("utf-8")
    assert rows(made) == rows(before)
    assert made == before


def test_snapshots_name_no_machine() -> None:
    """No picture has anything of a machine in it, or of another site."""
    kept = sorted(SNAPSHOTS.glob("*.svg"))
    assert len(kept) == 9
    for path in kept:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text.replace("https://www.textualize.io", "")
        assert str(Path.home()) not in text or str(Path.home()) == "/"
