"""`make newest`: what differs between two versions of a client, and the table of the docs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clients.install import OTHER_VERSIONS, pins
from clients.measurement import CASES, Measurement, measure

ROOT = Path(__file__).parent.parent
PAGE = "docs/guides/client-versions.md"
MEASURED = Measurement(
    limit=117_000,
    highest_without=113_321,
    compacted_after=117_419,
    calls=13,
    recorded=13,
    kept=("the last output",),
    unread=0,
    shape=frozenset({"assistant.message.usage"}),
)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "newest.py"))


def test_row_has_the_figures_of_a_measurement(script: dict[str, Any]) -> None:
    quiet = msgspec.structs.replace(MEASURED, compacted_after=None, kept=())
    first, other = script["table_rows"]("claude", "2.1.326", {"a": MEASURED, "b": quiet})
    name, compacted = "| Claude Code 2.1.326 |", "after 117,419, not 113,321"
    kept = "the summary, the last output"
    assert first == f"{name} a | 117,000 | {compacted} | 13 of 13 calls | {kept} |\n"
    assert other == f"{name} b | 117,000 | not up to 113,321 | 13 of 13 calls |  |\n"


def test_differences_are_fields_and_figures(
    script: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    script["print_differences"]({"a": MEASURED}, {"a": MEASURED})
    assert capsys.readouterr().out == "  nothing differs\n"
    shape = frozenset({"assistant.message.spending"})
    newer = msgspec.structs.replace(MEASURED, shape=shape, compacted_after=None, unread=3)
    script["print_differences"]({"a": MEASURED}, {"a": newer})
    assert capsys.readouterr().out.splitlines() == [
        "  - assistant.message.usage",
        "  + assistant.message.spending",
        "  a, compacted_after: 117419 -> None",
        "  a, unread: 0 -> 3",
    ]


def test_page_has_the_place_of_the_table(script: dict[str, Any]) -> None:
    page = (ROOT / PAGE).read_text("utf-8")
    assert page.count(script["BEGIN"]) == page.count(script["END"]) == 1


def test_other_versions_replace_the_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = pins()
    monkeypatch.setenv(OTHER_VERSIONS, json.dumps({"codex": "9.9.9"}))
    assert pins()["codex"].version == "9.9.9"
    assert pins()["claude"] == pinned["claude"]


@pytest.mark.clients
@pytest.mark.slow
def test_real_client_is_measured_around_its_limit(tmp_path: Path) -> None:
    case = next(each for each in CASES if each.client == "codex")
    measured = measure(case, tmp_path)
    assert measured.limit == 244_800
    assert (measured.highest_without or 0) < 244_800 <= (measured.compacted_after or 0)
    assert (measured.recorded, measured.unread) == (measured.calls, 0)
    assert measured.kept == ("the user's prompt",)
