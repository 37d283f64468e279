"""What a status line and a report of each tool cost: CPU and time, compared in one run."""

import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from brimline import __version__
from hook import Scene, compile_client, launcher
from measure import Case, run
from other_tools import StatusLine, ccusage, ccusage_report
from reporters import environment
from serving import Daemon, serving
from tree import Plan, Tree, make, transcripts

SETTLE_S = 0.2  # the daemon stores what it read after its answer
LARGE_TRANSCRIPT_BYTES = 100_000_000


def cpu_of(line: StatusLine, scene: Scene, daemon: Daemon | None = None) -> float:
    """The CPU seconds of one status line: its process, and its daemon's until it is at rest."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(scene.stdin), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    before = daemon.cpu_ns if daemon else 0
    pid = os.posix_spawn(line.command[0], line.command, scene.env | line.env, file_actions=actions)
    _, _, usage = os.wait4(pid, 0)
    if daemon:
        time.sleep(SETTLE_S)
    after = daemon.cpu_ns if daemon else 0
    return usage.ru_utime + usage.ru_stime + (after - before) / 1e9


def time_lines(others: Sequence[StatusLine], work: Path, rounds: int) -> dict[str, list[float]]:
    """The CPU of each line in times of an empty process: with a short transcript, a long one."""
    with serving(work) as daemon:
        ours = launcher(work / "launcher", daemon.socket, compile_client(work))
        rows = [
            StatusLine("empty", "", ["/bin/sh", "-c", "true"]),
            StatusLine("brimline", __version__, ours),
            *others,
        ]
        ratios: dict[str, list[float]] = {row.name: [] for row in rows}
        for size in (1_000, LARGE_TRANSCRIPT_BYTES):
            scene = Scene.of(work, work, size)
            (transcript,) = transcripts(work / f"transcript-{size}")
            with transcript.open("rb") as file:
                *_, last_record = file
            seconds: dict[str, list[float]] = {row.name: [] for row in rows}
            for number in range(rounds + 1):
                for row in rows:
                    with transcript.open("ab") as file:  # as in use: there is something new
                        file.write(last_record)
                    taken = cpu_of(row, scene, daemon if row.name == "brimline" else None)
                    if number:  # the first round fills the page cache and the daemon
                        seconds[row.name].append(taken)
            for row in rows:
                ratio = statistics.median(seconds[row.name]) / statistics.median(seconds["empty"])
                ratios[row.name].append(ratio)
    return ratios


def time_reports(cache: Path, tree: Path, work: Path, rounds: int) -> float:
    """A first `brimline report`, in times of ccusage's daily report of the same tree."""
    theirs = Case("ccusage", ccusage_report(ccusage(cache), "daily"))
    ours = Case("brimline", [sys.executable, "-m", "brimline", "report", "--json"])
    for number in range(rounds + 1):
        for case in (theirs, ours):
            home = work / f"report-{case.name}-{number}"
            home.mkdir()
            taken = run(case.command, environment(home) | {"CLAUDE_CONFIG_DIR": str(tree)})
            if number:
                case.runs.append(taken)
    return ours.best / theirs.best


def kept_tree(cache: Path, megabytes: int) -> Path:
    """The tree of `report.py`, of any age; created if there is none."""
    folder = cache / "tree"
    plan = Plan(size=megabytes * 1_000_000)
    if (folder / "stamp.json").exists():
        kept = msgspec.json.decode((folder / "stamp.json").read_bytes(), type=Tree)
        plan = msgspec.structs.replace(plan, now=kept.plan.now)
    make(folder, plan)
    return folder
