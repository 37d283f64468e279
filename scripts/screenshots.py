"""Take the pictures of the page for README and docs: `python scripts/screenshots.py`.

The demo is stopped at one second of its script, and so is the clock, so that the same
page gives the same pictures. They are taken in a Chromium that is on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from playwright.async_api import Browser, Page, async_playwright  # noqa: E402

from brimline.server.demo.demo import Demo  # noqa: E402
from brimline.server.demo.script import SESSIONS  # noqa: E402

TARGET = ROOT / "docs/images"
# A day on which all models and clients in the pictures existed.
NOW = datetime(2026, 11, 18, 15, 20, tzinfo=UTC)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


class View(NamedTuple):
    """A picture: the place on the page, the second of the story, what must be there, its size."""

    name: str
    place: str
    at: float
    there: str
    width: int
    height: int


VIEWS = (
    View("overview", "#/", 640.0, "[data-testid=session]", 1280, 860),
    View(
        "session",
        f"#/session/{SESSIONS['cart'].id}",
        3_300.0,
        "[data-testid=chart] canvas",
        1200,
        900,
    ),
    View("history", "#/history", 640.0, "[data-testid=limits]", 1200, 800),
)


def browser() -> str:
    """The path of the machine's own browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.exit(f"screenshots: none of {', '.join(BROWSERS)} is installed")
    return found


async def take(page: Page, view: View, address: str, path: Path) -> None:
    """Take one picture when everything is drawn."""
    await page.clock.set_fixed_time(NOW)
    await page.goto(f"{address}/{view.place}")
    await page.locator(view.there).first.wait_for()
    await page.locator("[data-connection=live]").first.wait_for()
    await page.evaluate("document.fonts.ready")
    await page.wait_for_timeout(1_200)  # rows find their places about once a second
    await page.screenshot(path=path)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


async def both(chromium: Browser, view: View, link: str) -> None:
    """Take the picture in light and in dark; the link signs in for both."""
    address = link.partition("/open")[0]
    door = await chromium.new_context()
    await door.request.get(link)
    signed_in = await door.storage_state()
    await door.close()
    for scheme in SCHEMES:
        context = await chromium.new_context(
            storage_state=signed_in,
            viewport={"width": view.width, "height": view.height},
            color_scheme=scheme,
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        await take(await context.new_page(), view, address, TARGET / f"{view.name}-{scheme}.png")
        await context.close()


async def shown(view: View, chromium: Browser, at: float | None) -> None:
    """Run the demo for one view, and take its pictures."""
    demo = Demo(at=view.at if at is None else at, clock=NOW.timestamp)
    ready = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(demo.run(ready.set_result))
    await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    try:
        await both(chromium, view, await ready)
    finally:
        demo.stop()
        await running


async def everything(names: list[str], at: float | None) -> None:
    """Take the pictures of these views, or of all."""
    TARGET.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser())
        for view in VIEWS:
            if not names or view.name in names:
                await shown(view, chromium, at)
        await chromium.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("views", nargs="*", metavar="VIEW", help="overview, session or history")
    parser.add_argument("--at", type=float, metavar="SECONDS", help="stop the demo at this second")
    options = parser.parse_args()
    os.environ["TZ"] = "UTC"
    # The texts name the command as an installed one, and no folder of this machine.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    time.tzset()
    asyncio.run(everything(options.views, options.at))
    return 0


if __name__ == "__main__":
    sys.exit(main())
