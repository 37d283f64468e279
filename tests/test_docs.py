"""The examples of README and docs, run as they stand there."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.testing.fake_model import FakeModel, Reply, Scenario

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page.relative_to(ROOT)
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/README.md")]
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIXTURES = ROOT / "tests" / "fixtures"


def blocks(kind: str) -> Iterator[tuple[str, str]]:
    """Every code block of a kind, by its page and place."""
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for number, found in enumerate(BLOCK.finditer(text)):
            if found[1] == kind:
                yield f"{page}#{number}", found[2]


def cases(kind: str) -> list[object]:
    """The blocks of a kind as test cases."""
    return [pytest.param(text, id=name) for name, text in blocks(kind)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with recorded sessions of the real clients, and a working folder with two files."""
    home = tmp_path / "home"
    for scene in ("claude/auto-compact", "codex/tool-loop", "pi/tool-loop"):
        shutil.copytree(FIXTURES / scene / "home", home, dirs_exist_ok=True)
    for path in home.rglob("*"):
        os.utime(path)
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(ROOT / "src/brimline/data/demo.jsonl", work / "session.jsonl")
    shutil.copy(FIXTURES / "claude/partial/stream-1.jsonl", work / "stream.jsonl")
    return tmp_path


@pytest.fixture(scope="session")
def model() -> Iterator[FakeModel]:
    """The model that the examples with an SDK talk to."""
    with FakeModel(Scenario(main=(Reply(text="Hello."),))) as fake:
        yield fake


def keys(model: FakeModel) -> dict[str, str]:
    """What makes the SDKs talk to it."""
    return {
        "ANTHROPIC_BASE_URL": model.base_url,
        "ANTHROPIC_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{model.base_url}/v1",
        "OPENAI_API_KEY": "dummy",
    }


def environment(place: Path) -> dict[str, str]:
    """What an example runs in."""
    return {
        "HOME": str(place / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def run(command: str, place: Path) -> str:
    """What a shell command prints, both outputs together."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=place / "work",
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout


def expected(text: str) -> "re.Pattern[str]":
    """What an example says is printed; `...` stands for anything, alone on a line for any lines."""
    lines = [".*" if line == "..." else re.escape(line) for line in text.rstrip("\n").split("\n")]
    whole = "\n".join(lines).replace(re.escape("..."), ".*")
    return re.compile(whole + r"\s*", re.DOTALL)


@pytest.mark.parametrize("text", cases("console"))
def test_console_example(text: str, place: Path) -> None:
    """A command of the docs prints what the docs say."""
    for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = example.partition("\n")
        printed = run(command, place)
        assert expected(output).fullmatch(printed), f"{command} printed:\n{printed}"


@pytest.mark.parametrize("text", cases("python"))
def test_python_example(text: str, place: Path, model: FakeModel) -> None:
    """A program of the docs runs."""
    subprocess.run(
        [sys.executable, "-c", text],
        cwd=place / "work",
        env=environment(place) | keys(model),
        timeout=60,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("text", cases("toml"))
def test_settings_example(text: str, place: Path) -> None:
    """A settings file of the docs is taken."""
    (place / "work" / ".brimline.toml").write_text(text)
    assert "brimline:" not in run("brimline windows", place)


@pytest.mark.parametrize("text", cases("sh"))
def test_shell_example(text: str) -> None:
    """A make target of the docs exists; what else a shell block names is ours, or pip."""
    makefile = (ROOT / "Makefile").read_text()
    for line in text.splitlines():
        program, _, rest = line.partition(" ")
        assert program in ("make", "pip", "python")
        if program == "make":
            assert re.search(rf"^{rest.split()[0]}:", makefile, re.MULTILINE)


def test_every_block_is_one_that_is_run() -> None:
    """No page has a code block whose kind nobody checks, but for pictures in plain text."""
    kinds = {
        found[1] for page in PAGES for found in BLOCK.finditer((ROOT / page).read_text("utf-8"))
    }
    assert kinds <= {"console", "python", "toml", "sh", "text", "json"}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link leads to a file of the project."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text("utf-8")):
        assert target.startswith("http") or (ROOT / page).parent.joinpath(target).exists(), target


def test_reference_is_written_from_the_code() -> None:
    """The reference pages are what the code makes."""
    subprocess.run([sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, check=True)


def test_readme_is_short() -> None:
    """The README can be read in one go."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
