"""One run in a real tmux, as a person at a terminal sees it."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .daemon import FakeDaemon
from .sample_views import scene

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
COLOURS = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[\d;]*)?m")


class Tmux:
    """A tmux server for the test, with one window."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *words: str) -> str:
        """The output of a tmux command."""
        env = {**os.environ, "TMUX_TMPDIR": str(self._folder), "LANG": "C.UTF-8"}
        env.pop("TMUX", None)
        completed = subprocess.run(
            ["tmux", "-u", "-L", "brimline-test", "-f", "/dev/null", *words],
            capture_output=True, text=True, env=env, timeout=PATIENCE_S, check=True,
        )  # fmt: skip
        return completed.stdout

    def start(self, command: str, columns: int, lines: int) -> None:
        """Run a command in a window of a given size."""
        self("new-session", "-d", "-x", str(columns), "-y", str(lines), command)

    def screen(self, colours: bool = False) -> str:
        return self("capture-pane", "-p", *(["-e"] if colours else []))

    def until(self, fits: Callable[[str], object]) -> str:
        """The screen, once it satisfies a condition."""
        end = time.monotonic() + PATIENCE_S
        while not fits(screen := self.screen()):
            assert time.monotonic() < end, screen
            time.sleep(0.1)
        return screen


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        assert os.environ.get("CI") != "true", "install tmux: CI runs this test"
        pytest.skip("install tmux to run the terminal UI in a real terminal")
    server = Tmux(tmp_path_factory.mktemp("t"))
    yield server
    server("kill-server")


def command(daemon: FakeDaemon, home: Path, **env: str) -> str:
    """`brimline watch --all` in a shell that prints the exit code and stays open."""
    variables = {
        "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
        "TERM": "screen-256color", "BRIMLINE_STATE_DIR": str(daemon.socket.parent), **env,
    }  # fmt: skip
    words = " ".join(f"{name}='{value}'" for name, value in variables.items())
    return f"env -i {words} {sys.executable} -m brimline watch --all; echo ended $?; cat"


def ended(screen: str) -> bool:
    return re.search(r"^ended \d", screen, re.MULTILINE) is not None


def test_watch_draws_resizes_and_restores_the_terminal_in_tmux(
    tmux: Tmux, daemon: FakeDaemon, tmp_path: Path
) -> None:
    tmux.start(command(daemon, tmp_path), 80, 24)
    screen = tmux.until(lambda screen: "crawler" in screen and "● live" in screen)
    assert screen.index("crawler") < screen.index("importer") < screen.index("docs-site")
    assert "at limit" in screen
    tmux("send-keys", "j", "j", "j", "Enter")
    tmux.until(lambda screen: "session shop-backend" in screen and "200K ┤" in screen)
    tmux("send-keys", "Escape")
    tmux.until(lambda screen: "▸ Fix the checkout " in screen)
    tmux("resize-window", "-x", "50", "-y", "9")
    tmux.until(lambda screen: "needs 40x10" in screen)
    tmux("resize-window", "-x", "200", "-y", "50")
    tmux.until(lambda screen: "of limit" in screen and "shop-backend" in screen)
    daemon.put(scene()[0] | {"unread": 7})
    tmux.until(lambda screen: re.search(r"docs-site.* 7 ", screen))
    assert COLOURS.search(tmux.screen(colours=True))
    # tmux 3.3a keeps rows of any program's alternate screen that ends in another size.
    tmux("resize-window", "-x", "80", "-y", "24")
    tmux.until(lambda screen: "crawler" in screen and "of limit" not in screen)
    tmux("send-keys", "C-c")
    screen = tmux.until(ended)
    assert "ended 0" in screen
    assert "crawler" not in screen


def test_keys_typed_ahead_are_not_lost(tmux: Tmux, daemon: FakeDaemon, tmp_path: Path) -> None:
    tmux.start(command(daemon, tmp_path), 80, 24)
    tmux.until(lambda screen: "mobile-app" in screen)
    tmux("send-keys", "/", "s", "h", "o", "p", "Enter")
    tmux.until(lambda screen: "filter: shop" in screen)
    tmux("send-keys", "Enter")
    tmux.until(lambda screen: "200K ┤" in screen)
    tmux("send-keys", "-l", "mat once, jkqsu?")
    tmux("send-keys", "Enter")
    tmux.until(lambda screen: "message queued" in screen)
    assert daemon.messages["shop-backend"][-1]["text"] == "at once, jkqsu?"
    tmux("send-keys", "C-c")
    tmux.until(ended)


def test_no_color_prints_no_colours(tmux: Tmux, daemon: FakeDaemon, tmp_path: Path) -> None:
    tmux.start(command(daemon, tmp_path, NO_COLOR="1"), 80, 30)
    screen = tmux.until(lambda screen: "mobile-app" in screen)
    for sign in ("● live", "▸", "╎", "┃", "at limit", "medium", "low", "unknown", "130.0%! over"):
        assert sign in screen
    assert not COLOURS.search(tmux.screen(colours=True))
    tmux("send-keys", "j", "j", "j", "Enter")
    tmux.until(lambda screen: "200K ┤" in screen)
    tmux("send-keys", "m", "h", "i")
    tmux.until(lambda screen: "message: Enter send" in screen)
    assert not COLOURS.search(tmux.screen(colours=True))
    tmux("send-keys", "C-c")
    assert "ended 0" in tmux.until(ended)


def test_c_locale_gets_ascii(tmux: Tmux, daemon: FakeDaemon, tmp_path: Path) -> None:
    tmux.start(command(daemon, tmp_path, LC_ALL="C"), 80, 24)
    screen = tmux.until(lambda screen: "mobile-app" in screen and "* live" in screen)
    steps = (
        ("?", "before the first reply"),
        ("Escape", "mobile-app"),
        ("jjj", ""),
        ("Enter", "200K |"),
    )
    for keys, shown in steps:
        assert screen.isascii()
        tmux("send-keys", keys)
        screen = tmux.until(lambda screen, shown=shown: shown in screen)
    assert screen.isascii()
    tmux("send-keys", "C-c")
    assert "ended 0" in tmux.until(ended)
