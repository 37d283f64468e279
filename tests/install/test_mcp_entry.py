"""`setup --mcp`: our entry among a client's MCP servers, added and removed to the last byte."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from cli.terminal import User

CLAUDE = '{"numStartups": 3, "mcpServers": {"other": {"command": "/usr/bin/other", "args": []}}}'
GEMINI = '{\n  // mine\n  "mcpServers": {\n    "other": {"command": "/usr/bin/other"}\n  }\n}\n'
CODEX = '# mine\nmodel = "gpt-5.5"\n\n[mcp_servers.other]\ncommand = "/usr/bin/other"'

FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "copilot": ".copilot/mcp-config.json",
    "gemini": ".gemini/settings.json",
    "kilo": "config/kilo/kilo.json",
    "opencode": "config/opencode/opencode.json",
    "qwen": ".qwen/settings.json",
}
TEXTS = [
    ("claude", CLAUDE),
    ("claude", "{}"),
    ("codex", CODEX),
    ("codex", CODEX + "\n"),
    ("codex", CODEX.replace("\n", "\r\n")),
    ("codex", ""),
    ("gemini", GEMINI),
    ("gemini", "{}\n"),
    ("copilot", "{}"),
    ("qwen", GEMINI),
    ("kilo", '{"mcp": {"other": {"command": ["/usr/bin/other"]}},}\n'),
    ("opencode", '{"$schema": "https://opencode.ai/config.json",}\n'),
]


@pytest.fixture
def person(tmp_path: Path) -> User:
    user = User(tmp_path)
    del user.env["CLAUDE_CONFIG_DIR"]
    user.env["BRIMLINE_STATE_DIR"] = str(user.home / "state")
    return user


def file_of(user: User, agent: str, text: str | None = None) -> Path:
    file = user.home / FILES[agent]
    file.parent.mkdir(parents=True, exist_ok=True)
    if text is not None:
        file.write_bytes(text.encode())
    return file


def entry_of(file: Path) -> dict[str, object]:
    """Return our entry as the client reads it."""
    text = file.read_text()
    if file.suffix == ".toml":
        return tomllib.loads(text)["mcp_servers"]["brimline"]
    document = json.loads(text.replace("// mine", "").replace(",}", "}"))
    return document["mcp" if file.name in ("kilo.json", "opencode.json") else "mcpServers"][
        "brimline"
    ]


@pytest.mark.parametrize(("agent", "text"), TEXTS)
def test_entry_is_added_and_the_file_restored_to_the_last_byte(
    person: User, agent: str, text: str
) -> None:
    file = file_of(person, agent, text)
    assert person.run("setup", agent, "--mcp").code == 0
    launcher = str(person.home / "state" / "brimline-hook")
    expected: dict[str, object] = {"command": launcher, "args": [agent, "mcp"]}
    if agent == "claude":
        expected["type"] = "stdio"
    if agent == "copilot":
        expected |= {"type": "local", "tools": ["*"]}
    if agent in ("kilo", "opencode"):
        expected = {"type": "local", "command": [launcher, agent, "mcp"]}
    assert entry_of(file) == expected
    if "other" in text:
        assert "/usr/bin/other" in file.read_text()
    assert "already set up" in person.run("setup", agent, "--mcp").out
    assert person.run("setup", "--remove", agent).code == 0
    assert file.read_bytes().decode() == text


@pytest.mark.parametrize("agent", FILES)
def test_file_that_we_created_is_removed(person: User, agent: str) -> None:
    file = file_of(person, agent)
    assert person.run("setup", agent, "--mcp").code == 0
    assert file.exists()
    assert person.run("setup", "--remove", "--mcp", agent).code == 0
    hooks_are_here = agent in ("gemini", "qwen")
    assert file.exists() is hooks_are_here
    assert "nothing" not in person.run("setup", "--remove", agent).out.lower()


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_entry_alone_is_removed_from_a_file_that_was_written_since(
    person: User, agent: str
) -> None:
    file = file_of(person, agent, CLAUDE if agent == "claude" else CODEX)
    person.run("setup", agent, "--mcp")
    if agent == "claude":
        document = json.loads(file.read_text())
        file.write_text(json.dumps(document | {"numStartups": 4}, indent=4))
    else:
        file.write_text(file.read_text().replace(" = ", "  =  ") + '\n[tui]\ntheme = "x"\n')
    person.run("setup", "--remove", "--mcp", agent)
    if agent == "claude":
        document = json.loads(file.read_text())
        assert document == json.loads(CLAUDE) | {"numStartups": 4}
    else:
        assert tomllib.loads(file.read_text()) == {**tomllib.loads(CODEX), "tui": {"theme": "x"}}


def test_entry_of_the_user_with_our_name_is_kept(person: User) -> None:
    file = file_of(person, "claude", '{"mcpServers": {"brimline": {"command": "mine"}}}')
    before = file.read_bytes()
    person.run("setup", "claude", "--mcp")
    person.run("setup", "--remove", "claude")
    assert file.read_bytes() == before
    codex = file_of(person, "codex", '[mcp_servers.brimline]\ncommand = "mine"\n')
    refused = person.run("setup", "codex", "--mcp")
    assert (refused.code, "it exists and is not Brimline's" in refused.out) == (1, True)
    assert tomllib.loads(codex.read_text())["mcp_servers"]["brimline"] == {"command": "mine"}


def test_dry_run_shows_the_entry_and_writes_nothing(person: User) -> None:
    file = file_of(person, "claude", CLAUDE)
    shown = person.run("setup", "claude", "--mcp", "--dry-run")
    assert '"brimline": {' in shown.out
    assert file.read_text() == CLAUDE
    assert (
        person.run("setup", "--remove", "--mcp", "claude").out
        == "Brimline is not installed here.\n"
    )


def test_launcher_runs_the_server_outside_of_the_project(person: User) -> None:
    """Clients drop variables, and run it in a project whose modules must not be imported."""
    person.run("setup", "claude", "--mcp")
    (person.cwd / "json.py").write_text("raise SystemExit(3)")
    launcher = person.home / "state" / "brimline-hook"
    done = subprocess.run(
        [launcher, "claude", "mcp"],
        input=b'{"id":1,"method":"ping"}\n',
        env={"HOME": str(person.home), "PATH": os.environ["PATH"]},
        cwd=person.cwd,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["result"] == {}
