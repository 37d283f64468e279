"""Count which facts of a session its drafts and its client's summaries name after a compaction.

`python bench/survival.py DIR...` reads every transcript below the folders. It shares no code with
`brimline.handoff`: drafts are made by the command, facts are found here. A fact is

- a statement: a message of the user with three words of four or more letters; of a message of more
  than 1,500 characters the first and the last paragraph
- a number of two or more digits that is no time, or a path, in a statement
- a file that the agent's tools changed
- an open to-do
- a failing test, by its name in the output of a command, until a later output of the same program
  names no failure

since the session began or was cleared. A statement or a to-do is named if 80 % of its words of
four or more letters stand in one paragraph or list item, anything else if it stands there whole.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from brimline.agents import get_agent
from brimline.agents.content import (
    ContextCleared,
    Piece,
    SummaryText,
    Todo,
    TodoChange,
    TodoList,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN, Compacted

SOURCE = Path(__file__).parent.parent / "src"
LONG_MESSAGE_CHARS = 1_500
MIN_WORDS = 3
SHARE = 0.8
RECALLED_WORDS = 5
SMALL_SAMPLE = 20  # no goal for fewer facts of a kind

GOALS = {"statements": 90, "files": 99, "numbers": 90, "to-dos": 90, "tests": 90, "paths": None}
AGENTS = ("claude", "codex", "gemini", "pi")  # whose transcripts are files of lines

_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"(?<![\w.:#/-])\d{2,}(?:[.,]\d+)?(?![\w:/-])")
_PATH = re.compile(r"(?<![\w:/])[\w.~@-]*(?:/[\w.@-]+)+|(?<![\w/:.])\w[\w-]*\.[a-z]{1,4}(?![\w/.])")
_PARAGRAPH = re.compile(r"\n[ \t>]*\n|\n(?=[-*] |\d+\. )")
_FAILING = re.compile(
    r"^\s*--- FAIL: (\S+)|^FAILED ([^\s:]+::\S+)|^test (\S+) \.\.\. FAILED|^\s*[✗✘×✕] (.{4,80}?)"
    r"(?: [\d(].*)?$|^not ok \d+ - (.{4,80})$",
    re.MULTILINE,
)


class Fact(NamedTuple):
    kind: str
    text: str

    def is_in(self, text: str) -> bool:
        """Whether a text names it."""
        if self.kind in ("statements", "to-dos"):
            words = set(_WORD.findall(self.text.lower()))
            paragraphs = map(str.lower, _PARAGRAPH.split(text))
            return any(sum(w in p for w in words) >= SHARE * len(words) for p in paragraphs)
        return re.search(rf"(?<!\w){re.escape(self.text)}(?!\w)", text) is not None


class Session:
    """The facts of a session so far."""

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}
        self.files: dict[str, None] = {}
        self.todos: dict[str, Todo] = {}
        self.failing: dict[str, set[str]] = {}  # by program
        self._edits: dict[str, tuple[str, ...]] = {}  # by call
        self._programs: dict[str, str] = {}

    def add(self, piece: Piece) -> None:
        match piece:
            case UserText(text):
                self.messages |= dict.fromkeys(statements_of(text))
            case ToolCall(kind="edit", files=files):
                self._edits[piece.call_id] = files
            case ToolCall(kind="command", command=command):
                self._programs[piece.call_id] = " ".join(command.split()[:2])
                self._edits[piece.call_id] = piece.files
            case ToolResult():
                if piece.ok is not False and piece.state == "done":
                    self.files |= dict.fromkeys(self._edits.get(piece.call_id, ()))
                if program := self._programs.get(piece.call_id):
                    names = _FAILING.finditer(piece.output)
                    self.failing[program] = {match[match.lastindex or 0] for match in names}
            case TodoList(todos):
                self.todos = {todo.text: todo for todo in todos}
            case TodoChange(key, text, state):
                old = self.todos.get(key, Todo(""))
                self.todos[key] = Todo(text or old.text, state or old.state)
            case _:
                pass

    def facts(self) -> list[Fact]:
        names = Counter(Path(file).name for file in self.files)
        found = [Fact("statements", text) for text in self.messages]
        for text in self.messages:
            found += [Fact("numbers", match) for match in _NUMBER.findall(text)]
            found += [Fact("paths", match.rstrip(".")) for match in _PATH.findall(text)]
        for file in self.files:
            path = Path(file)
            found.append(
                Fact(
                    "files",
                    path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}",
                )
            )
        for todo in self.todos.values():
            if todo.state not in ("completed", "deleted", "cancelled", "done") and todo.text:
                found.append(Fact("to-dos", todo.text))
        found += [Fact("tests", name) for names in self.failing.values() for name in names]
        return list(dict.fromkeys(found))


class Compaction(NamedTuple):
    """What stood before a compaction, and the summary; None if that cannot be read."""

    records: list[bytes]
    facts: list[Fact]
    summary: str | None


def statements_of(message: str) -> Iterator[str]:
    parts = [message.strip()]
    if len(message) > LONG_MESSAGE_CHARS:
        paragraphs = re.split(r"\n\s*\n", message.strip())
        parts = [paragraphs[0], paragraphs[-1]]
    for part in parts:
        if len(set(_WORD.findall(part))) >= MIN_WORDS and len(part) <= LONG_MESSAGE_CHARS:
            yield part


def agent_of(path: Path) -> str | None:
    """The agent whose transcript it is, by its beginning."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    return next((a for a in AGENTS if get_agent(a).source.recognise(head) == "transcript"), None)


def compactions_of(path: Path, agent: str) -> Iterator[Compaction]:
    """Every compaction of the main thread that no user asked for."""
    reader, session = get_agent(agent).content_reader(), Session()
    before: list[bytes] = []
    waiting: Compaction | None = None
    for record in get_agent(agent).source.records(Transcript(agent, str(path), 0.0, 1)):
        ends = [
            each for each in record.events if isinstance(each, Compacted) and each.thread == MAIN
        ]
        if ends and ends[-1].trigger != "manual":
            waiting = Compaction([*before], session.facts(), None)
        pieces = list(read_content([record.data], reader)) if record.data else []
        for piece in pieces:
            if waiting and isinstance(piece, SummaryText):
                yield waiting._replace(summary=piece.text)
                waiting = None
            elif isinstance(piece, ContextCleared):
                session = Session()
            session.add(piece)
        if record.data:
            before.append(record.data)
    if waiting:
        yield waiting


class Home:
    """A folder as the home of a user, with what stood before a compaction as a transcript."""

    def __init__(self, folder: str, compaction: Compaction, agent: str) -> None:
        self._folder = folder
        self._agent = agent
        self._path = str(Path(folder, "transcript.jsonl"))
        Path(self._path).write_bytes(b"\n".join(compaction.records) + b"\n")

    def draft(self, source: Path) -> str:
        """The draft that the command of a source tree makes."""
        return self._run(source, ["handoff", "--draft", self._path, "--agent", self._agent])

    def recall(self, fact: Fact) -> bool:
        """Whether `brimline recall` finds a fact by its longest words, or by its text."""
        words = [f'"{fact.text}"']
        if fact.kind in ("statements", "to-dos"):
            longest = sorted(set(_WORD.findall(fact.text)), key=len, reverse=True)
            words = longest[:RECALLED_WORDS] or words
        found = self._run(SOURCE, ["recall", *words, "--session", self._path, "--json"])
        return bool(found and json.loads(found)["hits"])

    def _run(self, source: Path, arguments: list[str]) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": self._folder, "LANG": "C.UTF-8"}
        environment["PYTHONPATH"] = str(source)
        command = [sys.executable, "-m", "brimline", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{arguments[0]} failed: {done.stderr.strip()}", file=sys.stderr)
        return done.stdout


class Table:
    """Facts in all, and those named, by kind and by where they are looked for."""

    def __init__(self) -> None:
        self.facts: Counter[tuple[str, str]] = Counter()
        self.named: Counter[tuple[str, str]] = Counter()
        self.columns: dict[str, None] = {}

    def add(self, column: str, facts: Iterable[Fact], text: str | None) -> None:
        self.columns[column] = None
        for fact in facts if text is not None else ():
            self.count(column, fact, fact.is_in(text or ""))

    def count(self, column: str, fact: Fact, is_named: bool) -> None:
        self.columns[column] = None
        self.facts[column, fact.kind] += 1
        self.named[column, fact.kind] += is_named

    def rows(self) -> Iterator[str]:
        yield "".join([f"{'':<12}", *(f"{column:>22}" for column in self.columns), f"{'goal':>8}"])
        for kind, goal in GOALS.items():
            cells = [self._cell(column, kind) for column in self.columns]
            enough = max(self.facts[column, kind] for column in self.columns) >= SMALL_SAMPLE
            yield "".join([f"{kind:<12}", *cells, f"{f'{goal} %' if goal and enough else '-':>8}"])

    def _cell(self, column: str, kind: str) -> str:
        total, named = self.facts[column, kind], self.named[column, kind]
        share = f"{100 * named / total:.0f} %" if total else "-"
        return f"{f'{named} of {total}':>15}{share:>7}"


def some_of(facts: Iterable[Fact], most: int) -> Iterator[Fact]:
    """Yield the first facts of each kind, at most so many."""
    counts = Counter[str]()
    for fact in facts:
        counts[fact.kind] += 1
        if counts[fact.kind] <= most:
            yield fact


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--old", type=Path, metavar="SRC", help="src of an older version")
    parser.add_argument(
        "--recall",
        type=int,
        default=0,
        metavar="N",
        help="also search N facts of each kind and compaction with `brimline recall`",
    )
    parser.add_argument("--missing", metavar="KIND", help="print the facts that the draft lacks")
    options = parser.parse_args(arguments)
    trees = {"old": options.old} if options.old else {}
    trees["draft"] = SOURCE
    table, compactions = Table(), 0
    for path in sorted(file for folder in options.folders for file in folder.rglob("*.jsonl")):
        if (agent := agent_of(path)) is None:
            continue
        for compaction in compactions_of(path, agent):
            compactions += 1
            facts, summary = compaction.facts, compaction.summary
            with tempfile.TemporaryDirectory() as folder:
                home = Home(folder, compaction, agent)
                drafts = {name: home.draft(tree) for name, tree in trees.items()}
                for fact in some_of(facts, options.recall):
                    table.count("recall", fact, home.recall(fact))
            table.add("summary", facts, summary)
            for name, draft in drafts.items():
                both = None if summary is None else f"{summary}\n\n{draft}"
                table.add(f"summary + {name}", facts, both)
            for name, draft in drafts.items():
                table.add(f"{name} alone", facts, draft)
            missing = (
                f for f in facts if f.kind == options.missing and not f.is_in(drafts["draft"])
            )
            for fact in missing:
                print(f"{path.name} {compactions}: {fact.text[:300]!r}")
    print(f"{compactions} compactions")
    print("\n".join(table.rows()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
