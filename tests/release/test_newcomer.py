"""What a newcomer does: install, look, set up, run an agent, look again; each step is timed."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brimline.testing.fake_model import Reply, Scenario
from clients import claude

from .wheels import MACHINE, manylinux, run, wheel_of

pytestmark = [pytest.mark.slow, pytest.mark.clients]

PROMPT = "Say hello to the newcomer."


class Newcomer:
    """Somebody with uv, Claude Code and an empty home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.home.mkdir()
        self.project = root / "project"
        self.project.mkdir()
        self.times: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Time one step."""
        start = time.monotonic()
        yield
        self.times[name] = time.monotonic() - start

    def install(self, wheel: Path) -> None:
        """`uv tool install`, with the packages that uv has cached."""
        uv = (sys.executable, "-m", "uv")
        cache = run(*uv, "cache", "dir").strip()
        config = os.environ.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))
        places = {"UV_CACHE_DIR": cache, "XDG_CONFIG_HOME": config, "HOME": str(self.home)}
        run(*uv, "tool", "install", "--quiet", "--python", sys.executable, wheel, **places)

    def brimline(self, *arguments: str, code: int = 0) -> str:
        """The output of a command that is found on the PATH."""
        done = subprocess.run(
            ["brimline", *arguments],
            cwd=self.project,
            env={"HOME": str(self.home), "PATH": f"{self.home}/.local/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    def read_page(self) -> tuple[str, list[Any]]:
        """The page behind the link that `brimline open` prints, and the sessions that it shows."""
        link = self.brimline("open", "--print").splitlines()[-1]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(link, timeout=10) as page:
            text = page.read().decode()
        address = json.loads(self.brimline("serve", "--status", "--json"))["address"]
        with opener.open(f"{address}/v1/sessions", timeout=10) as sessions:
            return text, json.load(sessions)


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    """A newcomer whose daemon ends with the test."""
    somebody = Newcomer(tmp_path)
    yield somebody
    if (somebody.home / ".local/bin/brimline").exists():
        somebody.brimline("serve", "--stop", code=2 if "page" not in somebody.times else 0)


def test_newcomer_gets_from_the_wheel_to_the_page(
    newcomer: Newcomer, dist: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with newcomer.step("install"):
        newcomer.install(wheel_of(dist, "brimline", manylinux(MACHINE)))
    with newcomer.step("brimline, without sessions"):
        assert "Next:" in newcomer.brimline()
    with newcomer.step("setup"):
        assert "10 hooks and the status line" in newcomer.brimline("setup", "claude")
    with newcomer.step("a turn of Claude Code"):
        # Without autostart: the daemon would be in the client's own network namespace.
        ran = claude.run_claude(
            Scenario(otherwise=Reply(text="Hello.")),
            newcomer.root,
            PROMPT,
            environment={"BRIMLINE_AUTOSTART": "0"},
        )
    assert ran.exit_code == 0, ran.stderr
    with newcomer.step("brimline"):
        (row,) = json.loads(newcomer.brimline("status", "--json"))
    (billed,) = (one.usage for one in ran.of("main"))
    assert row["sent"] == billed.input + billed.cache_read + billed.cache_write
    with newcomer.step("inspect"):
        assert "1 call" in newcomer.brimline("inspect", row["session_id"][:8])
    with newcomer.step("page"):
        page, sessions = newcomer.read_page()
    assert "<title>Brimline" in page
    assert [view["session"]["id"] for view in sessions] == [row["session_id"]]
    with capsys.disabled():
        print("\n" + "\n".join(f"{took:6.1f} s  {name}" for name, took in newcomer.times.items()))
