"""What setup writes for each agent, where, and the notes it gives."""

from pathlib import Path

import msgspec
import pytest

from brimline.agents.hook_command import Program, find_program
from brimline.errors import UnknownAgent
from brimline.install.plan import plan

from .machine import HOOK, Machine, program


def test_claude_runs_without_a_shell(machine: Machine) -> None:
    """Only the status line is run by a shell."""
    machine.set_up(program=program("/a b"))
    words = ["claude", "hook"]
    expected = {"type": "command", "command": "/a b/brimline-hook", "args": words, "timeout": 2}
    assert all(hooks == [expected] for hooks in machine.hooks().values())
    line = "'/a b/brimline-hook' claude statusline"
    expected = {"type": "command", "command": line, "refreshInterval": 10}
    assert machine.settings()["statusLine"] == expected


def test_codex_and_gemini_get_one_shell_command(machine: Machine) -> None:
    """Gemini CLI counts in milliseconds and identifies hooks by name."""
    for agent in ("codex", "gemini"):
        machine.set_up(agent)
    line = f"{HOOK} codex hook"
    assert machine.hooks("codex")["Stop"] == [{"type": "command", "command": line, "timeout": 2}]
    line = f"{HOOK} gemini hook"
    expected = {"type": "command", "name": "brimline", "command": line, "timeout": 2000}
    assert machine.hooks("gemini")["AfterTool"] == [expected]
    assert "statusLine" not in machine.settings("gemini")


def test_http_hooks_are_recognised_and_two_events_stay_commands(machine: Machine) -> None:
    machine.write('{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://[x/"}]}]}}')
    machine.set_up()
    machine.set_up(transport="http")
    by_event = machine.hooks()
    url = "http://127.0.0.1:8421/hooks/claude?by=brimline"
    headers = {"Authorization": "Bearer token-of-hooks"}
    expected = {"type": "http", "url": url, "headers": headers, "timeout": 2}
    for event in ("SessionStart", "PreModelSwitch"):
        assert by_event.pop(event)[0]["command"] == HOOK
    assert by_event.pop("Stop") == [{"type": "http", "url": "http://[x/"}, expected]
    assert all(hooks == [expected] for hooks in by_event.values())
    assert "commands" in machine.plan("codex", transport="http").notes[0]
    machine.remove()
    assert list(machine.hooks()) == ["Stop"]


@pytest.mark.parametrize("mode", [None, 0o644, 0o600])
def test_settings_with_a_token_are_readable_by_their_owner_only(
    machine: Machine, mode: int | None
) -> None:
    if mode is not None:
        machine.write("{}").chmod(mode)
    machine.set_up(transport="http")
    assert machine.file().stat().st_mode & 0o777 == 0o600


def test_project_settings_get_no_token_and_the_reason_is_given(machine: Machine) -> None:
    change = machine.set_up(transport="http", scope="project")
    assert "--transport command" in (change.reason or "")
    assert not (machine.project / ".claude").exists()


def test_http_hooks_before_the_first_daemon_are_refused_with_a_hint(machine: Machine) -> None:
    change = machine.set_up(transport="http", http_target=None)
    assert "brimline serve --background" in (change.reason or "")


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_file_that_the_client_cannot_read_is_left_alone_with_the_place(
    machine: Machine, agent: str
) -> None:
    path = machine.write('{\n  // mine\n  "hooks": {}\n}', agent)
    change = machine.set_up(agent)
    assert change.reason == (f"{path}: line 2, column 3: expected no comment in this file: got '/'")
    assert path.read_text() == '{\n  // mine\n  "hooks": {}\n}'
    assert machine.folder_names(agent) == [path.name]


def test_unknown_agent_is_refused_before_any_change(machine: Machine) -> None:
    with pytest.raises(UnknownAgent):
        plan(["emacs"], machine.places, machine.options)


def test_project_scope_changes_nothing_in_the_home(tmp_path: Path) -> None:
    machine = Machine(tmp_path, scope="project")
    for agent in ("claude", "codex", "gemini"):
        change = machine.set_up(agent)
        assert machine.project in machine.file(agent).parents
        assert any("paths of this machine" in note for note in change.notes)
    assert list(machine.home.iterdir()) == []


def test_settings_folder_follows_the_agents_variables(machine: Machine, tmp_path: Path) -> None:
    names = {"CLAUDE_CONFIG_DIR": "settings.json", "CODEX_HOME": "hooks.json"}
    env = {name: str(tmp_path / name) for name in (*names, "GEMINI_CLI_HOME")}
    machine.places = msgspec.structs.replace(machine.places, env=env)
    for agent, name in zip(("claude", "codex"), names, strict=True):
        assert machine.plan(agent).path == tmp_path / name / names[name]
    assert machine.plan("gemini").path == tmp_path / "GEMINI_CLI_HOME/.gemini/settings.json"


def test_disabled_hooks_are_reported(machine: Machine) -> None:
    path = machine.write('{"disableAllHooks": true}')
    note = f"disableAllHooks in {path} disables Brimline's hooks: remove it."
    assert note in machine.set_up().notes


def test_codex_trust_is_explained_only_for_new_hooks(machine: Machine) -> None:
    assert any("/hooks" in note for note in machine.set_up("codex").notes)
    assert machine.set_up("codex").notes == ()


def test_path_that_json_cannot_hold_is_refused(machine: Machine) -> None:
    path = machine.write("{}")
    change = machine.set_up(program=program("/caf\udce9"))
    assert "not UTF-8" in str(change.reason)
    assert path.read_text() == "{}"


def test_compiled_client_is_used_if_there_is_one(tmp_path: Path) -> None:
    script, fast = tmp_path / "hooks/client/client.py", tmp_path / "hooks/client/brimline-hook"
    fast.parent.mkdir(parents=True)
    fast.touch()
    program = find_program(tmp_path, "/py", Path("/state"), Path("/state/hook.sock"))
    assert program == Program("/py", str(script), "/state/hook.sock", "/state/spool")
    fast.chmod(0o755)
    program = find_program(tmp_path, "/py", Path("/state"), Path("/state/hook.sock"))
    assert program.compiled == str(fast)
