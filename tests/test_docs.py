"""README and docs: every example runs, and every link leads to a file and heading."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import brimline
from brimline.agents import all_agents
from brimline.api.schemas import NewEvents
from brimline.api.session_change import apply_change, find_change
from brimline.api.views import SessionView, ThreadView
from brimline.daemon.notices import Notice
from brimline.run.ralph import EventRow, IterationFigures
from brimline.store.rows import SessionRow
from brimline.testing.fake_model import FakeModel, Reply, Scenario
from doc_examples import BLOCK, commands_of, pattern_of
from sample_home import write_sample_home

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page.relative_to(ROOT)
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/README.md")]
)
FIXTURES = ROOT / "tests" / "fixtures"


def blocks(kind: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for number, block in enumerate(BLOCK.finditer(text)):
            if block[1] == kind:
                yield f"{page}#{number}", block[2]


def cases(kind: str, besides: Sequence[str] = ()) -> list[object]:
    """The blocks of a kind, but for those of some pages."""
    named = [each for each in blocks(kind) if each[0].partition("#")[0] not in besides]
    return [pytest.param(text, id=name) for name, text in named]


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


# Its package is installed, and its commands are run, by `tests/agents/test_added_agent.py`.
ADD_AGENT_GUIDE = "docs/guides/add-an-agent.md"
# Their commands are those of several machines: `tests/test_fleet_guide.py` and
# `tests/test_fleet_operation.py` run them.
FLEET_GUIDES = ("docs/guides/fleet/README.md", "docs/guides/fleet/operate.md")
# `scripts/examples.py` runs its commands.
README = "README.md"
# Their commands run in the home of `sample_home.py`.
SAMPLE_PAGES = ("docs/getting-started.md", "docs/guides/explain.md")


@pytest.mark.parametrize(
    "text", cases("console", (ADD_AGENT_GUIDE, *FLEET_GUIDES, README, *SAMPLE_PAGES))
)
def test_command_prints_what_the_docs_show(text: str, place: Path) -> None:
    check_commands(text, place)


@pytest.mark.parametrize(
    "text", [text for name, text in blocks("console") if name.startswith(SAMPLE_PAGES)]
)
def test_command_prints_what_the_docs_show_of_sample_sessions(text: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    write_sample_home(tmp_path / "home")
    check_commands(text, tmp_path)


def check_commands(text: str, place: Path) -> None:
    """Run the commands of a block, and compare what they print with what it shows."""
    for command, output in commands_of(text):
        printed = run(command, place)
        assert pattern_of(output).fullmatch(printed), f"{command} printed:\n{printed}"


# Its examples need other environments: `tests/real_sdks/test_integration_guide.py` runs them.
FRAMEWORKS_GUIDE = "docs/guides/integrations.md"


@pytest.mark.parametrize("text", cases("python", (FRAMEWORKS_GUIDE, ADD_AGENT_GUIDE)))
def test_python_example_runs(text: str, place: Path, model: FakeModel) -> None:
    subprocess.run(
        [sys.executable, "-c", text],
        cwd=place / "work",
        env=environment(place) | sdk_environment(model),
        timeout=60,
        check=True,
        stdout=subprocess.DEVNULL,
    )


STABLE_PACKAGES = ("brimline.integrations", "brimline.testing")


@pytest.mark.parametrize("text", cases("python", (ADD_AGENT_GUIDE,)))
def test_python_example_imports_only_stable_names(text: str) -> None:
    """What docs/reference/stability.md promises is all that an example needs."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (module := node.module or "").startswith(
            "brimline"
        ):
            names = {alias.name for alias in node.names}
            assert module.startswith(STABLE_PACKAGES) or names <= {*dir(brimline), "integrations"}
            assert module == "brimline" or module.startswith(STABLE_PACKAGES)


@pytest.mark.parametrize("text", cases("toml", (ADD_AGENT_GUIDE,)))
def test_settings_example_is_valid(text: str, place: Path) -> None:
    user_file = place / "home" / ".config" / "brimline" / "config.toml"
    user_file.parent.mkdir(parents=True)
    user_file.write_text(text)
    assert "brimline:" not in run("brimline windows", place)


@pytest.mark.parametrize("text", cases("sh"))
def test_shell_example_names_an_existing_target(text: str) -> None:
    """A shell block has only make targets that exist, pip, uv and python."""
    makefile = (ROOT / "Makefile").read_text()
    for line in text.splitlines():
        program, _, rest = line.partition(" ")
        assert program in ("make", "pip", "uv", "uvx", "python")
        if program == "make":
            assert re.search(rf"^{rest.split()[0]}:", makefile, re.MULTILINE)


JSON_TYPES: dict[str, list[Any]] = {
    "docs/guides/http-api.md": [dict[str, Any], NewEvents],  # a change of the stream has no type
    "docs/guides/notices.md": [Notice],
    "docs/guides/headless-runs.md": [EventRow],
}


def json_examples() -> dict[str, list[Any]]:
    """The decoded JSON blocks by page."""
    examples: dict[str, list[Any]] = {}
    for name, text in blocks("json"):
        examples.setdefault(name.partition("#")[0], []).append(msgspec.json.decode(text))
    return examples


def test_every_json_example_decodes_and_shows_only_existing_fields() -> None:
    examples = json_examples()
    assert examples.keys() == JSON_TYPES.keys()
    for page, kinds in JSON_TYPES.items():
        for shown, kind in zip(examples[page], kinds, strict=True):
            assert contains(msgspec.to_builtins(msgspec.convert(shown, kind)), shown), page


def contains(whole: Any, part: Any) -> bool:
    """Whether every field of `part` is in `whole`, with the same value."""
    if isinstance(part, dict):
        fields = cast("dict[str, Any]", part).items()
        return all(name in whole and contains(whole[name], value) for name, value in fields)
    if isinstance(part, list):
        return all(map(contains, whole, cast("list[Any]", part)))
    return whole == part


def test_examples_of_a_notice_and_an_event_row_show_every_field() -> None:
    examples = json_examples()
    [notice], [row] = examples["docs/guides/notices.md"], examples["docs/guides/headless-runs.md"]
    for shown, kind in ((notice, Notice), (row, EventRow), (row["payload"], IterationFigures)):
        assert tuple(shown) == kind.__struct_fields__


def test_example_of_a_change_has_fields_of_the_view() -> None:
    change = json_examples()["docs/guides/http-api.md"][0]
    assert {*change} <= {"id", *SessionView.__struct_fields__}
    assert {*change["session"]} <= {*SessionRow.__struct_fields__}
    assert {*change["threads"]["main"]} <= {*ThreadView.__struct_fields__}
    thread = dict.fromkeys(ThreadView.__struct_fields__) | {"thread": "main", "sent": 1, "calls": 1}
    view = {"session": {"id": "run-7", "seen_at": 1.0}, "threads": [thread], "unread": 0}
    view |= {"trend": [1] * change["trend"]["keep"]}
    assert find_change(view, apply_change(view, change)) == change


def test_every_code_block_has_a_kind_that_is_checked() -> None:
    """Only `text` blocks are not checked; `tests/test_fleet_operation.py` runs nginx."""
    kinds = {
        block[1] for page in PAGES for block in BLOCK.finditer((ROOT / page).read_text("utf-8"))
    }
    assert kinds <= {"console", "python", "toml", "sh", "text", "json", "nginx"}


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


def test_index_has_every_page() -> None:
    """A reader finds each page of the docs from docs/README.md."""
    index = ROOT / "docs/README.md"
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", index.read_text())}
    pages = {str(page.relative_to(index.parent)) for page in index.parent.glob("**/*.md")}
    assert pages - links == {"README.md"}


def test_troubleshooting_explains_every_line_of_doctor() -> None:
    commands = ROOT / "src/brimline/cli"
    source = "".join((commands / name).read_text() for name in ("doctor.py", "doctor_checks.py"))
    named = r'(?:(?:Check|not_set_up)\(\s*|name(?:, \w+)? = )f?"([^"]+)"'
    names = {re.sub(r"{.*}", "NAME", name) for name in re.findall(named, source)}
    page = (ROOT / "docs/guides/troubleshooting.md").read_text("utf-8")
    assert len(names) > 15
    assert names <= {*re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)}


def test_reference_is_up_to_date() -> None:
    """The reference pages are those that the code generates."""
    subprocess.run([sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, check=True)


def test_readme_shows_what_its_commands_and_the_status_line_print() -> None:
    subprocess.run([sys.executable, "scripts/examples.py", "--check"], cwd=ROOT, check=True)


def test_readme_is_short() -> None:
    """The README can be read in one go, and leads on by a few links."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 130
    assert len(re.findall(r"(?<!!)\[[^]]+\]\(", text)) <= 6


# What each agent has or gets stands there.
PAGES_OF_ALL_AGENTS = (
    README,
    "docs/concepts/handoff.md",
    "docs/concepts/windows-and-limits.md",
    "docs/concepts/words.md",
    "docs/getting-started.md",
    "docs/guides/agents.md",
    "docs/guides/client-versions.md",
    "docs/guides/compact-at.md",
    "docs/guides/headless-runs.md",
    "docs/guides/read-a-transcript.md",
    "docs/guides/reports.md",
)


@pytest.mark.parametrize("page", PAGES_OF_ALL_AGENTS)
def test_page_lacks_an_agent(page: str) -> None:
    """A list of all agents names each one that Brimline reads."""
    text = (ROOT / page).read_text("utf-8")
    names = [agent.capabilities.display_name for agent in all_agents()]
    assert [name for name in names if name not in text] == []


def test_table_of_other_tools_counts_the_agents() -> None:
    """Brimline's own number is that of now, not of the day of the measurement."""
    assert f"or README | {len(all_agents())} |" in (ROOT / README).read_text("utf-8")


def test_table_of_other_tools_is_the_measured_one() -> None:
    """The README has the table of bench/results/compare.json."""
    command = [sys.executable, str(ROOT / "bench" / "compare.py"), "--table"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"this table -->\n{printed}<!--" in (ROOT / "README.md").read_text("utf-8")
