"""README and docs: every example runs, and every link leads to a file and heading."""

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
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for number, block in enumerate(BLOCK.finditer(text)):
            if block[1] == kind:
                yield f"{page}#{number}", block[2]


def cases(kind: str) -> list[object]:
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
    """The fake model for examples that use an SDK."""
    with FakeModel(Scenario(main=(Reply(text="Hello."),))) as fake:
        yield fake


def sdk_environment(model: FakeModel) -> dict[str, str]:
    """The variables that direct the SDKs to the fake model."""
    return {
        "ANTHROPIC_BASE_URL": model.base_url,
        "ANTHROPIC_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{model.base_url}/v1",
        "OPENAI_API_KEY": "dummy",
    }


def environment(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def run(command: str, place: Path) -> str:
    """Run a shell command; returns stdout and stderr together."""
    process = subprocess.run(
        ["sh", "-c", command],
        cwd=place / "work",
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return process.stdout


def pattern_of(text: str) -> "re.Pattern[str]":
    """The pattern of an example's output; `...` matches anything, alone on a line any lines."""
    lines = [".*" if line == "..." else re.escape(line) for line in text.rstrip("\n").split("\n")]
    pattern = "\n".join(lines).replace(re.escape("..."), ".*")
    return re.compile(pattern + r"\s*", re.DOTALL)


@pytest.mark.parametrize("text", cases("console"))
def test_command_prints_what_the_docs_show(text: str, place: Path) -> None:
    for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = example.partition("\n")
        printed = run(command, place)
        assert pattern_of(output).fullmatch(printed), f"{command} printed:\n{printed}"


@pytest.mark.parametrize("text", cases("python"))
def test_python_example_runs(text: str, place: Path, model: FakeModel) -> None:
    subprocess.run(
        [sys.executable, "-c", text],
        cwd=place / "work",
        env=environment(place) | sdk_environment(model),
        timeout=60,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("text", cases("toml"))
def test_settings_example_is_valid(text: str, place: Path) -> None:
    (place / "work" / ".brimline.toml").write_text(text)
    assert "brimline:" not in run("brimline windows", place)


@pytest.mark.parametrize("text", cases("sh"))
def test_shell_example_names_an_existing_target(text: str) -> None:
    """A shell block has only make targets that exist, pip and python."""
    makefile = (ROOT / "Makefile").read_text()
    for line in text.splitlines():
        program, _, rest = line.partition(" ")
        assert program in ("make", "pip", "python")
        if program == "make":
            assert re.search(rf"^{rest.split()[0]}:", makefile, re.MULTILINE)


def test_every_code_block_has_a_kind_that_is_checked() -> None:
    """Only `text` and `json` blocks are not run."""
    kinds = {
        block[1] for page in PAGES for block in BLOCK.finditer((ROOT / page).read_text("utf-8"))
    }
    assert kinds <= {"console", "python", "toml", "sh", "text", "json"}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_a_file_and_heading(page: Path) -> None:
    """A relative link names a file of the project; its anchor is a heading of that file."""
    for link in re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text("utf-8")):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_reference_is_up_to_date() -> None:
    """The reference pages are those that the code generates."""
    subprocess.run([sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, check=True)


def test_readme_is_short() -> None:
    """The README can be read in one go."""
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
