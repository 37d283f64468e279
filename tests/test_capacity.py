"""The capacity model of docs/concepts/scale.md: its table and constants are those of the script."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/concepts/scale.md").read_text("utf-8")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts/capacity.py"))


def test_page_has_the_computed_table(script: dict[str, Any]) -> None:
    assert script["main"](["--check"]) == 0
    assert script["with_table"](PAGE.replace("| 10,000 |", "| 9,999 |")) == PAGE


def test_page_names_the_constants_of_the_table(script: dict[str, Any]) -> None:
    server, database = map(script["split_cost"], (script["SERVER_US"], script["DATABASE_US"]))
    assert f"{script['CALLS_PER_HOUR']} an hour, twice that at the peak" in PAGE
    for cost in (server, database):
        shown = f"{cost.request_s * 1e3:.2g} ms for a request, {cost.call_s * 1e3:.2f} ms for each"
        assert shown in PAGE
    assert f"{script['BYTES_PER_CALL']} for a call" in PAGE


def test_costs_of_request_and_call_add_up_to_the_measured_ones(script: dict[str, Any]) -> None:
    cost = script["split_cost"]({1: 1_000.0, 100: 109.0})
    assert (round(cost.request_s * 1e6), round(cost.call_s * 1e6)) == (900, 100)


def test_disk_or_cores_decide_on_the_number_of_databases(script: dict[str, Any]) -> None:
    small, large = map(script["compute_capacity"], (10_000, 1_000_000))
    assert (small.databases, small.replicas >= 2) == (1, True)
    cores = large.database_cores / script["DATABASE_CORES"]
    disks = large.gb_kept / script["DATABASE_GB"]
    assert large.databases - 1 < max(cores, disks) <= large.databases
