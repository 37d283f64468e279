"""Screenshots, compared with reviewed ones.

`BRIMLINE_SNAPSHOTS=write` writes them again; look at them before they are committed.
"""

import os
from pathlib import Path

import pytest

from .app_driver import AppDriver, drive, watch
from .daemon import FakeDaemon
from .svg_snapshot import SNAPSHOTS, neutral, rows


@pytest.mark.parametrize(
    ("name", "size", "colour", "keys", "there"),
    [
        ("overview-40", (40, 15), True, "", "crawler "),
        ("overview-60", (60, 24), True, "", "mobile-app "),
        ("overview-80", (80, 24), True, "", "~/mobile-app"),
        ("overview-120", (120, 40), True, "", "~/mobile-app"),
        ("overview-200", (200, 24), True, "", "~/mobile-app"),
        ("overview-colourless", (80, 24), False, "j", "~/mobile-app"),
        ("filter", (80, 24), True, "slash s h o p", "Enter keep"),
        ("session-40", (40, 45), True, "j j j enter", "cycle 1"),
        ("session-120", (120, 30), True, "j j j enter", "status line, measured, 12s ago"),
        ("session-80", (80, 24), True, "j j j enter", "status line, measured, 12s ago"),
        ("session-200", (200, 50), True, "j j j enter", "And run the tests."),
        ("explanation-40", (40, 45), True, "j j j enter e", "$0.31"),
        ("explanation-80", (80, 40), True, "j j j enter e", "$0.31"),
        ("explanation-colourless", (120, 40), False, "j j j enter e", "$0.31"),
        ("message", (80, 24), True, "j j j enter u h i", "urgent message: Enter send"),
        ("help", (80, 40), True, "question_mark", "q, Ctrl-C"),
        ("small", (30, 8), True, "", "needs 40x10"),
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
    async def test(app: AppDriver) -> None:
        await app.shows("needs" if name == "small" else "crawler ")
        await app.press(*keys.split())
        await app.shows(there)
        if "enter" in keys and not keys.endswith("e"):
            await app.until(lambda lines: any("200K ┤" in line for line in lines))
        _check_snapshot(app.svg, SNAPSHOTS / f"{name}.svg")

    drive(watch(daemon.socket, tmp_path, colour), test, size)


def _check_snapshot(svg: str, recorded: Path) -> None:
    current = neutral(svg)
    if os.environ.get("BRIMLINE_SNAPSHOTS") == "write":
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(current, "utf-8")
    before = recorded.read_text("utf-8")
    assert rows(current) == rows(before)
    assert current == before


def test_snapshots_name_no_machine() -> None:
    snapshots = sorted(SNAPSHOTS.glob("*.svg"))
    assert len(snapshots) == 17
    for path in snapshots:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text.replace("https://www.textualize.io", "")
        assert str(Path.home()) not in text or str(Path.home()) == "/"
