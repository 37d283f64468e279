"""The model catalogue equals the output of its script for the installed genai-prices."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.context.window import Catalogue, catalogue

SCRIPT = Path(__file__).parent.parent / "scripts" / "catalogue.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_catalogue_file_is_up_to_date() -> None:
    completed = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, timeout=120
    )
    assert (completed.returncode, completed.stderr) == (0, "")


def test_built_catalogue_equals_the_one_that_is_read(script: dict[str, Any]) -> None:
    built: Catalogue = script["build"]()
    assert built == catalogue()
    assert msgspec.json.decode(script["render"](built), type=Catalogue) == built


def test_file_has_one_model_per_line_sorted(script: dict[str, Any]) -> None:
    text: str = script["render"](catalogue()).decode()
    rows = [line for line in text.splitlines() if line.startswith("    ")]
    assert len(rows) == len(catalogue().exact) + len(catalogue().prefix)
    assert list(catalogue().exact) == sorted(catalogue().exact)


def test_longest_reply_comes_from_the_longest_prefix(script: dict[str, Any]) -> None:
    reply = script["reply"]
    assert reply("claude-opus-4-5", 200_000) == 64_000
    assert reply("claude-opus-4-1-20250805", 200_000) == 32_000
    assert reply("my-local-model", 200_000) is None


def test_reply_as_long_as_the_window_is_left_out(script: dict[str, Any]) -> None:
    assert script["reply"]("claude-opus-4-5", 8_192) is None


def test_model_ids_are_lower_case_without_a_provider() -> None:
    for name in (*catalogue().exact, *catalogue().prefix):
        assert name == name.lower()
        assert "/" not in name


def test_rows_of_another_source_name_it() -> None:
    assert catalogue().made_from.startswith("genai-prices ")
    assert not any(row.origin for row in catalogue().prefix.values())
    origins = {row.origin for row in catalogue().exact.values() if row.origin}
    assert all(origin.startswith("models.dev in opencode ") for origin in origins)


def test_every_window_names_the_maker_that_serves_it() -> None:
    rows = (*catalogue().exact.values(), *catalogue().prefix.values())
    assert all(row.provider for row in rows)
    assert {"anthropic", "openai", "xai"} < {row.provider for row in rows}


@pytest.mark.parametrize(
    ("name", "id", "expected"),
    [
        ("claude-opus-4-5", "claude-opus-4-5", True),
        ("claude-4.5-opus", "claude-opus-4-5", True),
        ("claude-opus-4-0", "claude-opus-4", True),
        ("gpt-5-2025-08-07", "gpt-5", True),
        ("gpt-5-chat-latest", "gpt-5", False),
        ("gpt-5-codex", "gpt-5", False),
    ],
)
def test_model_that_only_costs_the_same_is_no_alias(
    script: dict[str, Any], name: str, id: str, expected: bool
) -> None:
    assert script["is_alias"](name, id) is expected


def test_licence_of_every_registry_is_with_it() -> None:
    data = Path(__file__).parent.parent / "src/brimline/data"
    licence = (data / "LICENSES/model-registries.txt").read_text("utf-8")
    clients = {path.name.partition(".")[0] for path in (data / "registries").iterdir()}
    assert clients == {"codex", "gemini", "opencode", "pi"}
    assert all(f"- {name}" in licence.lower() for name in clients)
    assert "Permission is hereby granted" in licence
