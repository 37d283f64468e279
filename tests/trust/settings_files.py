"""Setup and its removal with generated settings files: every file is the same again, to the byte.

Each home has the settings of all agents that have a settings file, and Brimline's own; the commands
are those of the user. A file that setup refuses to change must stay as it is.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from brimline.agents import get_agent
from files.jsonc_texts import WORDS, files
from hypothesis_examples import run_examples
from install.machine import FILES
from preloaded import run_brimline
from server.running import MAX_WAIT_S

from .row import RowResult

AGENTS = ("claude", "codex", "gemini")  # others have a file that is all ours
CONFIG = ".config/brimline/config.toml"
COMMANDS = (
    ("setup", *AGENTS),
    ("setup", "--parent", "0f-1"),
    ("setup", "--remove", "--parent"),
    ("setup", "--remove", *AGENTS),
)
INSTALLED = 2  # so many of the commands install something
REPORTED_FILES = 100  # between two lines of progress


def config_files() -> SearchStrategy[str]:
    """Settings of Brimline in TOML, with comments and both kinds of line ends."""
    comments = WORDS.map(lambda text: f"# {text}")
    windows = st.lists(st.integers(1, 10**6), max_size=3).map(
        lambda sizes: [f"'model-{place}' = {size:_} # é" for place, size in enumerate(sizes)]
    )
    levels = st.sampled_from([[], ["levels = [40, 60]"], ["levels=[ 40,", "  60 ] # two"]])
    gaps = st.lists(st.one_of(comments, st.just("")), max_size=3)
    lines = st.tuples(gaps, levels, gaps, windows.map(lambda rows: ["[windows]", *rows]), gaps)
    texts = lines.map(lambda parts: [line for part in parts for line in part])
    ends = st.sampled_from(["\n", "\r\n"])
    return st.tuples(texts, ends, st.booleans()).map(
        lambda made: made[1].join(made[0]) + made[1] * made[2]
    )


HOMES: SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {FILES[agent]: files(get_agent(agent).install_spec.dialect) for agent in AGENTS}
    | {CONFIG: config_files()}
)


@dataclass
class Tried:
    """How many files were tried and changed, and which were not restored."""

    folder: Path
    files: int = 0
    changed: int = 0
    problems: list[str] = field(default_factory=list[str])

    def try_home(self, texts: dict[str, str]) -> None:
        """Set up all agents of a home, and remove everything again."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            home = Path(name)
            contents = {home / path: text.encode() for path, text in texts.items()}
            for path, content in contents.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            for number, command in enumerate(COMMANDS, 1):
                self._run(home, command)
                if number == INSTALLED:
                    self.changed += sum(path.read_bytes() != contents[path] for path in contents)
            for path, content in contents.items():
                restored = path.read_bytes() if path.exists() else None
                if restored != content:
                    self.problems.append(f"{path.name}: {content!r} became {restored!r}")
        self.files += len(contents)
        if self.files % REPORTED_FILES == 0:
            print(f"{self.files} files, {self.changed} were changed", flush=True)

    def _run(self, home: Path, command: tuple[str, ...]) -> None:
        env = {"HOME": str(home), "BRIMLINE_STATE_DIR": str(home / "state"), "LANG": "C.UTF-8"}
        done = run_brimline(command, env=env, timeout=MAX_WAIT_S, cwd=home)
        if b"Traceback" in done.stderr:
            self.problems.append(f"{' '.join(command)}: {done.stderr.decode()}")


def set_up_and_remove(folder: Path, files: int) -> RowResult:
    """Try so many generated files."""
    tried = Tried(folder)
    run_examples(HOMES, files // (len(AGENTS) + 1), tried.try_home)
    figures = {
        "files": tried.files,
        "changed by setup": tried.changed,
        "not restored": len(tried.problems),
    }
    return RowResult(figures, {"not restored": 0}, tried.problems)
