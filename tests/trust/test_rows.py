"""Each row of `make trust` with a small size, and the table that it writes."""

import subprocess
import sys
from pathlib import Path

import pytest

from hooks.agent import MAX_RUN_S

from .full_disk import fill_disk
from .hook_faults import run_hooks
from .kills import kill_under_load
from .long_scenes import read_report
from .openapi import try_routes
from .row import RowResult
from .settings_files import set_up_and_remove
from .soak import Samples, soak_daemon

ROOT = Path(__file__).parent.parent.parent
SCRIPT = [sys.executable, str(ROOT / "scripts" / "trust.py")]


def check(result: RowResult) -> None:
    """Fail as the long form does; skip what the machine cannot run."""
    if result.skipped is not None:
        pytest.skip(result.skipped)
    assert result.failures == []


@pytest.mark.slow
def test_no_event_is_lost_or_counts_twice_when_daemon_and_clients_are_killed(
    tmp_path: Path,
) -> None:
    check(kill_under_load(tmp_path, kills=6))


@pytest.mark.slow
def test_hooks_exit_with_0_and_print_no_error_whatever_is_broken(tmp_path: Path) -> None:
    check(run_hooks(tmp_path, runs=96, max_ms=1_000 * MAX_RUN_S))


@pytest.mark.slow
def test_accepted_calls_are_stored_when_the_disk_fills_up(tmp_path: Path) -> None:
    """With 192 KiB the disk is full while the store is created, with 512 KiB while it is used."""
    check(fill_disk(tmp_path, [192 << 10, 512 << 10]))


@pytest.mark.slow
def test_load_and_dashboards_leave_no_descriptor_open_and_every_call_is_stored(
    tmp_path: Path,
) -> None:
    check(soak_daemon(tmp_path, rate=50, seconds=5))


@pytest.mark.slow
def test_no_generated_request_is_answered_with_a_server_error(tmp_path: Path) -> None:
    check(try_routes(tmp_path, examples=1))


@pytest.mark.slow
def test_removal_of_setup_restores_generated_settings(tmp_path: Path) -> None:
    check(set_up_and_remove(tmp_path, files=8))


def test_figure_above_its_limit_fails_with_examples() -> None:
    result = RowResult({"runs": 7, "lost": 1}, {"lost": 0}, ["message 3: 0 of 1"])
    assert result.failures == ["lost: 1 is above 0", "message 3: 0 of 1"]
    assert RowResult({"lost": 0}, {"lost": 0}).failures == []


def test_scene_that_fails_or_cannot_begin_is_named() -> None:
    report = b"""<testsuites><testsuite>
        <testcase name="passes"/>
        <testcase name="fails"><failure message="assert"/></testcase>
        <testcase name="cannot begin"><error message="at setup"/></testcase>
        <testcase name="is left out"><skipped message="no opencode"/></testcase>
        </testsuite></testsuites>"""
    result = read_report(report)
    assert result.figures == {"scenes": 3, "skipped": 1, "failures": 2}
    assert result.failures == ["failures: 2 is above 0", "fails", "cannot begin"]


def test_scenes_that_are_all_skipped_are_a_row_that_cannot_run() -> None:
    report = b'<testsuite><testcase><skipped message="no opencode"/></testcase></testsuite>'
    assert read_report(report).skipped == "no opencode"


def test_slope_is_that_of_the_samples_after_the_warm_up() -> None:
    samples = Samples(0, times=[0.0, 1_800.0, 3_600.0, 5_400.0], megabytes=[9.0, 50.0, 51.0, 52.0])
    assert samples.slope_an_hour(since=1_800.0) == pytest.approx(2.0)


def test_table_of_the_page_has_the_stored_figures() -> None:
    printed = subprocess.run([*SCRIPT, "--table"], capture_output=True, text=True, check=True)
    page = (ROOT / "docs" / "concepts" / "trust.md").read_text("utf-8")
    assert f"this table -->\n{printed.stdout}<!--" in page


def test_unknown_row_is_refused() -> None:
    done = subprocess.run([*SCRIPT, "nosuch"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "invalid choice: 'nosuch'" in done.stderr
