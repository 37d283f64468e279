"""The public names: what is promised, what resolves, and what it costs to import them."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import brimline

PACKAGES: dict[str, tuple[str, ...]] = vars(brimline)["_PACKAGES"]


def test_all_is_sorted() -> None:
    """`__all__` is sorted, and names nothing twice."""
    assert brimline.__all__ == sorted(set(brimline.__all__))


def test_all_lists_the_names_of_every_package() -> None:
    """What is promised and where it is found agree."""
    offered = [name for names in PACKAGES.values() for name in names]
    assert sorted([*offered, "__version__"]) == brimline.__all__


def test_all_is_what_type_checkers_see() -> None:
    """The imports that only type checkers see are the same names from the same packages."""
    tree = ast.parse(Path(brimline.__file__).read_text("utf-8"))
    seen = {
        (node.module or "").removeprefix("brimline."): tuple(alias.name for alias in node.names)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("brimline.")
    }
    assert seen.pop("_version") == ("__version__",)
    assert seen == PACKAGES


@pytest.mark.parametrize("name", brimline.__all__)
def test_name_resolves(name: str) -> None:
    """Every promised name is there, comes from its package, and has a docstring."""
    value: Any = getattr(brimline, name)
    if name == "__version__":
        assert isinstance(value, str)
        return
    package = next(package for package, names in PACKAGES.items() if name in names)
    assert value.__name__ == name
    assert value.__module__.startswith(f"brimline.{package}")
    assert value.__doc__


def test_unknown_name() -> None:
    """A name that is not promised is an AttributeError like any other."""
    with pytest.raises(AttributeError, match="module 'brimline' has no attribute 'nonsense'"):
        _ = vars(brimline)["__getattr__"]("nonsense")
    assert not hasattr(brimline, "nonsense")


def test_import_costs_nothing() -> None:
    """`import brimline` imports neither msgspec nor json, nor any package."""
    script = (
        "import sys; before = set(sys.modules); import brimline; brimline.__version__;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = done.stdout.split()
    assert "brimline" in loaded
    assert not {"msgspec", "json", "json.decoder"} & set(loaded)
    assert [name for name in loaded if name.startswith("brimline.")] == ["brimline._version"]


def test_names_are_the_same_object() -> None:
    """A name of the library is the one of its package, not a copy."""
    from brimline.tracker import fold

    assert brimline.fold is fold
