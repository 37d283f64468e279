"""The order of packages: a module imports only from packages above its own.

Two more rules: an agent's folder imports no other agent's, and nothing imports `testing`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "brimline"

ORDER = (
    "errors",
    "foreign_json",
    "regular_file",
    "private_folder",
    "folder_safety",
    "file_lock",
    "atomic_file",
    "bounded_dict",
    "bounded_reads",
    "loopback",
    "redaction",
    "usage",
    "client_report",
    "terminal",
    "windows",
    "events",
    "prices",
    "process_tree",
    "http_client",
    "network_settings",
    "settings",
    "providers",
    "transcripts",
    "observations",
    "jsonc",
    "agents",
    "tracker",
    "formulas",
    "forecast",
    "cache_misses",
    "ledger",
    "inbox",
    "handoff",
    "session_title",
    "survey",
    "policy",
    "chart",
    "observe",
    "integrations",
    "baselines",
    "run",
    "store",
    "monitor",
    "tmux",
    "notify",
    "hooks",
    "setup",
    "uplink",
    "server",
    "daemon_client",
    "demo",
    "tui",
)
# `brimline` is the public module, `brimline/__init__.py`; no surface imports another.
SURFACES = ("cli", "mcp", "brimline")

OPEN = "_version"  # every module may import it

AGENTS = {"claude", "codex", "gemini", "opencode", "pi"}  # agent folders; none imports another

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
    if agent == other or not {agent, other} <= AGENTS:
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
        ("usage", "from brimline.context.tracker import fold", "tracker is below usage"),
        ("usage", "import brimline.context.tracker", "tracker is below usage"),
        ("usage", "from brimline import tracker", "tracker is below usage"),
        ("usage", "from . import tracker", "tracker is below usage"),
        ("usage", "from .tracker import fold", "tracker is below usage"),
        (
            "usage",
            "def f():\n    from brimline.context.tracker import fold",
            "tracker is below usage",
        ),
        (
            "usage",
            "if TYPE_CHECKING:\n    import brimline.context.tracker",
            "tracker is below usage",
        ),
        ("usage", "from brimline import fold", "no module imports a surface"),
        ("usage", "import brimline", "no module imports a surface"),
        ("survey/files", "from brimline.cli.paint import x", "no module imports a surface"),
        ("survey/files", "from ..policy import x", "policy is below survey"),
        ("cli/demo", "from brimline.testing import x", "only tests import testing"),
        ("cli/demo", "from brimline.mcp import x", "no module imports a surface"),
        ("testing/fake", "from brimline.cli import x", "no module imports a surface"),
        ("monitor", "import brimline.testing.fake", "only tests import testing"),
        ("usage", "from brimline.utils import x", "utils is not in the order"),
        ("utils", "from brimline.context.usage import x", "utils is not in the order"),
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
    files = {"tracker": "", "agents/codex/records": "", "testing/fake": "", name: text}
    problems = violations(package(tmp_path, files))
    assert len(problems) == 1
    assert problems[0].endswith(f": {why}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "tracker",
            "from brimline.context.usage import x\nimport brimline.context.events\nimport json",
        ),
        ("tracker", "from .usage import x"),
        ("usage", "from brimline._version import __version__"),
        ("usage", "from brimline import _version"),
        ("cli/status", "from brimline.cli.paint import x\nfrom .paint import y\nfrom . import z"),
        (
            "agents/pi/paths",
            "from brimline.agents.transcripts.source import x\nfrom .records import y",
        ),
        ("agents/pi/paths", "from brimline.agents import source"),
        ("testing/fake", "from brimline.monitor import x\nfrom brimline.testing import y"),
        ("__main__", "from brimline.cli import main"),
        (
            "survey/report",
            "from brimline.context.prices import cost\nfrom brimline.sessions.ledger import x",
        ),
    ],
)
def test_import_up_the_order_or_inside_a_package_is_accepted(
    tmp_path: Path, name: str, text: str
) -> None:
    files = {"_version": "", "agents/pi/records": "", "transcripts/source": "", name: text}
    assert violations(package(tmp_path, files)) == []
