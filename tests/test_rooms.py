"""The order of the rooms: imports point up it only, never sideways.

Two more rules: in `agents` an agent's folder knows no other agent's, and `testing`, which may see
everything above the surfaces, is seen by nobody.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "brimline"

ORDER = (
    "errors",
    "regular_file",
    "private_folder",
    "file_lock",
    "atomic_file",
    "bounded_dict",
    "bounded_reads",
    "usage",
    "terminal",
    "windows",
    "prices",
    "events",
    "process_tree",
    "settings",
    "providers",
    "transcripts",
    "observations",
    "jsonc",
    "agents",
    "tracker",
    "formulas",
    "chart",
    "forecast",
    "ledger",
    "survey",
    "policy",
    "observe",
    "baselines",
    "run",
    "inbox",
    "handoff",
    "store",
    "monitor",
    "tmux",
    "notify",
    "hooks",
    "setup",
    "server",
    "daemon_client",
    "demo",
    "tui",
)
SURFACES = ("cli", "mcp", "brimline")
"""`brimline` is the library's own surface, `brimline/__init__.py`; none sees another."""

OPEN = "_version"
"""What everyone may import."""

AGENTS = {"claude", "codex", "gemini", "opencode", "pi"}
"""The folders of agents, none of which imports another."""

Module = tuple[str, ...]


def module_of(path: Path, root: Path) -> Module:
    """A file's module below the package; the package itself is empty."""
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def modules(root: Path) -> dict[Module, Path]:
    """Every module of the package."""
    return {module_of(path, root): path for path in sorted(root.rglob("*.py"))}


def imports(tree: ast.AST, here: Module, package: bool, known: set[Module]) -> Iterator[Module]:
    """The modules of our own that a file imports, at its top or anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top, *rest = alias.name.split(".")
                if top == "brimline":
                    yield tuple(rest)
        elif isinstance(node, ast.ImportFrom):
            base = _from(node, here, package)
            if base is not None:
                for alias in node.names:
                    inner = (*base, alias.name)
                    yield inner if inner in known else base


def _from(node: ast.ImportFrom, here: Module, package: bool) -> Module | None:
    named = tuple((node.module or "").split(".")) if node.module else ()
    if node.level:
        up = node.level - 1 if package else node.level
        return (*here[: len(here) - up], *named)
    return named[1:] if named[:1] == ("brimline",) else None


def room_of(module: Module) -> str:
    """The room that a module is in."""
    if not module:
        return "brimline"
    return "cli" if module == ("__main__",) else module[0]


def wrong(here: Module, there: Module) -> str | None:
    """Why one module may not import another; None where it may."""
    if there == (OPEN,):
        return None
    mine, other = room_of(here), room_of(there)
    if mine == other:
        return _within_agents(here, there) if mine == "agents" else None
    if mine == OPEN:
        return "the version imports nothing"
    for room in (mine, other):
        if room not in (*ORDER, *SURFACES, "testing"):
            return f"{room} is no room that the order names"
    if other == "testing":
        return "testing is for tests alone"
    if other in SURFACES:
        return "a surface is imported by nobody"
    if mine in SURFACES or mine == "testing":
        return None
    if ORDER.index(other) > ORDER.index(mine):
        return f"{other} stands below {mine}"
    return None


def _within_agents(here: Module, there: Module) -> str | None:
    agent = here[1] if len(here) > 1 else ""
    other = there[1] if len(there) > 1 else ""
    if agent == other or not {agent, other} <= AGENTS:
        return None
    return f"{agent} knows of {other}"


def complaints(root: Path) -> list[str]:
    """Every import that goes against the order."""
    known = modules(root)
    found: list[str] = []
    for here, path in known.items():
        tree = ast.parse(path.read_text("utf-8"))
        for there in imports(tree, here, path.name == "__init__.py", set(known)):
            if why := wrong(here, there):
                found.append(f"{'.'.join(here) or 'brimline'} -> {'.'.join(there)}: {why}")
    return found


def test_the_order_of_rooms() -> None:
    """No import in src goes down the list, sideways, or to what only tests may see."""
    assert complaints(SOURCE) == []


def test_every_file_is_in_a_room() -> None:
    """There is no drawer beside the rooms."""
    rooms = {room_of(module) for module in modules(SOURCE)}
    assert rooms <= {*ORDER, *SURFACES, "testing", OPEN}


def package(root: Path, files: dict[str, str]) -> Path:
    """A package with these files, by path."""
    for name, text in files.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if path.parent != root:
            (path.parent / "__init__.py").touch()
    return root


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("usage", "from brimline.tracker import fold", "tracker stands below usage"),
        ("usage", "import brimline.tracker", "tracker stands below usage"),
        ("usage", "from brimline import tracker", "tracker stands below usage"),
        ("usage", "from . import tracker", "tracker stands below usage"),
        ("usage", "from .tracker import fold", "tracker stands below usage"),
        ("usage", "def f():\n    from brimline.tracker import fold", "tracker stands below usage"),
        ("usage", "if TYPE_CHECKING:\n    import brimline.tracker", "tracker stands below usage"),
        ("usage", "from brimline import fold", "a surface is imported by nobody"),
        ("usage", "import brimline", "a surface is imported by nobody"),
        ("survey/files", "from brimline.cli.paint import x", "a surface is imported by nobody"),
        ("survey/files", "from ..policy import x", "policy stands below survey"),
        ("cli/demo", "from brimline.testing import x", "testing is for tests alone"),
        ("cli/demo", "from brimline.mcp import x", "a surface is imported by nobody"),
        ("testing/fake", "from brimline.cli import x", "a surface is imported by nobody"),
        ("monitor", "import brimline.testing.fake", "testing is for tests alone"),
        ("usage", "from brimline.utils import x", "utils is no room that the order names"),
        ("utils", "from brimline.usage import x", "utils is no room that the order names"),
        (
            "agents/pi/paths",
            "from brimline.agents.codex.records import x",
            "pi knows of codex",
        ),
        ("agents/pi/paths", "from brimline.agents import codex", "pi knows of codex"),
        ("agents/pi/paths", "from ..codex import records", "pi knows of codex"),
        ("_version", "from brimline.usage import x", "the version imports nothing"),
    ],
)
def test_bad_import_is_found(tmp_path: Path, name: str, text: str, why: str) -> None:
    """An import against the order is found, however it is written."""
    files = {"tracker": "", "agents/codex/records": "", "testing/fake": "", name: text}
    found = complaints(package(tmp_path, files))
    assert len(found) == 1
    assert found[0].endswith(f": {why}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tracker", "from brimline.usage import x\nimport brimline.events\nimport json"),
        ("tracker", "from .usage import x"),
        ("usage", "from brimline._version import __version__"),
        ("usage", "from brimline import _version"),
        ("cli/status", "from brimline.cli.paint import x\nfrom .paint import y\nfrom . import z"),
        (
            "agents/pi/paths",
            "from brimline.transcripts.source import x\nfrom .records import y",
        ),
        ("agents/pi/paths", "from brimline.agents import source"),
        ("testing/fake", "from brimline.monitor import x\nfrom brimline.testing import y"),
        ("__main__", "from brimline.cli import main"),
        ("survey/report", "from brimline.prices import cost\nfrom brimline.ledger import x"),
    ],
)
def test_good_import_is_passed(tmp_path: Path, name: str, text: str) -> None:
    """An import up the order, or inside a room, is passed."""
    files = {"_version": "", "agents/pi/records": "", "transcripts/source": "", name: text}
    assert complaints(package(tmp_path, files)) == []
