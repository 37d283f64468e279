"""The guide to the integrations: each of its examples prints what the fake model was sent."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from brimline.testing.fake_model import FakeModel, Reply, Scenario
from clients import claude
from clients.install import require
from clients.run import SOURCES, TIMEOUT_S, Place, run_client

from .bill import sent
from .install import frameworks

pytestmark = pytest.mark.clients

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "integrations.md"
SECTION = re.compile(r"^## (.+?)\n.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES: dict[str, str] = dict(SECTION.findall(GUIDE.read_text("utf-8")))

HELLO = Scenario(main=(Reply(text="Hello."),))
# Frameworks with a virtual environment of their own, by their list of packages.
OTHERS = {
    "LiteLLM": "frameworks",
    "OpenTelemetry": "frameworks",
    "LangGraph": "agent_frameworks",
    "LlamaIndex": "agent_frameworks",
    "CrewAI": "agent_frameworks",
    "Strands": "agent_frameworks",
}
# The package of each row of the table of versions; it is pinned in a list, or installed here.
PACKAGES = {
    "LangGraph": "langgraph",
    "LlamaIndex": "llama-index-core",
    "CrewAI": "crewai",
    "Strands": "strands-agents",
    "LangChain": "langchain-core",
    "OpenAI Agents SDK": "openai-agents",
    "Pydantic AI": "pydantic-ai-slim",
    "Claude Agent SDK": "claude-agent-sdk",
    "LiteLLM": "litellm",
    "Google ADK (OpenTelemetry)": "google-adk",
}
LONG = {name for name, packages in OTHERS.items() if packages == "agent_frameworks"}
CLAUDE_SDK = "Claude Agent SDK"


def environment(fake: FakeModel, home: Path) -> dict[str, str]:
    """The variables that direct the SDKs to the fake model."""
    return {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(SOURCES),
        "ANTHROPIC_BASE_URL": fake.base_url,
        "ANTHROPIC_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{fake.base_url}/v1",
        "OPENAI_API_BASE": f"{fake.base_url}/v1",  # of LlamaIndex
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "OPENAI_API_KEY": "dummy",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "GOOGLE_GEMINI_BASE_URL": fake.base_url,
        "GOOGLE_API_KEY": "dummy",
        "LANGSMITH_TRACING": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def test_every_integration_has_an_example() -> None:
    modules = (SOURCES / "brimline" / "integrations").glob("*.py")
    names = {path.stem for path in modules} - {"__init__", "answer_observer"}
    shown = re.findall(r"from brimline\.integrations\.(\w+) import", "".join(EXAMPLES.values()))
    assert set(shown) == names


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {CLAUDE_SDK} - LONG))
def test_example_prints_what_was_sent(name: str, tmp_path: Path) -> None:
    check_example(name, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(LONG))
def test_example_of_another_environment_prints_what_was_sent(name: str, tmp_path: Path) -> None:
    check_example(name, tmp_path)


def test_tested_versions_are_those_that_run() -> None:
    page = GUIDE.read_text("utf-8")
    pins = "".join(
        Path(__file__).with_name(f"{packages}.txt").read_text("utf-8")
        for packages in sorted(set(OTHERS.values()))
    )
    for name, package in PACKAGES.items():
        pinned = re.search(rf"^{package}==(\S+)$", pins, re.MULTILINE)
        assert f"| {name} | {pinned[1] if pinned else version(package)} |" in page
    assert len(re.findall(r"\| `make (?:test|frameworks)` \|", page)) == len(PACKAGES)


def check_example(name: str, tmp_path: Path) -> None:
    python = frameworks(OTHERS[name]) if name in OTHERS else Path(sys.executable)
    with FakeModel(HELLO) as fake:
        done = subprocess.run(
            [python, "-c", EXAMPLES[name]],
            env=environment(fake, tmp_path),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        (billed,) = fake.billed
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(sent(billed))


def test_example_of_the_claude_agent_sdk_prints_what_was_sent(tmp_path: Path) -> None:
    path = f"{require('claude').parent}:/usr/local/bin:/usr/bin:/bin"
    run = run_client(
        "claude-agent-sdk",
        [sys.executable, "-c", EXAMPLES[CLAUDE_SDK]],
        Place(tmp_path),
        HELLO,
        environment=claude.ENVIRONMENT | {"PATH": path, "PYTHONPATH": str(SOURCES)},
        transcripts=claude.TRANSCRIPTS,
    )
    assert run.exit_code == 0, run.stderr
    assert run.stdout.split() == [str(sent(run.of("main")[-1]))]
