"""Clients are installed once, whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from .install import (
    CannotInstall,
    cache_folder,
    install_client,
    install_once_per_run,
    node,
    pins,
    require,
)


def test_every_client_is_pinned() -> None:
    """The versions are exact and in one file."""
    assert sorted(pins()) == [
        "claude",
        "cline",
        "codex",
        "copilot",
        "gemini",
        "goose",
        "kilo",
        "kimi",
        "opencode",
        "pi",
        "qwen",
    ]
    assert all(pin.version[0].isdigit() and "{" not in pin.package for pin in pins().values())


def test_node_comes_from_the_wheel() -> None:
    """Node and npm are files of a development dependency."""
    assert node().binary.exists()
    assert node().npm.exists()


def test_cache_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BRIMLINE_CLIENTS_DIR wins over XDG_CACHE_HOME, which wins over the home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("BRIMLINE_CLIENTS_DIR", raising=False)
    assert cache_folder() == tmp_path / "brimline/clients"
    monkeypatch.setenv("BRIMLINE_CLIENTS_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


@pytest.fixture
def unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder into which npm cannot fetch anything."""
    monkeypatch.setenv("BRIMLINE_CLIENTS_DIR", str(tmp_path / "clients"))
    monkeypatch.setenv("npm_config_offline", "true")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    return tmp_path / "clients"


def test_failed_install_leaves_no_client(unreachable: Path) -> None:
    """An incomplete folder is never used as a client, and the error says what to install."""
    with pytest.raises(CannotInstall, match=r"npm install @openai/codex@"):
        install_client("codex")
    assert not [path for path in unreachable.iterdir() if not path.name.startswith(".")]


def test_remains_of_a_killed_install_are_removed(unreachable: Path) -> None:
    """The next install cleans up after one that was killed."""
    left = unreachable / ".codex-new-dead"
    left.mkdir(parents=True)
    with pytest.raises(CannotInstall):
        install_client("codex")
    assert not left.exists()


def test_failed_install_is_tried_again_only_in_the_next_run(
    unreachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an unreachable registry each try takes minutes; other workers of the run share it."""
    tries: list[str] = []

    def fail() -> None:
        tries.append("npm install")
        raise CannotInstall("the registry is unreachable")

    unreachable.mkdir()
    for run in ("one", "one", "two"):
        monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", run)
        with pytest.raises(CannotInstall, match="the registry is unreachable"):
            install_once_per_run("codex", unreachable, fail)
    assert len(tries) == 2


def test_client_is_not_installed_again_by_a_run_in_which_that_failed(unreachable: Path) -> None:
    with pytest.raises(CannotInstall) as first:
        install_client("codex")
    left = unreachable / ".codex-new-dead"  # which a try would remove
    left.mkdir()
    with pytest.raises(CannotInstall) as second:
        install_client("codex")
    assert str(second.value) == str(first.value)
    assert left.exists()


def test_missing_client_skips_and_fails_in_ci(
    unreachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a client a test is skipped; CI says that it failed."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="npm install"):
        require("codex")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="npm install"):
        require("codex")
