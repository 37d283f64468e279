"""The syntax trees of the package's modules, parsed once for all tests."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "brimline"


@cache
def parse_modules() -> dict[str, ast.Module]:
    """Return the tree of every module by its path below the package."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }
