"""Measure the historic formulas on a corpus of transcripts, for the page "Which formula?".

`python scripts/formulas.py DIR` writes the tables of docs/concepts/which-formula.md anew; with
`--check` it fails where the written ones are not what the corpus gives. Only figures leave the
corpus: no text, no name of a file or project.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec

from brimline.formulas import FORMULAS, off_by
from brimline.sources import AGENTS, source
from brimline.sources.base import Transcript
from brimline.tracker import Session, fold, main_thread
from brimline.usage import Usage

PAGE = Path(__file__).parent.parent / "docs/concepts/which-formula.md"
BEGIN, END = "<!-- made by scripts/formulas.py -->", "<!-- until here -->"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
Formula = Callable[[Sequence[Usage]], int]


def held(calls: Sequence[Usage]) -> int:
    """What the next call starts with: how much it matters whether the reply is counted."""
    return calls[-1].held


ROWS: dict[str, Formula] = {"latest": FORMULAS["latest"], "held": held, **FORMULAS}


class Truth(msgspec.Struct, frozen=True):
    """What the corpus says of a file, computed by somebody else; `sent` is the last call's."""

    agent: str
    sent: int | None = None
    subagent_file: bool = False


class Thread(msgspec.Struct, frozen=True):
    """The main thread of a transcript: its calls, and which are the first after a compaction."""

    agent: str
    sent: int | None
    calls: tuple[Usage, ...]
    after: frozenset[int]

    @property
    def moments(self) -> dict[str, Sequence[int]]:
        """The calls at which the formulas are measured."""
        count = len(self.calls)
        return {"end": (count - 1,), "every": range(count), "after": sorted(self.after)}

    def truth(self, place: int) -> int:
        """What a call sent: the last one's by the corpus, where it knows, the others' by usage."""
        last = place == len(self.calls) - 1
        return self.sent if last and self.sent is not None else self.calls[place].sent


def threads(folder: Path) -> list[Thread]:
    """Every transcript of a corpus that has calls in its main thread."""
    truths = msgspec.json.decode((folder / "truth.json").read_bytes(), type=dict[str, Truth])
    own = [(folder / file, told) for file, told in sorted(truths.items()) if not told.subagent_file]
    found = [thread(str(path), told) for path, told in own]
    return [one for one in found if one.calls]


def thread(path: str, told: Truth) -> Thread:
    """The main thread of a file."""
    status = os.stat(path)
    transcript = Transcript(told.agent, path, status.st_mtime, status.st_size)
    main = main_thread(fold(Session(agent=told.agent), source(told.agent).read(transcript)))
    calls = tuple(call.usage for call in main.calls.values()) if main else ()
    compactions = main.compactions if main else ()
    after = frozenset(made.calls for made in compactions if made.calls < len(calls))
    return Thread(told.agent, told.sent, calls, after)


def errors(measured: Sequence[Thread], formula: Formula, moment: str) -> list[float]:
    """How far a formula is off at a moment of every thread, in per cent of what was sent."""
    found = (
        off_by(formula(one.calls[: place + 1]), one.truth(place))
        for one in measured
        for place in one.moments[moment]
    )
    return [error for error in found if error is not None]


def shown(found: list[float]) -> tuple[str, str]:
    """The median of some errors, and the largest of them either way."""
    if not found:
        return "", ""
    return percent(median(found)), percent(max(found, key=abs))


def percent(error: float) -> str:
    """An error for people: 0, +0.4 %, -89 %, +2,606 %."""
    if abs(error) < 0.05:
        return "0"
    return f"{error:+,.0f} %" if abs(error) >= 9.95 else f"{error:+.1f} %"


def table(measured: Sequence[Thread]) -> Iterator[str]:
    """The rows of a table; a moment that no thread has is left out."""
    names = {"end": "at the end", "every": "at every call", "after": "after a compaction"}
    there = [moment for moment in names if any(one.moments[moment] for one in measured)]
    yield "| formula | " + " | ".join(f"{names[moment]}: median | worst" for moment in there) + " |"
    yield "|---" + "|--:" * 2 * len(there) + "|"
    for name, formula in ROWS.items():
        cells = [cell for moment in there for cell in shown(errors(measured, formula, moment))]
        yield f"| `{name}` | " + " | ".join(cells) + " |"


def counted(measured: Sequence[Thread]) -> str:
    """How much was measured."""
    calls = sum(len(one.calls) for one in measured)
    compactions = sum(len(one.after) for one in measured)
    parts = [_number(len(measured), "transcript"), _number(calls, "call")]
    parts += [_number(compactions, "compaction")] if compactions else []
    return ", ".join(parts)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def section(measured: Sequence[Thread]) -> str:
    """The part of the page that is made: one table of all, one for each agent."""
    agents = [agent for agent in AGENTS if any(one.agent == agent for one in measured)]
    corpus = f"a corpus of {_number(len(measured), 'real transcript')}"
    whose = f"{NUMBERS[len(agents)]} agent{'' if len(agents) == 1 else 's'}"
    parts = [f"Measured on {corpus} of {whose}.", part("All", measured)]
    parts += [
        part(AGENTS[agent], [one for one in measured if one.agent == agent]) for agent in agents
    ]
    return "\n\n".join(parts)


def part(title: str, measured: Sequence[Thread]) -> str:
    """A table with its title."""
    return f"### {title}: {counted(measured)}\n\n" + "\n".join(table(measured))


def with_section(text: str, made: str) -> str:
    """A page with the made part between its two marks; ValueError where they are not there."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"expected {BEGIN} and {END} in the page")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def main(arguments: list[str], page: Path = PAGE) -> int:
    """Write the tables, or check them; without a corpus there is nothing to check."""
    check = "--check" in arguments
    named = [argument for argument in arguments if argument != "--check"]
    folder = Path(named[0]) if named else None
    if folder is None or not (folder / "truth.json").is_file():
        print("no corpus given" + (f": {folder} has no truth.json" if folder else ""))
        return 0 if check else 2
    text = page.read_text("utf-8")
    made = with_section(text, section(threads(folder)))
    if not check:
        page.write_text(made, "utf-8")
    elif made != text:
        print(f"{page.name} is stale: run `make formulas DIR=...`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
