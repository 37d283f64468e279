"""Compare `brimline inspect --json` with the known figures of a corpus of transcripts.

`python scripts/corpus.py DIR` reads DIR/truth.json, prints a line for every file in it, and fails
on a difference. It also compares the fast reader with the one that reads every record, and checks
that the parts of each context add up to what was sent, with little that is unexplained; and that
what Codex compares with its limit explains where it compacted.
"""

import os
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from statistics import median, quantiles

import msgspec

from brimline.agents import agent_names, source
from brimline.agents.transcripts.source import Places, ReadMode, Transcript
from brimline.cli.context import CommandContext
from brimline.cli.inspect import Inspected, ThreadShown, shown
from brimline.context.events import MAIN
from brimline.context.tracker import Session, fold, held_at_trigger, main_thread, resolve_context
from brimline.context.window import NO_CLIENT_SETTINGS, expect_limit, window_of
from brimline.errors import BrimlineError
from brimline.sessions.ledger.session_ledger import read_ledger
from brimline.sessions.target import load_target
from brimline.settings import Settings

FIGURES = ("calls", "sent", "peak_sent", "compactions")
# How much of a context may be unexplained: in the median thread, and in the ninth of ten.
MEDIAN_SHARE, NINTH_SHARE = 0.03, 0.10
# How near to the limit what the client compares is at this share of its automatic compactions.
NEAR_LIMIT, NEAR_SHARE = 0.02, 5 / 6


class Truth(msgspec.Struct, frozen=True):
    """The figures of a file by another program; None is unknown and not compared."""

    agent: str
    calls: int | None
    sent: int | None
    peak_sent: int | None
    compactions: int | None
    subagent_file: bool = False


class Compared(msgspec.Struct, frozen=True):
    """A line of the table: each figure as shown, and the differences.

    `unexplained` is the share of each thread's context that no content accounts for. `compacted_at`
    is what the client compared at each automatic compaction, as a share of the limit.
    """

    file: str
    figures: tuple[str, ...]
    wrong: tuple[str, ...]
    unexplained: tuple[float, ...] = ()
    agent: str = ""
    compacted_at: tuple[float, ...] = ()


def context(home: Path) -> CommandContext:
    """The context of a user without settings."""
    return CommandContext(Places(home, {}), Settings(), width=100, colour=False, now=0.0)


def thread_of(inspected: Inspected, truth: Truth) -> ThreadShown | None:
    """The thread that the truth is about: the main one, the only one of a subagent's file."""
    if truth.subagent_file:
        return inspected.threads[0] if len(inspected.threads) == 1 else None
    return next((thread for thread in inspected.threads if thread.thread == MAIN), None)


def ours(thread: ThreadShown | None) -> dict[str, int | None]:
    """Our figures; a file without the thread has no call in it."""
    if thread is None:
        return {"calls": 0, "sent": None, "peak_sent": None, "compactions": 0}
    return {
        "calls": thread.calls,
        "sent": thread.last_sent,  # the truth has the last call's, also before a compaction
        "peak_sent": thread.peak_sent,
        "compactions": sum(not compaction.inferred for compaction in thread.compactions),
    }


def compare(folder: Path, file: str, truth: Truth, home: Path) -> Compared:
    """One file of the corpus against its truth."""
    path = str(folder / file)
    scratch = context(home)
    try:
        inspected = shown(scratch, load_target(path, scratch.places, BytesIO()), series=False)
    except BrimlineError as error:
        return Compared(file, ("",) * len(FIGURES), (str(error),))
    found = ours(thread_of(inspected, truth))
    figures: list[str] = []
    wrong: list[str] = []
    if inspected.agent != truth.agent:
        wrong.append(f"read as {inspected.agent}, is {truth.agent}")
    for name in FIGURES:
        true: int | None = getattr(truth, name)
        same = true is None or found[name] == true
        figures.append(f"{_number(found[name])}/{_number(true)}{'' if same else ' <<'}")
        if not same:
            wrong.append(name)
    if not quick_is_every(path, truth.agent):
        wrong.append("the fast reader differs")
    unexplained = unexplained_shares(path, truth.agent)
    if unexplained is None:
        wrong.append("the parts of a context do not add up")
    limits = shares_of_limit(path, truth.agent)
    return Compared(file, tuple(figures), tuple(wrong), unexplained or (), truth.agent, limits)


def shares_of_limit(path: str, agent: str) -> tuple[float, ...]:
    """What was compared at each automatic compaction of the main thread, by the expected limit."""
    session = _session(path, agent, "every")[0]
    thread = main_thread(session)
    if thread is None:
        return ()
    known = resolve_context(session, thread, NO_CLIENT_SETTINGS)
    limit = expect_limit(known, window_of(known))
    compared = [held_at_trigger(each) for each in thread.compactions]
    return tuple(tokens / limit for tokens in compared if tokens and limit)


def near_limit(lines: list[Compared], agent: str) -> tuple[int, int]:
    """How many automatic compactions of an agent came near its limit, and how many there are."""
    shares = [share for line in lines if line.agent == agent for share in line.compacted_at]
    return sum(abs(share - 1) <= NEAR_LIMIT for share in shares), len(shares)


def unexplained_shares(path: str, agent: str) -> tuple[float, ...] | None:
    """The unexplained share of each thread's context; None if the parts of a call do not add up."""
    shares: list[float] = []
    for ledger in read_ledger(Transcript(agent, path, 0.0, 0)).threads:
        for balance in ledger.balances:
            if sum(balance.categories) + balance.unexplained != balance.sent:
                return None
        if ledger.sent:
            if sum(entry.tokens for entry in ledger.entries) + ledger.unexplained != ledger.sent:
                return None
            shares.append(ledger.unexplained / ledger.sent)
    return tuple(shares)


def quick_is_every(path: str, agent: str) -> bool:
    """Whether the fast reader, which skips lines, finds the same as reading every line."""
    quick, every = (_threads(path, agent, how) for how in ("quick", "every"))
    return quick == every


def _threads(path: str, agent: str, how: ReadMode) -> tuple[object, int]:
    session, offset = _session(path, agent, how)
    return session.threads, offset


def _session(path: str, agent: str, how: ReadMode) -> tuple[Session, int]:
    status = os.stat(path)
    transcript = Transcript(agent, path, status.st_mtime, status.st_size)
    reader = source(agent).read(transcript, how=how)
    return fold(Session(agent=agent), reader), reader.cursor.offset


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def table(lines: list[Compared]) -> list[str]:
    """The lines for people, ours/truth in each column."""
    rows = [("file", *FIGURES, "differs in")]
    rows += [(line.file, *line.figures, "; ".join(line.wrong)) for line in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def main(arguments: list[str]) -> int:
    """Compare a whole corpus; returns 0 without a corpus or difference, else 1."""
    if not arguments:
        print("no corpus of transcripts to compare with")
        return 0
    folder = Path(arguments[0])
    if not (folder / "truth.json").is_file():
        print(f"{folder} is no corpus: it has no truth.json", file=sys.stderr)
        return 1
    truths = msgspec.json.decode((folder / "truth.json").read_bytes(), type=dict[str, Truth])
    with tempfile.TemporaryDirectory() as home:
        lines = [compare(folder, *item, Path(home)) for item in sorted(truths.items())]
    print("\n".join(table(lines)))
    differing = sum(bool(line.wrong) for line in lines)
    print(f"{len(lines)} files, {differing} differ; each figure is ours/truth")
    shares = [share for line in lines for share in line.unexplained]
    middle, ninth = median(shares), quantiles(shares, n=10)[-1]
    print(f"unexplained: {middle:.1%} of the median context, {ninth:.1%} of the ninth of ten")
    near = {agent: near_limit(lines, agent) for agent in agent_names()}
    for agent, (count, total) in near.items():
        if total:
            print(f"{agent}: {count} of {total} automatic compactions within 2 % of the limit")
    is_explained = near["codex"][0] >= NEAR_SHARE * near["codex"][1]
    too_much = middle > MEDIAN_SHARE or ninth > NINTH_SHARE
    return 1 if differing or too_much or not is_explained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
