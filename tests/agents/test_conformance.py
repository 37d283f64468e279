"""Every agent passes the shipped suite, with files of its real client; the suite finds faults."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from brimline.agents import agent_names
from brimline.testing.agents import CHECKS, AgentSample, Check
from brimline.testing.fake_model import Billed, read_records
from run.homes import home_of

from .otter_home import PROJECT, ScratchEnvironment, build_wheel

FIXTURES = Path(__file__).parent.parent / "fixtures"
OWN_THREADS = ("main", "subagent")  # the others write titles or summaries, or choose a model
# The recorded scenes of all agents that have these, with what happens in them.
SCENES = {
    "tool-loop": (0, 0),
    "auto-compact": (1, 0),
    "resume-compact": (1, 0),
    "subagent": (0, 1),
    "subagent-sync": (0, 1),
    "subagent-background": (0, 1),
}
RECORDED = [
    (folder.parent.name, folder.name)
    for folder in sorted(FIXTURES.glob("*/*"))
    if folder.name in SCENES and folder.parent.name in agent_names()
]
RECORDS_SUMMARY_CALLS = ("codex",)  # as calls of the thread that they compact

PATHS, SOURCE, CONTENT, HOOKS = "paths.py", "transcript_source.py", "content.py", "hooks.py"
# Faults in Otter's code: the check that finds each, the file, what stands there, and the fault.
AGENT = 'agent = "otter"\n'
READS_FROM_THE_START = f"""{AGENT}
    def read(self, transcript, cursor=None, how="every"):
        return super().read(transcript, how=how)
"""
ENDS_THE_LAST_LINE = f"""{AGENT}
    def read(self, transcript, cursor=None, how="every"):
        cursor = cursor or START
        file = ended(open_transcript(transcript.path, cursor.offset))
        return JsonLines(file, self.parser(transcript, cursor.carry), cursor)
"""
FAULTS = [
    ("files_are_found", PATHS, '"otter", entry', '"claude", entry'),
    ("files_are_found", "__init__.py", '(".otter",)', "()"),
    ("calls_are_counted", SOURCE, "return (Compacted(at=at, thread=thread),)", "return ()"),
    ("copies_are_counted_once", SOURCE, "id=line.call", "id=f'{line.call}{next(COUNTER)}'"),
    ("every_way_of_reading_agrees", SOURCE, "Usage(line.sent", "Usage(next(COUNTER)"),
    ("reading_goes_on_in_a_growing_file", SOURCE, AGENT, READS_FROM_THE_START),
    ("torn_last_line_hides_nothing", SOURCE, AGENT, ENDS_THE_LAST_LINE),
    ("bad_first_bytes_hide_nothing", SOURCE, "decode_record(record)", "whole(record)"),
    ("compactions_are_in_their_place", SOURCE, "line.compacted is not", "line.user is not"),
    ("unknown_kinds_are_counted", SOURCE, "None if line.user is None else ()", "()"),
    ("damaged_lines_are_named", SOURCE, "decode_record(record)", "lax(record)"),
    ("agent_is_recognised", SOURCE, "b'{\"otter\":'", "b'{\"user\":'"),
    ("other_files_are_not_its_own", SOURCE, "b'{\"otter\":'", "b'{'"),
    ("subagents_leave_the_main_thread_alone", SOURCE, "(transcript.thread)", "(MAIN)"),
    ("content_is_read", CONTENT, "yield UserText(line.user, line.at)", "yield Location(line.user)"),
    ("hooks_are_answered", HOOKS, "HookAdapter()", "HookAdapter(events={})"),
]
FAULTY = r"""
import io
from itertools import count
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import START
COUNTER = count(1)
def ended(file):
    return io.BytesIO(file.read() + b"\n")
def lax(record):
    try:
        return decode_record(record)
    except Exception:
        return OtterRecord()
def whole(record):
    if not record.endswith(b"}"):
        return OtterRecord(call="torn")
    return decode_record(record)
"""


def sample_of(agent: str, scene: str, folder: Path) -> AgentSample:
    """A recorded scene, with the calls that were billed."""
    bill = read_records(FIXTURES / agent / scene / "billed.jsonl")
    threads = (*OWN_THREADS, *(["compaction"] if agent in RECORDS_SUMMARY_CALLS else []))
    own = [each for each in bill if isinstance(each, Billed) and each.thread in threads]
    streams = sorted((FIXTURES / agent / scene).glob("stream-*.jsonl"))
    compactions, subagents = SCENES[scene]
    return AgentSample(
        agent=agent,
        home=home_of(agent, scene, folder),
        calls=len(own),
        compactions=compactions,
        subagents=subagents,
        stream=streams[0] if streams else None,
    )


def test_agent_has_no_recorded_scene() -> None:
    assert {agent for agent, _ in RECORDED} >= set(agent_names())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("agent", "scene"), RECORDED)
def test_agent_does_not_hold(agent: str, scene: str, check: Check, tmp_path: Path) -> None:
    (tmp_path / "check").mkdir()
    check(sample_of(agent, scene, tmp_path), tmp_path / "check")


class OtterTests:
    """Otter's own tests, run in an environment with its package."""

    def __init__(self, root: Path) -> None:
        self._environment = ScratchEnvironment(root / "venv")
        self._environment.install(build_wheel(PROJECT, root / "wheel"))

    def failures(self, folder: Path, *edit: str) -> set[str]:
        """Return the checks that fail, with an edited file of the package before the installed."""
        package = folder / "faulty" / "brimline_otter"
        shutil.copytree(PROJECT / "brimline_otter", package)
        if edit:
            name, before, after = edit
            text = (package / name).read_text()
            assert before in text
            faulty = FAULTY if name == SOURCE else ""
            (package / name).write_text(text.replace(before, after) + faulty)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(package.parent),
        }
        options = (
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "--tb=short",
            "-c",
            "/dev/null",
        )
        result = subprocess.run(
            [self._environment.python, "-m", "pytest", *options, str(PROJECT / "tests")],
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "passed" in result.stdout, result.stdout + result.stderr
        return set(re.findall(r"^FAILED .*\[(\w+)\]", result.stdout, re.MULTILINE))


@pytest.fixture(scope="module")
def otter_tests(tmp_path_factory: pytest.TempPathFactory) -> OtterTests:
    return OtterTests(tmp_path_factory.mktemp("otter"))


def test_suite_refuses_a_package_without_faults(otter_tests: OtterTests, tmp_path: Path) -> None:
    assert otter_tests.failures(tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[0]}-{fault[1]}")
def test_suite_misses_a_fault(
    fault: tuple[str, str, str, str], otter_tests: OtterTests, tmp_path: Path
) -> None:
    check, *edit = fault
    assert check in otter_tests.failures(tmp_path, *edit)
