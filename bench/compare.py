"""Compare Brimline with other tools on recorded sessions, and write the table of the README.

The sessions are the fixtures in tests/fixtures: real clients ran against a fake model, and its bill
is the truth. Every tool runs offline in a home folder of its own. `--write` puts the results into
bench/results/compare.json and the table into README.md; `--table` prints the stored one.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from brimline.testing.fake_model import Billed
from compare_times import kept_tree, time_lines, time_reports
from other_tools import StatusLine, status_lines
from reporters import Reporter, environment, reporters
from serving import serving

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
EXPLAINED_AGENTS = ("claude", "codex")
SIDE_THREADS = ("main", "subagent")  # what every client writes into its files
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


Ask = Callable[[bytes, Path], str]
"""A status line: from its input and its home folder."""


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
    """The figures of one tool; empty or None if it does not do that."""

    name: str
    version: str
    agents: int
    contexts: list[Outcome] = []
    shows_compaction: bool | None = None
    parts: list[Outcome] = []
    totals: list[Outcome] = []
    line_ratio: float | None = None
    long_line_ratio: float | None = None
    read_ratio: float | None = None


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


def show_contexts(name: str, ask: Ask, work: Path) -> list[Outcome]:
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


def shows_compaction(ask: Ask, home: Path) -> bool:
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


def add_up(tool: Reporter, work: Path) -> list[Outcome]:
    """Whether what fills the main thread of a recorded session adds up to what its last call sent.

    The sessions are those of the agents that all of these tools explain.
    """
    if tool.parts is None:
        return []
    outcomes: list[Outcome] = []
    for agent, scene in recorded():
        if agent in EXPLAINED_AGENTS:
            recording = load_fixture(agent, scene, work / f"parts-{tool.name}-{agent}-{scene}")
            sent = sent_of(_last_call([each for one in recording.runs for each in one.billed]))
            session = FORK if scene == "fork" else SESSION
            shown = tool.parts(recording.last.home, agent, session)
            outcomes.append(Outcome(f"{agent}/{scene}", str(sent), str(shown), shown == sent))
    return outcomes


def measure_line(name: str, ratios: Sequence[float], work: Path, ask: Ask) -> dict[str, Any]:
    """The figures of a status line."""
    return {
        "contexts": show_contexts(name, ask, work),
        "shows_compaction": shows_compaction(ask, work / f"limit-{name}"),
        "line_ratio": ratios[0],
        "long_line_ratio": ratios[1],
    }


def measure_all(work: Path, rounds: int, megabytes: int) -> Results:
    """Measure every tool."""
    installed = status_lines(CACHE)
    ratios = time_lines(installed, work / "lines", rounds)
    asks: dict[str, Ask] = {"brimline": ask_brimline}
    asks |= {each.name: partial(ask_tool, each) for each in installed}
    lines = {name: measure_line(name, ratios[name], work, ask) for name, ask in asks.items()}
    read_ratio = time_reports(CACHE, kept_tree(CACHE, megabytes), work, rounds=3)
    read_ratios = {"brimline": read_ratio, "ccusage": 1.0}
    tools = [
        Result(
            each.name,
            each.version,
            each.agents,
            parts=add_up(each, work),
            totals=sum_up(each.name, each.total, work),
            read_ratio=read_ratios.get(each.name),
            **lines.pop(each.name, {}),
        )
        for each in reporters(CACHE)
    ]
    # The other status lines read Claude Code's input alone.
    tools[2:2] = [
        Result(each.name, each.version, 1, **lines[each.name])
        for each in installed
        if each.name in lines
    ]
    return Results(datetime.now(UTC).date().isoformat(), megabytes, tools)


def table(results: Results) -> str:
    """The table of the README."""
    tools = results.tools
    header = ["", *(f"{each.name} {each.version}" for each in tools)]
    shown: dict[str, Callable[[Result], str]] = {
        "status line: situations with the right context": lambda e: _share(_contexts(e, False)),
        "the same with an older client": lambda e: _share(_contexts(e, True)),
        "status line: shows the tokens until the compaction": lambda e: _yes(e.shows_compaction),
        "sessions whose parts add up to the bill": lambda e: _share(e.parts),
        "home folders whose total equals the bill": lambda e: _share(e.totals),
        "agents that it reads, by its own help or README": lambda e: str(e.agents),
        "CPU of a status line, in empty processes": lambda e: _times(e.line_ratio),
        "the same with a transcript of 100 MB": lambda e: _times(e.long_line_ratio),
        f"time of a report of {results.tree_mb / 1_000:g} GB, in that of ccusage": (
            lambda e: _times(e.read_ratio)
        ),
    }
    rows = [[name, *map(cell, tools)] for name, cell in shown.items()]
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in lines)


def _contexts(tool: Result, is_older: bool) -> list[Outcome]:
    return [each for each in tool.contexts if each.situation.startswith(OLDER) == is_older]


def _share(outcomes: Sequence[Outcome]) -> str:
    right = sum(each.right for each in outcomes)
    return f"{right} of {len(outcomes)}" if outcomes else "-"


def _yes(is_so: bool | None) -> str:
    return "-" if is_so is None else "yes" if is_so else "no"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


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
        for each in (*tool.contexts, *tool.parts, *tool.totals):
            if not each.right:
                print(f"{tool.name}: {each.situation}: {each.shown}, truth {each.truth}")
    print(table(results), end="")
    if options.write:
        write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
