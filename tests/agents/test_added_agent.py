"""A package of anybody's adds an agent, if the user enabled it; a broken one hides nothing."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import brimline
from doc_examples import BLOCK, commands_of, pattern_of

from .otter_home import PACKAGE, PROJECT, OtterHome, ScratchEnvironment, build_wheel

CLAUDE = Path(__file__).parent.parent / "fixtures" / "claude" / "tool-loop" / "home"
GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "add-an-agent.md"
HOOK_CLIENT = Path(brimline.__file__).parent / "hooks" / "client" / "client.py"
# A package in which everything can be imported, and fails when it is used.
FAILING = {
    "__init__.py": (
        "from brimline.agents.capabilities import Capabilities\n"
        "CAPABILITIES = Capabilities(display_name='Newt', home_folders=('.newt', '.otter'))\n"
    ),
    "paths.py": "def transcripts(places):\n    raise KeyError('folder')\n    yield\n",
    "transcript_source.py": (
        "class Source:\n    agent = 'newt'\n    def __getattr__(self, name):\n        return fail\n"
        "def fail(*arguments):\n    raise RuntimeError('no newt')\nSOURCE = Source()\n"
    ),
    "content.py": "from brimline_otter.content import CONTENT_READER\n",
    "hooks.py": "from brimline_otter.hooks import HOOKS, INSTALL_SPEC\n",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> ScratchEnvironment:
    """An environment with Otter's package, and with others that are broken."""
    root = tmp_path_factory.mktemp("otter")
    made = ScratchEnvironment(root / "venv")
    made.install(build_wheel(PROJECT, root / "wheel"))
    made.write_package("broken-brimline", "beaver", {"__init__.py": "import no_such_module\n"})
    made.write_package("bare-brimline", "bear", {"__init__.py": ""})
    made.write_package("exit-brimline", "eel", {"__init__.py": "raise SystemExit(3)\n"})
    made.write_package("claude-brimline", "claude", {"__init__.py": ""})
    made.write_package("newt-brimline", "newt", FAILING)
    return made


@pytest.fixture
def otter(tmp_path: Path, environment: ScratchEnvironment) -> OtterHome:
    """A home of a user who enabled Otter's package."""
    home = OtterHome(tmp_path, environment.python)
    home.enable(PACKAGE)
    return home


@pytest.fixture
def daemon(otter: OtterHome) -> Iterator[None]:
    """The user's daemon, which has a package that fails at every use, too."""
    otter.enable("newt-brimline", PACKAGE)
    (otter.home / ".newt").mkdir()
    command = [otter.python, "-m", "brimline", "serve", "--port", "any"]
    with subprocess.Popen(command, env=otter.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"running" in process.stdout.readline()
        otter.enable(PACKAGE)
        yield
        otter.run("serve", "--stop")


def test_added_agent_is_not_in_status(otter: OtterHome) -> None:
    """`status` lists its session, with its subagent's thread."""
    main, scout = json.loads(otter.run("status", "--json"))
    assert (main["agent"], main["session_id"], main["percent"]) == ("otter", "s1", 89.9)
    assert main["cycle"] == 1
    assert (scout["thread"], scout["thread_title"], scout["sent"]) == (
        "scout",
        "Look for pike",
        900,
    )


def test_added_agent_cannot_be_inspected(otter: OtterHome) -> None:
    """`inspect` detects its transcript, and knows its name, window, compaction and subagent."""
    shown = json.loads(otter.run("inspect", str(otter.transcript), "--json"))
    threads = {thread["thread"]: thread for thread in shown["threads"]}
    assert (threads["main"]["percent"], threads["main"]["calls"]) == (89.9, 4)
    assert threads["scout"]["sent"] == 900
    assert len(threads["main"]["compactions"]) == 1
    assert "Otter" in otter.run("inspect", str(otter.transcript))


def test_added_agent_is_not_in_report(otter: OtterHome) -> None:
    """`report` sums up its calls."""
    report = json.loads(otter.run("report", "--json", "--by", "agent"))
    (line,) = report["lines"]
    assert (line["key"], line["calls"], line["compactions"]) == ("otter", 5, 1)


def test_added_agent_cannot_be_explained(otter: OtterHome) -> None:
    """`explain` shows what fills its context since the compaction, to the last token."""
    shown = json.loads(otter.run("explain", str(otter.transcript), "--json"))
    main, scout = shown["threads"]
    tokens = {category["name"]: category["tokens"] for category in main["categories"]}
    assert sum(tokens.values()) == main["sent"] == 8_990
    assert tokens["user words"] > 5_000
    assert tokens["compaction summary"] > 0
    assert (scout["thread"], scout["unexplained"]) == ("scout", 0)


def test_added_agent_has_no_handoff_draft(otter: OtterHome) -> None:
    """A draft has what the user asked for and the agent replied."""
    draft = otter.run("handoff", "--draft", "s1")
    assert "Count them again" in draft
    assert "There are nine." in draft


def test_setup_of_added_agent_cannot_be_removed(otter: OtterHome) -> None:
    """`setup --remove` restores the file that was there, byte by byte, or leaves none."""
    file = otter.home / ".otter" / "hooks.json"
    otter.run("setup", "otter")
    assert "SessionStart" in file.read_text()
    otter.run("setup", "otter", "--remove")
    assert not file.exists()
    own = b'{"hooks": {"Stop": [ ]},\t"den": 1}\n'
    file.write_bytes(own)
    otter.run("setup", "otter")
    assert file.read_bytes() != own
    otter.run("setup", "otter", "--remove")
    assert file.read_bytes() == own


def test_compact_at_fails_for_an_agent_without_a_setting(otter: OtterHome) -> None:
    """Otter has no setting for its compaction: that is said of it, and hides no other agent."""
    named = otter.try_command("compact-at", "60%", "otter", "--model", "otter-1")
    assert "no setting of Otter" in named.stdout
    assert "Traceback" not in otter.try_command("compact-at", "60%").stderr


def test_guide_shows_other_code_or_output(otter: OtterHome) -> None:
    """The guide has every file of the package, and its commands print what it shows."""
    shown: dict[str, str] = {}
    for block in BLOCK.finditer(GUIDE.read_text("utf-8")):
        name, _, code = block[2].partition("\n")
        if name.startswith("# "):
            shown[name[2:]] = code
        elif block[1] == "console":
            for command, output in commands_of(block[2]):
                printed = otter.shell(command)
                assert pattern_of(output).fullmatch(printed), f"{command} printed:\n{printed}"
    files = [*PROJECT.glob("*.toml"), *PROJECT.glob("*/*.py")]
    assert shown == {str(path.relative_to(PROJECT)): path.read_text() for path in files}
    assert sum(code.count("\n") for name, code in shown.items() if "test" not in name) < 200


@pytest.mark.usefixtures("daemon")
def test_added_agent_is_not_told_its_level(otter: OtterHome) -> None:
    """Its hook answers with the message of the level that its context has reached, once."""
    otter.run("setup", "otter")
    otter.hook("SessionStart")
    assert "89.9%" in otter.hook("PostToolUse")
    assert otter.hook("PostToolUse") == ""


@pytest.mark.usefixtures("daemon")
def test_added_agent_does_not_get_its_handoff(otter: OtterHome) -> None:
    """After a compaction its next session start has the document."""
    otter.run("setup", "otter")
    otter.hook("SessionStart")
    (otter.home / "plan.md").write_text("Count the trout.\n")
    otter.run("handoff", "plan.md", "--session", "s1")
    otter.hook("PreCompact", trigger="auto")
    otter.write(compacted="Fish.")
    assert "Count the trout." in otter.hook("SessionStart", source="compact")


def test_package_is_used_although_the_user_did_not_enable_it(otter: OtterHome) -> None:
    otter.settings.unlink()
    assert json.loads(otter.run("status", "--json")) == []
    assert "unknown agent 'otter'" in otter.try_command("status", "--agent", "otter").stderr


def test_project_enables_a_package(otter: OtterHome) -> None:
    """A repository's file cannot run code of a package: it is refused by name."""
    otter.settings.unlink()
    project = otter.home / "project"
    project.mkdir()
    (project / ".brimline.toml").write_text(f'agents = ["{PACKAGE}"]\n')
    refused = otter.try_command("status", cwd=project)
    assert refused.returncode == 2
    assert "only your own settings can enable packages" in refused.stderr


@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_hook_imports_a_package(kind: str, otter: OtterHome) -> None:
    """The hook client looks for no entry point, and imports nothing of Otter's."""
    spool = otter.home / "spool"
    words = (str(HOOK_CLIENT), kind, "otter", str(otter.home / "no-socket"), str(spool))
    result = subprocess.run(
        [otter.python, "-I", "-S", "-X", "importtime", *words],
        env=otter.env,
        input=json.dumps(otter.hook_input("Stop")).encode(),
        capture_output=True,
        check=True,
    )
    imported = {line.rpartition(b"|")[2].strip() for line in result.stderr.splitlines()}
    assert b"posix" in imported
    assert not [name for name in imported if b"otter" in name or b"metadata" in name]
    assert spool.exists()


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ("missing-brimline", "not installed in Brimline's Python"),
        ("broken-brimline", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("bare-brimline", "No module named 'bare_brimline.content'"),
        ("exit-brimline", "SystemExit: 3"),
        ("claude-brimline", "there is an agent 'claude' already"),
        ("newt-brimline", "`transcripts` raised KeyError: 'folder'"),
        ("hatchling", "no entry point 'brimline.agents'"),
        ("../x", "not installed"),
    ],
)
def test_broken_package_is_not_named_or_hides_an_agent(
    package: str, problem: str, otter: OtterHome
) -> None:
    """`doctor` names it, `status` warns of it, and lists the sessions of all other agents."""
    otter.enable(package, PACKAGE)
    checks = json.loads(otter.try_command("doctor", "--json").stdout)
    (check,) = [one for one in checks if one["about"] == package]
    assert (check["well"], problem in check["told"]) == (False, True), check
    (well,) = [one for one in checks if one["about"] == PACKAGE]
    assert (well["well"], well["told"]) == (True, "adds otter, version 1.0")
    status = otter.try_command("status", "--json")
    assert [row["agent"] for row in json.loads(status.stdout)] == ["otter", "otter"]
    assert f"brimline: agent package {package}: " in status.stderr
    assert problem in status.stderr


def test_failing_reader_ends_a_command(otter: OtterHome) -> None:
    """A package whose code fails at every use: other transcripts are recognised and read."""
    otter.enable("newt-brimline", PACKAGE)
    shown = otter.try_command("inspect", str(otter.transcript))
    assert "89.9%" in shown.stdout
    named = otter.try_command("inspect", str(otter.transcript), "--agent", "newt")
    assert named.returncode == 2
    assert "Traceback" not in named.stderr
    assert "`read` raised RuntimeError: no newt" in named.stderr
