"""What the dashboard costs a browser with hundreds of sessions, beside a page that only listens."""

import argparse
import http.client
import itertools
import json
import os
import random
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from serving import serving

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-quic")  # fmt: skip
CORE, FRAME = 50.0, 34.0
"""What is asked of it: per cent of one core; milliseconds, two frames, for 95 of 100 frames."""

SETTLE = 3.0
"""Seconds after which a page that was opened has come to rest."""

BATCH = 10

LISTEN = """() => {
  window.heard = new Map();
  const stream = new EventSource("/v1/stream");
  stream.addEventListener("session", (event) => {
    const view = JSON.parse(event.data);
    window.heard.set(view.session.id, view);
  });
  stream.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    window.heard.set(change.id, { ...window.heard.get(change.id), ...change });
  });
}"""
"""All that any page must do: take the same changes in, and show nothing."""

SCROLL = """(ms) => new Promise((done) => {
  const gaps = [];
  let [begun, last, by] = [0, 0, 24];
  const step = (now) => {
    if (last) gaps.push(now - last);
    begun ||= now;
    last = now;
    const end = document.documentElement.scrollHeight - innerHeight;
    if (scrollY + by < 0 || scrollY + by > end) by = -by;
    scrollBy(0, by);
    if (now - begun < ms) requestAnimationFrame(step);
    else done(gaps);
  };
  requestAnimationFrame(step);
})"""
"""Scrolls by a little each frame, there and back, and gives the times between the frames."""


@dataclass(frozen=True)
class Cost:
    """What a page took: per cent of one core while it stood, and the frames while it scrolled."""

    share: float
    frames: list[float]

    @property
    def late(self) -> float:
        """The time that 95 of 100 frames kept within, in milliseconds."""
        return statistics.quantiles(self.frames, n=20)[-1]


class Feed(threading.Thread):
    """Posts sessions to a daemon: all of them first, then changes at a fixed rate."""

    def __init__(self, port: int, secret: dict[str, str], sessions: int, rate: int) -> None:
        super().__init__(daemon=True)
        self._port, self._secret = port, secret
        self._names = [f"session-{at}" for at in range(sessions)]
        self._rate = rate
        self._numbers = itertools.count()
        self._chance = random.Random(5)
        self._done = threading.Event()
        self._tell(self._names)

    def run(self) -> None:
        """Tell changes until stopped, at an even pace."""
        due = time.monotonic()
        while not self._done.wait(max(0.0, due - time.monotonic())):
            due += BATCH / self._rate
            self._tell(self._chance.sample(self._names, BATCH))

    def stop(self) -> None:
        """End it."""
        self._done.set()
        self.join()

    def _tell(self, names: list[str]) -> None:
        body = json.dumps({"events": [self._event(name) for name in names]})
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        connection.request("POST", "/v1/events", body, self._secret)
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"bench: the daemon answered {answer.status}")
        connection.close()

    def _event(self, name: str) -> dict[str, Any]:
        id = f"c{next(self._numbers)}"
        usage = {"input": 10, "cache_read": self._chance.randrange(200_000), "cache_write": 0,
                 "output": 500}  # fmt: skip
        event = {"type": "Call", "id": id, "usage": usage, "model": "claude-sonnet-4-5"}
        where = {"agent": "claude", "project": f"/work/{name}"}
        return {"id": id, "session": name, "event": {**event, "at": time.time()}, **where}


def browsers() -> list[int]:
    """The processes of the browser that we started."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(stat.parent.name))
    family, found = [os.getpid()], list[int]()
    while family:
        children = parents.get(family.pop(), [])
        family += children
        found += [pid for pid in children if "chrom" in _program(pid)]
    return found


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]
    except OSError:
        return ""


def cpu() -> float:
    """The CPU seconds that the browser has taken so far, all its processes together."""
    total = 0
    for pid in browsers():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def cost(page: Page, seconds: float) -> Cost:
    """Measure a page that was opened."""
    time.sleep(SETTLE)
    before, begun = cpu(), time.monotonic()
    time.sleep(seconds)
    share = (cpu() - before) / (time.monotonic() - begun) * 100
    return Cost(share, page.evaluate(SCROLL, seconds * 500))


@contextmanager
def opened(browser: Browser, address: str, secret: dict[str, str]) -> Generator[Page]:
    """A page in a tab of its own, gone afterwards."""
    size: ViewportSize = {"width": 1280, "height": 800}
    context = browser.new_context(viewport=size, extra_http_headers=secret)
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def measured(
    browser: Browser, port: int, secret: dict[str, str], args: argparse.Namespace
) -> Generator[str]:
    """The lines of the table, the reference first."""
    feed = Feed(port, secret, args.sessions, args.rate)
    with opened(browser, f"http://127.0.0.1:{port}/", secret) as page:
        shown = page.locator('[data-testid="shown"]')
        shown.get_by_text(f"{args.sessions:,} sessions").wait_for(timeout=60_000)
        yield row("our page, nothing changes", cost(page, args.seconds))
    feed.start()
    with opened(browser, f"http://127.0.0.1:{port}/healthz", secret) as page:
        page.evaluate(LISTEN)
        yield row("empty page, listens", cost(page, args.seconds))
    with opened(browser, f"http://127.0.0.1:{port}/", secret) as page:
        shown = page.locator('[data-testid="shown"]')
        shown.get_by_text(f"{args.sessions:,} sessions").wait_for(timeout=60_000)
        yield row("our page", cost(page, args.seconds), judged=True)
    feed.stop()


def row(name: str, cost: Cost, judged: bool = False) -> str:
    """A line of the table."""
    worst, middle = max(cost.frames), statistics.median(cost.frames)
    line = f"{name:28}{cost.share:8.1f} %{middle:10.1f}{cost.late:8.1f}{worst:8.1f} ms"
    holds = "yes" if cost.share <= CORE and cost.late <= FRAME else "NO"
    return f"{line}   <= {CORE:g} %, {FRAME:g} ms: {holds}" if judged else line


def main() -> int:
    """Print the table; fail only where something does not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--rate", type=int, default=50, help="changes a second")
    parser.add_argument("--seconds", type=float, default=10)
    args = parser.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None or not Path("/proc/self/stat").exists():
        print("bench: no chromium on the path, or no /proc; the page is not measured")
        return 0
    print(f"{'of one core; frames':28}{'CPU':>10}{'median':>10}{'95 %':>8}{'worst':>8}")
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        port = _port()
        words = ("-m", "brimline", "serve", "--port", str(port))
        with serving(Path(work), words) as daemon:
            secret = daemon.authorization
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            for line in measured(browser, port, secret, args):
                print(line, flush=True)
            browser.close()
    return 0


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
