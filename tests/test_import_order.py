"""The order of folders: a module imports only from folders above its own, and there is no circle.

A circle between modules is an error also within a folder, and also by an import inside a function.
Two more rules: an agent's folder imports no other agent's, and nothing imports `testing`.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "brimline"

ORDER = (
    "errors",
    "files",
    "redaction",
    "context",
    "terminal",
    "settings",
    "agents",
    "handoff",
    "sessions",
    "sdk",
    "integrations",
    "run",
    "store",
    "monitor",
    "hooks",
    "install",
    "daemon",
    "api",
    "server",
    "tui",
)
# `brimline` is the public module, `brimline/__init__.py`; no surface imports another.
SURFACES = ("cli", "mcp", "brimline")
MAX_FOLDERS, MAX_MODULES = 21, 5  # below `brimline/`, with `data/`: more do not fit in a head

OPEN = "_version"  # every module may import it

# Agent folders; none imports another, except a fork the agent that it is a fork of.
AGENTS = {
    *("claude", "cline", "codex", "copilot", "gemini", "goose", "kilo", "kimi", "opencode"),
    *("pi", "qwen"),
}
FORKS = {"kilo": "opencode"}

Module = tuple[str, ...]


def module_of(path: Path, root: Path) -> Module:
    """A file's module below the package; the package itself is empty."""
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def modules(root: Path) -> dict[Module, Path]:
    return {module_of(path, root): path for path in sorted(root.rglob("*.py"))}


def imports(tree: ast.AST, here: Module, package: bool, known: set[Module]) -> Iterator[Module]:
    """The modules of our own that a file imports, anywhere in it."""
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


def package_of(module: Module) -> str:
    if not module:
        return "brimline"
    return "cli" if module == ("__main__",) else module[0]


def violation(here: Module, there: Module) -> str | None:
    """Why one module may not import another; None if it may."""
    if there == (OPEN,):
        return None
    mine, other = package_of(here), package_of(there)
    if mine == other:
        return _within_agents(here, there) if mine == "agents" else None
    if mine == OPEN:
        return "the version imports nothing"
    for name in (mine, other):
        if name not in (*ORDER, *SURFACES, "testing"):
            return f"{name} is not in the order"
    if other == "testing":
        return "only tests import testing"
    if other in SURFACES:
        return "no module imports a surface"
    if mine in SURFACES or mine == "testing":
        return None
    if ORDER.index(other) > ORDER.index(mine):
        return f"{other} is below {mine}"
    return None


def _within_agents(here: Module, there: Module) -> str | None:
    agent = here[1] if len(here) > 1 else ""
    other = there[1] if len(there) > 1 else ""
    if other in (agent, FORKS.get(agent)) or not {agent, other} <= AGENTS:
        return None
    return f"{agent} imports {other}"


def violations(root: Path) -> list[str]:
    """Every import that violates the order."""
    known = modules(root)
    problems: list[str] = []
    for here, path in known.items():
        tree = ast.parse(path.read_text("utf-8"))
        for there in imports(tree, here, path.name == "__init__.py", set(known)):
            if why := violation(here, there):
                problems.append(f"{'.'.join(here) or 'brimline'} -> {'.'.join(there)}: {why}")
    return problems


def import_graph(root: Path) -> dict[Module, set[Module]]:
    """The modules that each module imports."""
    known = modules(root)
    return {
        here: {
            there
            for there in imports(
                ast.parse(path.read_text("utf-8")), here, path.name == "__init__.py", set(known)
            )
            if there in known and there != here
        }
        for here, path in known.items()
    }


def circles(graph: Mapping[Module, set[Module]]) -> list[list[str]]:
    """The modules that import each other, directly or by others: what has no order."""
    rest = {here: set(there) for here, there in graph.items()}
    is_smaller = True
    while is_smaller:
        ends = {here for here, there in rest.items() if not there}
        starts = rest.keys() - {each for there in rest.values() for each in there}
        is_smaller = bool(ends | starts)
        rest = {here: there - ends for here, there in rest.items() if here not in ends | starts}
    return [[".".join(here), *sorted(map(".".join, there))] for here, there in sorted(rest.items())]


def test_no_circle() -> None:
    assert circles(import_graph(SOURCE)) == []


@pytest.mark.parametrize(
    "back", ["from brimline.usage import x", "def f():\n    from brimline import usage"]
)
def test_circle_is_found_also_within_a_function(tmp_path: Path, back: str) -> None:
    files = {
        "usage": "from brimline.tracker import x",
        "tracker": back,
        "a": "import brimline.usage",
    }
    assert circles(import_graph(package(tmp_path, files))) == [
        ["tracker", "usage"],
        ["usage", "tracker"],
    ]


def test_first_level_fits_in_a_head() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/*.py")} | {"data"}
    assert len(folders) <= MAX_FOLDERS
    assert len(list(SOURCE.glob("*.py"))) <= MAX_MODULES
    assert folders - {"data"} <= {*ORDER, *SURFACES, "testing"}


def test_every_import_follows_the_order() -> None:
    assert violations(SOURCE) == []


def test_every_module_is_in_the_order() -> None:
    names = {package_of(module) for module in modules(SOURCE)}
    assert names <= {*ORDER, *SURFACES, "testing", OPEN}


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
        ("context", "from brimline.store import fold", "store is below context"),
        ("context", "import brimline.store", "store is below context"),
        ("context", "from brimline import store", "store is below context"),
        ("context", "from . import store", "store is below context"),
        ("context", "from .store import fold", "store is below context"),
        ("context", "def f():\n    from brimline.store import x", "store is below context"),
        ("context", "if TYPE_CHECKING:\n    import brimline.store", "store is below context"),
        ("context", "from brimline import fold", "no module imports a surface"),
        ("context", "import brimline", "no module imports a surface"),
        ("sessions/files", "from brimline.cli.paint import x", "no module imports a surface"),
        ("sessions/files", "from ..store import x", "store is below sessions"),
        ("cli/demo", "from brimline.testing import x", "only tests import testing"),
        ("cli/demo", "from brimline.mcp import x", "no module imports a surface"),
        ("testing/fake", "from brimline.cli import x", "no module imports a surface"),
        ("monitor", "import brimline.testing.fake", "only tests import testing"),
        ("context", "from brimline.utils import x", "utils is not in the order"),
        ("utils", "from brimline.context import x", "utils is not in the order"),
        (
            "agents/pi/paths",
            "from brimline.agents.codex.records import x",
            "pi imports codex",
        ),
        ("agents/pi/paths", "from brimline.agents import codex", "pi imports codex"),
        ("agents/pi/paths", "from ..codex import records", "pi imports codex"),
        ("_version", "from brimline.context.usage import x", "the version imports nothing"),
    ],
)
def test_wrong_import_is_found_in_any_form(tmp_path: Path, name: str, text: str, why: str) -> None:
    files = {"store": "", "agents/codex/records": "", "testing/fake": "", name: text}
    problems = violations(package(tmp_path, files))
    assert len(problems) == 1
    assert problems[0].endswith(f": {why}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("store", "from brimline.context import x\nimport brimline.agents\nimport json"),
        ("store", "from .context import x"),
        ("context", "from brimline._version import __version__"),
        ("context", "from brimline import _version"),
        ("cli/status", "from brimline.cli.paint import x\nfrom .paint import y\nfrom . import z"),
        (
            "agents/pi/paths",
            "from brimline.agents.transcripts.source import x\nfrom .records import y",
        ),
        ("agents/pi/paths", "from brimline.agents import source"),
        ("testing/fake", "from brimline.monitor import x\nfrom brimline.testing import y"),
        ("__main__", "from brimline.cli import main"),
        (
            "sessions/report",
            "from brimline.context.prices import cost\nfrom brimline.sessions.ledger import x",
        ),
    ],
)
def test_import_up_the_order_or_inside_a_package_is_accepted(
    tmp_path: Path, name: str, text: str
) -> None:
    files = {"_version": "", "agents/pi/records": "", "agents/transcripts/source": "", name: text}
    assert violations(package(tmp_path, files)) == []
