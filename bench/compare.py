"""Compare Brimline with other tools on recorded sessions, and write the table of the README.

The sessions are the fixtures in tests/fixtures: real clients ran against a fake model, and its bill
is the truth. Every tool runs offline in a home folder of its own. `--write` puts the results into
bench/results/compare.json and the table into README.md; `--table` prints the stored one.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from brimline import __version__
from brimline.testing.fake_model import Billed
from hook import Scene, compile_client, launcher
from measure import Case, run
from other_tools import Report, StatusLine, ccusage, ccusage_report, status_lines
from serving import Daemon, serving
from tree import Plan, Tree, make, transcripts

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

from clients.fixture import FIXTURES, load_fixture  # noqa: E402

CACHE = ROOT / "bench" / ".cache"
RESULTS = ROOT / "bench" / "results" / "compare.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- bench/compare.py writes this table -->\n", "<!-- end of the table -->\n"

SESSION = "00000001-0000-4000-8000-000000000001"
FORK = "00000002-0000-4000-8000-000000000002"
OLDER = "older client"  # it hands no context figures to a status line
AFTER_COMPACTION = 0.05  # how far an estimate may be off before the first call after a compaction
SIDE_THREADS = ("main", "subagent")  # what every client writes into its files
SETTLE_S = 0.2  # the daemon stores what it read after its answer
LARGE_TRANSCRIPT_BYTES = 100_000_000
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Shown(msgspec.Struct, frozen=True):
    """What a line shows: tokens used or free, rounded to `step`, and of which window in percent."""

    tokens: float
    step: float = 1
    percent: float | None = None
    is_free: bool = False


class Situation(msgspec.Struct, frozen=True):
    """A moment of a recorded session, and what its client hands to a status line.

    `has_figures`: clients before 2.0.65 had no `context_window` in it. `is_compacted`: the client
    has just compacted, and its next call is not made yet.
    """

    name: str
    scene: str
    window: int = 1_000_000
    session: str = SESSION
    has_figures: bool = True
    is_compacted: bool = False
    suffix: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """One tool in one situation."""

    situation: str
    truth: str
    shown: str
    right: bool


class Result(msgspec.Struct, frozen=True):
    """The figures of one tool; None if it does not do that."""

    name: str
    version: str
    contexts: list[Outcome]
    shows_compaction: bool
    totals: list[Outcome]
    agents: list[str]
    line_ratio: float
    long_line_ratio: float
    read_ratio: float | None


class Results(msgspec.Struct, frozen=True):
    """All that was measured; ratios are to an empty process and to ccusage's report."""

    measured: str
    tree_mb: int
    tools: list[Result]


SITUATIONS = (
    Situation("one request in several records", "tool-loop"),
    Situation("1M window", "1m", suffix="[1m]"),
    Situation("a subagent ran", "subagent-sync"),
    Situation("a subagent runs in the background", "subagent-background"),
    Situation("resumed session", "resume"),
    Situation("forked session with copied records", "fork", session=FORK),
    Situation("after errors of the API", "errors"),
    Situation("compacted, before the next call", "auto-compact", is_compacted=True),
    Situation("after a compaction", "auto-compact"),
    Situation("after an overflow", "too-long", window=200_000),
    Situation(OLDER, "tool-loop", has_figures=False),
    Situation(f"{OLDER}, 1M window", "1m", has_figures=False, suffix="[1m]"),
    Situation(f"{OLDER}, a subagent ran", "subagent-sync", has_figures=False),
    Situation(f"{OLDER}, after a compaction", "auto-compact", has_figures=False),
)


def read_line(name: str, line: str) -> Shown | None:
    """What a tool's status line shows of the context; None if it shows no figure."""
    text = ESCAPE.sub("", line).replace("\xa0", " ")
    if name == "ccusage":
        found = re.search(r"🧠 ([\d,]+) \((\d+)%\)", text)
        return found and Shown(_number(found[1]), percent=float(found[2]))
    if name == "ccstatusline":
        found = re.search(r"Ctx: ([\d.]+)([kM]?)", text)
        unit = {"": 1, "k": 1e3, "M": 1e6}[found[2]] if found else 1
        return found and Shown(float(found[1]) * unit, unit / 10)
    if name == "cc-context-stats":
        found = re.search(r"([\d,]+) \(([\d.]+)%\)", text)
        return found and Shown(_number(found[1]), percent=float(found[2]), is_free=True)
    found = re.search(r"([\d.]+)%\*? ([\d.]+)([KM]?)/", text)
    unit = {"": 1, "K": 1e3, "M": 1e6}[found[3]] if found else 1
    return found and Shown(float(found[2]) * unit, unit, float(found[1]))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def is_right(shown: Shown | None, calls: Sequence[Billed], situation: Situation) -> bool:
    """Whether a line shows what the last call sent, in its own rounding, of the true window."""
    if situation.is_compacted:
        compaction = next(each for each in calls if each.thread == "compaction")
        expected = sent_of(next(each for each in calls if each.sequence > compaction.sequence))
        off = AFTER_COMPACTION * expected
        return shown is None or abs(_used(shown, situation.window) - expected) <= off
    if shown is None:
        return False
    sent = sent_of(_last_call(calls))
    percent = 100 * sent / situation.window
    shown_percent = 100 - (shown.percent or 0) if shown.is_free else shown.percent
    # No older client ran the models of the recordings, so its window is not compared.
    is_compared = situation.has_figures and shown.percent is not None
    is_of_window = not is_compared or abs((shown_percent or 0) - percent) <= 1
    return is_of_window and abs(_used(shown, situation.window) - sent) <= shown.step / 2


def sent_of(call: Billed) -> int:
    """What the fake model billed for a call's input."""
    return call.usage.input + call.usage.cache_read + call.usage.cache_write


def _used(shown: Shown, window: int) -> float:
    return window - shown.tokens if shown.is_free else shown.tokens


def _last_call(calls: Sequence[Billed]) -> Billed:
    return next(each for each in reversed(calls) if each.thread == "main")


def stage(situation: Situation, home: Path) -> tuple[bytes, list[Billed]]:
    """Put a situation into a home folder; return the input of a status line, and the bill."""
    recording = load_fixture("claude", situation.scene, home.parent / f"{home.name}-fixture")
    recording.last.home.rename(home)
    (transcript,) = home.glob(f".claude/projects/*/{situation.session}.jsonl")
    calls = [each for one in recording.runs for each in one.billed]
    if situation.is_compacted:
        transcript.write_text("".join(_until_compacted(transcript.read_text())))
    last = _last_call(calls)
    model = f"{last.model}{situation.suffix}"
    given: dict[str, Any] = {
        "session_id": situation.session,
        "transcript_path": str(transcript),
        "cwd": "/home/dev/project",
        "model": {"id": model, "display_name": model},
        "workspace": {"current_dir": "/home/dev/project", "project_dir": "/home/dev/project"},
        "version": "2.1.325" if situation.has_figures else "2.0.60",
        "cost": {"total_cost_usd": 1.25, "total_duration_ms": 81_000},
    }
    if situation.has_figures:
        given["context_window"] = _context_window(situation, last)
    return msgspec.json.encode(given), calls


def _context_window(situation: Situation, last: Billed) -> dict[str, Any]:
    """As Claude Code 2.1.325 computes it: all 0 from a compaction to the next reply."""
    raw = {} if situation.is_compacted else last.raw
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    usage = {name: raw.get(name, 0) for name in (*names, "output_tokens")}
    sent = sum(usage[name] for name in names)
    used = round(100 * sent / situation.window)
    return {
        "total_input_tokens": sent,
        "total_output_tokens": usage["output_tokens"],
        "context_window_size": situation.window,
        "current_usage": usage,
        "used_percentage": used,
        "remaining_percentage": 100 - used,
    }


def _until_compacted(transcript: str) -> Iterator[str]:
    """The records up to the reply that follows a compaction."""
    is_compacted = False
    for line in transcript.splitlines(keepends=True):
        is_compacted |= '"compact_boundary"' in line
        if is_compacted and '"type":"assistant"' in line:
            return
        yield line


def environment(home: Path) -> dict[str, str]:
    """The environment of every tool: nothing of the user's own.

    ccusage keeps its last line for each session in the folder for temporary files.
    """
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "COLUMNS": "200",
    }


def ask_tool(tool: StatusLine, given: bytes, home: Path) -> str:
    """The status line of another tool."""
    done = subprocess.run(
        tool.command,
        input=given,
        env=environment(home) | tool.env,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.stdout.decode(errors="replace")


def ask_brimline(given: bytes, home: Path) -> str:
    """The status line of Brimline, by a daemon of its own."""
    with serving(home) as daemon:
        return daemon.ask("statusline", given).decode()


def show_contexts(name: str, ask: Callable[[bytes, Path], str], work: Path) -> list[Outcome]:
    """What a tool shows in every situation."""
    outcomes: list[Outcome] = []
    for number, situation in enumerate(SITUATIONS):
        home = work / f"{name}-{number}"
        given, calls = stage(situation, home)
        line = ask(given, home).strip()
        shown = read_line(name, line)
        truth = "unknown" if situation.is_compacted else str(sent_of(_last_call(calls)))
        seen = "no figure" if shown is None else msgspec.json.encode(shown).decode()
        outcomes.append(Outcome(situation.name, truth, seen, is_right(shown, calls, situation)))
    return outcomes


def shows_compaction(ask: Callable[[bytes, Path], str], home: Path) -> bool:
    """Whether the line has the tokens until the client compacts, at 967,000 of 1,000,000."""
    given, calls = stage(Situation("", "1m", suffix="[1m]"), home)
    last = _last_call(calls)
    left = 967_000 - sent_of(last) - last.usage.output
    line = ask(given, home)
    figures = (f"{left:,}", str(left), f"{left / 1e3:.0f}K", f"{left / 1e3:.1f}k")
    return any(figure in line for figure in figures)


def recorded() -> Iterator[tuple[str, str]]:
    """Every recorded scene, with its agent."""
    for path in sorted(FIXTURES.glob("*/*/billed.jsonl")):
        yield path.parent.parent.name, path.parent.name


def total_of_brimline(home: Path) -> int:
    """What all calls sent, by `brimline report`."""
    command = [sys.executable, "-m", "brimline", "report", "--since", "9999d", "--json"]
    usage = msgspec.json.decode(run(command, environment(home)).output)["total"]["usage"]
    return sum(usage[name] for name in ("input", "cache_read", "cache_write"))


def total_of_ccusage(home: Path) -> int:
    """What all calls sent, by `ccusage session`."""
    command = [str(ccusage(CACHE)), "session", "--json", "--offline"]
    totals = msgspec.json.decode(run(command, environment(home)).output, type=Report).totals
    return totals.input_tokens + totals.cache_creation_tokens + totals.cache_read_tokens


def sum_up(name: str, total: Callable[[Path], int], work: Path) -> list[Outcome]:
    """A tool's total of every recorded home folder, compared with the bill.

    Not every client writes down its compaction calls, so a total may have them or not.
    """
    outcomes: list[Outcome] = []
    for agent, scene in recorded():
        recording = load_fixture(agent, scene, work / f"{name}-{agent}-{scene}")
        calls = [each for one in recording.runs for each in one.billed]
        threads = sum(sent_of(each) for each in calls if each.thread in SIDE_THREADS)
        compactions = sum(sent_of(each) for each in calls if each.thread == "compaction")
        shown = total(recording.last.home)
        is_total = shown in (threads, threads + compactions)
        outcomes.append(Outcome(f"{agent}/{scene}", str(threads), str(shown), is_total))
    return outcomes


def agents_of(totals: Sequence[Outcome]) -> list[str]:
    """The agents of which a tool found any calls."""
    found = (each.situation.partition("/")[0] for each in totals if each.shown != "0")
    return list(dict.fromkeys(found))


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


def time_reports(tree: Path, work: Path, rounds: int) -> float:
    """A first `brimline report`, in times of ccusage's daily report of the same tree."""
    theirs = Case("ccusage", ccusage_report(ccusage(CACHE), "daily"))
    ours = Case("brimline", [sys.executable, "-m", "brimline", "report", "--json"])
    for number in range(rounds + 1):
        for case in (theirs, ours):
            home = work / f"report-{case.name}-{number}"
            home.mkdir()
            taken = run(case.command, environment(home) | {"CLAUDE_CONFIG_DIR": str(tree)})
            if number:
                case.runs.append(taken)
    return ours.best / theirs.best


def kept_tree(megabytes: int) -> Path:
    """The tree of `report.py`, of any age; created if there is none."""
    folder = CACHE / "tree"
    plan = Plan(size=megabytes * 1_000_000)
    if (folder / "stamp.json").exists():
        kept = msgspec.json.decode((folder / "stamp.json").read_bytes(), type=Tree)
        plan = msgspec.structs.replace(plan, now=kept.plan.now)
    make(folder, plan)
    return folder


def measure_tool(tool: StatusLine, line_ratios: list[float], work: Path) -> Result:
    """Measure another tool. Only ccusage has reports; the others read Claude Code's input alone."""
    name, is_reporter = tool.name, tool.name == "ccusage"
    ask = partial(ask_tool, tool)
    totals = sum_up(name, total_of_ccusage, work) if is_reporter else []
    return Result(
        name,
        tool.version,
        show_contexts(name, ask, work),
        shows_compaction(ask, work / f"limit-{name}"),
        totals,
        agents_of(totals) or ["claude"],
        line_ratios[0],
        line_ratios[1],
        1.0 if is_reporter else None,
    )


def measure_all(work: Path, rounds: int, megabytes: int) -> Results:
    """Measure every tool."""
    installed = status_lines(CACHE)
    lines = time_lines(installed, work / "lines", rounds)
    read_ratio = time_reports(kept_tree(megabytes), work, rounds=3)
    ours = sum_up("brimline", total_of_brimline, work)
    tools = [
        Result(
            "brimline",
            __version__,
            show_contexts("brimline", ask_brimline, work),
            shows_compaction(ask_brimline, work / "limit-brimline"),
            ours,
            agents_of(ours),
            lines["brimline"][0],
            lines["brimline"][1],
            read_ratio,
        )
    ]
    tools += [measure_tool(tool, lines[tool.name], work) for tool in installed]
    return Results(datetime.now(UTC).date().isoformat(), megabytes, tools)


def table(results: Results) -> str:
    """The table of the README."""
    tools = results.tools
    header = ["", *(f"{each.name} {each.version}" for each in tools)]
    rows = [
        ["context right", *(_share(_contexts(each, is_older=False)) for each in tools)],
        ["context right, older client", *(_share(_contexts(e, is_older=True)) for e in tools)],
        ["tokens until the compaction", *("yes" if e.shows_compaction else "no" for e in tools)],
        ["agents read", *(str(len(each.agents)) for each in tools)],
        ["totals equal the bill", *(_share(each.totals) for each in tools)],
        ["CPU of a status line", *(_times(each.line_ratio) for each in tools)],
        ["the same, 100 MB transcript", *(_times(each.long_line_ratio) for each in tools)],
        [
            f"time of a report of {results.tree_mb / 1_000:g} GB",
            *(_times(e.read_ratio) for e in tools),
        ],
    ]
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in lines)


def _contexts(tool: Result, is_older: bool) -> list[Outcome]:
    return [each for each in tool.contexts if each.situation.startswith(OLDER) == is_older]


def _share(outcomes: Sequence[Outcome]) -> str:
    right = sum(each.right for each in outcomes)
    return f"{right} of {len(outcomes)}" if outcomes else "-"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f} x" if ratio < 10 else f"{ratio:,.0f} x"


def read_results() -> Results:
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def write(results: Results) -> None:
    """Store the results, and put the table between its marks in the README."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}{table(results)}{END}{after}", "utf-8")


def main() -> int:
    """Measure, print the table and every difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="of each status line")
    parser.add_argument("--mb", type=int, default=1_000, help="size of the tree for reports")
    parser.add_argument("--write", action="store_true", help="store the results and the table")
    parser.add_argument("--table", action="store_true", help="print the stored table only")
    options = parser.parse_args()
    if options.table:
        print(table(read_results()), end="")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "lines").mkdir()
        results = measure_all(work, options.rounds, options.mb)
    for tool in results.tools:
        for each in (*tool.contexts, *tool.totals):
            if not each.right:
                print(f"{tool.name}: {each.situation}: {each.shown}, truth {each.truth}")
    print(table(results), end="")
    if options.write:
        write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
