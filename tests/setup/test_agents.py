"""What each agent is given, where its settings are, and what it is told beside."""

from pathlib import Path

import msgspec
import pytest

from brimline.agents.hook_command import SHELL_GUARD, Program, find_program
from brimline.errors import UnknownAgent
from brimline.setup.plan import plan

from .machine import HOOK, Machine, program


def test_claude_runs_without_a_shell(machine: Machine) -> None:
    """Claude Code gets the program and its words apart; only the status line is a shell's."""
    machine.set_up(program=program("/a b/brimline-hook"))
    python, where = "/usr/bin/python3 /opt/client.py", "claude /state/hook.sock /state/spool"
    words = f"{python} hook {where}".split()
    made = {"type": "command", "command": "/a b/brimline-hook", "args": words, "timeout": 2}
    assert all(found == [made] for found in machine.hooks().values())
    line = f"'/a b/brimline-hook' {python} statusline {where}"
    assert machine.settings()["statusLine"] == {"type": "command", "command": line}


def test_codex_and_gemini_run_a_shell(machine: Machine) -> None:
    """They get one command; Gemini counts in milliseconds, and knows ours by a name."""
    for agent in ("codex", "gemini"):
        machine.set_up(agent)
    words = f"{HOOK} /usr/bin/python3 /opt/client.py hook"
    line = f"{words} codex /state/hook.sock /state/spool"
    assert machine.hooks("codex")["Stop"] == [{"type": "command", "command": line, "timeout": 2}]
    line = f"{words} gemini /state/hook.sock /state/spool"
    made = {"type": "command", "name": "brimline", "command": line, "timeout": 2000}
    assert machine.hooks("gemini")["AfterTool"] == [made]
    assert "statusLine" not in machine.settings("gemini")


def test_hooks_by_http(machine: Machine) -> None:
    """Hooks that post are known again; a session's start, which cannot post, stays a command."""
    machine.write('{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://[x/"}]}]}}')
    machine.set_up()
    machine.set_up(transport="http")
    found = machine.hooks()
    url = "http://127.0.0.1:8421/hooks/claude?by=brimline"
    headers = {"Authorization": "Bearer token-of-hooks"}
    made = {"type": "http", "url": url, "headers": headers, "timeout": 2}
    assert found.pop("SessionStart")[0]["command"] == HOOK
    assert found.pop("Stop") == [{"type": "http", "url": "http://[x/"}, made]
    assert all(one == [made] for one in found.values())
    assert "commands" in machine.plan("codex", transport="http").notes[0]
    machine.take_out()
    assert list(machine.hooks()) == ["Stop"]


@pytest.mark.parametrize("mode", [None, 0o644, 0o600])
def test_settings_with_a_token_are_private(machine: Machine, mode: int | None) -> None:
    """HTTP hooks carry a token: no other user can read the settings that hold it."""
    if mode is not None:
        machine.write("{}").chmod(mode)
    machine.set_up(transport="http")
    assert machine.file().stat().st_mode & 0o777 == 0o600


def test_no_token_in_a_project(machine: Machine) -> None:
    """A project's settings may be shared: no token is written into them, and it is said why."""
    change = machine.set_up(transport="http", scope="project")
    assert "--transport command" in (change.problem or "")
    assert not (machine.project / ".claude").exists()


def test_http_hooks_before_a_daemon_ran(machine: Machine) -> None:
    """Without a daemon there is neither a port nor a token: it is said how to get them."""
    change = machine.set_up(transport="http", http_target=None)
    assert "brimline serve --background" in (change.problem or "")


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_comments_that_a_client_does_not_read(machine: Machine, agent: str) -> None:
    """A file that the client itself ignores is not written to, and the place is told."""
    path = machine.write('{\n  // mine\n  "hooks": {}\n}', agent)
    change = machine.set_up(agent)
    assert change.problem == (
        f"{path}: line 2, column 3: expected no comment in this file: got '/'"
    )
    assert path.read_text() == '{\n  // mine\n  "hooks": {}\n}'
    assert machine.around(agent) == [path.name]


def test_unknown_agent(machine: Machine) -> None:
    """A name that is no agent's is refused before anything is done."""
    with pytest.raises(UnknownAgent):
        plan(["emacs"], machine.places, machine.wish)


def test_project_scope(tmp_path: Path) -> None:
    """A project's own settings are changed, and nothing in the user's home."""
    machine = Machine(tmp_path, scope="project")
    for agent in ("claude", "codex", "gemini"):
        change = machine.set_up(agent)
        assert machine.project in machine.file(agent).parents
        assert any("paths of this machine" in note for note in change.notes)
    assert list(machine.home.iterdir()) == []


def test_folders_that_variables_name(machine: Machine, tmp_path: Path) -> None:
    """The settings are where the agent looks for them."""
    names = {"CLAUDE_CONFIG_DIR": "settings.json", "CODEX_HOME": "hooks.json"}
    env = {name: str(tmp_path / name) for name in (*names, "GEMINI_CLI_HOME")}
    machine.places = msgspec.structs.replace(machine.places, env=env)
    for agent, name in zip(("claude", "codex"), names, strict=True):
        assert machine.plan(agent).path == tmp_path / name / names[name]
    assert machine.plan("gemini").path == tmp_path / "GEMINI_CLI_HOME/.gemini/settings.json"


def test_hooks_that_are_switched_off(machine: Machine) -> None:
    """Where the user switched all hooks off, that is said."""
    path = machine.write('{"disableAllHooks": true}')
    note = f"disableAllHooks in {path} disables Brimline's hooks: remove it."
    assert note in machine.set_up().notes


def test_trust_is_the_users(machine: Machine) -> None:
    """Codex asks for trust: it is told how, and only when something is new."""
    assert any("/hooks" in note for note in machine.set_up("codex").notes)
    assert machine.set_up("codex").notes == ()


def test_path_that_is_no_text(machine: Machine) -> None:
    """A path that JSON cannot hold is told, and not written wrongly."""
    path = machine.write("{}")
    change = machine.set_up(program=program("/caf\udce9/brimline-hook"))
    assert "not UTF-8" in str(change.problem)
    assert path.read_text() == "{}"


def test_compiled_client_is_taken_where_there_is_one(tmp_path: Path) -> None:
    """The compiled client goes on in Python when it must; without it Python runs alone."""
    script, fast = tmp_path / "hooks/client/client.py", tmp_path / "hooks/client/brimline-hook"
    fast.parent.mkdir(parents=True)
    fast.touch()
    found = find_program(tmp_path, "/py", Path("/state"), Path("/state/hook.sock"))
    assert found == Program("/py", str(script), "/state/hook.sock", "/state/spool")
    assert found.client_words == ("/bin/sh", "-c", SHELL_GUARD, "/py", "-I", "-S", str(script))
    fast.chmod(0o755)
    found = find_program(tmp_path, "/py", Path("/state"), Path("/state/hook.sock"))
    assert found.client_words == (str(fast), "/py", str(script))
