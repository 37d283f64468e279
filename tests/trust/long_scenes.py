"""Runs the tests that are marked `long`."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from .row import RowResult

ROOT = Path(__file__).parent.parent.parent
TEST_TIMEOUT_S = 900  # the first test of a client installs it
LONG = "long and (slow or clients)"  # their recordings are tested by the quick tests
FAULTS = ("failure", "error")  # elements of a test's report


def run_scenes(folder: Path, *tests: str) -> RowResult:
    """Run the long ones of these tests, or of all, and count what failed."""
    workers = f"{(os.cpu_count() or 1) + 1}"  # one more than cores: they wait for clients
    options = ("-q", "-n", workers, "--dist", "loadgroup", f"--timeout={TEST_TIMEOUT_S}")
    report = folder / "report.xml"
    chosen = (*options, "-m", LONG, f"--junit-xml={report}", *tests)
    subprocess.run([sys.executable, "-m", "pytest", *chosen], cwd=ROOT, check=False)
    return read_report(report.read_bytes())


def read_report(report: bytes) -> RowResult:
    """Return the figures of a report that pytest wrote."""
    cases = list(ElementTree.fromstring(report).iter("testcase"))
    run = [case for case in cases if case.find("skipped") is None]
    if not run:
        skips = [each.get("message", "") for case in cases for each in case.iter("skipped")]
        return RowResult(skipped="; ".join(sorted(set(skips))) or "no test was found")
    failed = [
        case.get("name", "") for case in run if any(case.find(tag) is not None for tag in FAULTS)
    ]
    figures = {"scenes": len(run), "skipped": len(cases) - len(run), "failures": len(failed)}
    return RowResult(figures, {"failures": 0}, failed)
