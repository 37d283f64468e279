"""The public names: complete, resolvable, and cheap to import."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import brimline

PACKAGES: dict[str, tuple[str, ...]] = vars(brimline)["_PACKAGES"]


def test_all_is_sorted() -> None:
    """Constants come first, as ruff sorts them."""
    names = set(brimline.__all__)
    assert brimline.__all__ == sorted(names, key=lambda name: (not name.isupper(), name))


def test_all_lists_the_names_of_every_package() -> None:
    offered = [name for names in PACKAGES.values() for name in names]
    assert sorted([*offered, "__version__"]) == sorted(brimline.__all__)


def test_dir_shows_the_public_names() -> None:
    assert dir(brimline) == sorted(brimline.__all__)


def test_all_is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(brimline.__file__).read_text("utf-8"))
    imported = {
        (node.module or "").removeprefix("brimline."): tuple(alias.name for alias in node.names)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("brimline.")
    }
    assert imported.pop("_version") == ("__version__",)
    assert imported == PACKAGES


@pytest.mark.parametrize("name", brimline.__all__)
def test_name_resolves_to_its_package_and_has_a_docstring(name: str) -> None:
    value: Any = getattr(brimline, name)
    if name == "__version__":
        assert isinstance(value, str)
        return
    if name.isupper():
        assert value
        return
    package = next(package for package, names in PACKAGES.items() if name in names)
    assert value.__name__ == name
    assert value.__module__.startswith(f"brimline.{package}")
    assert value.__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'brimline' has no attribute 'nonsense'"):
        _ = vars(brimline)["__getattr__"]("nonsense")
    assert not hasattr(brimline, "nonsense")


def test_import_of_brimline_imports_no_package_and_no_msgspec() -> None:
    script = (
        "import sys; before = set(sys.modules); import brimline; brimline.__version__;"
        "print(*sorted(set(sys.modules) - before))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = completed.stdout.split()
    assert "brimline" in loaded
    assert not {"msgspec", "json", "json.decoder"} & set(loaded)
    assert [name for name in loaded if name.startswith("brimline.")] == ["brimline._version"]


def test_names_are_the_same_object() -> None:
    from brimline.context.tracker import fold

    assert brimline.fold is fold
