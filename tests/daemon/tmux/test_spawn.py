"""Starting a client in a tmux window or in this terminal."""

import os
import pty
import sys
from pathlib import Path

import pytest

from brimline.agents import agent_names, all_agents
from brimline.daemon.tmux.spawn import (
    client_command,
    exec_client,
    open_window,
    without_agent_variables,
)
from brimline.errors import CommandFailed, InvalidRequest, UnknownAgent

from .terminal import Terminal

PROMPT = "Read /work/my notes.md and continue from where you left off."


def stand_in(folder: Path) -> dict[str, str]:
    """An environment whose `claude` prints its folder and arguments."""
    program = folder / "claude"
    program.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@" "$CLAUDECODE"\nsleep 600\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_every_client_gets_the_prompt_as_its_last_argument() -> None:
    for agent in set(agent_names()) - {"kimi"}:
        assert client_command(agent, "/work/my notes.md", "/work").arguments[-1] == PROMPT
    with pytest.raises(UnknownAgent):
        client_command("somebody", "/x", "/")


def test_client_that_takes_no_prompt_is_not_started_with_one() -> None:
    with pytest.raises(InvalidRequest) as caught:
        client_command("kimi", "/work/my notes.md", "/work")
    assert caught.value.hint == f"Start it in /work, and give it this prompt: {PROMPT}"


def test_printed_command_means_the_same_to_a_shell() -> None:
    line = client_command("gemini", "/work/my notes.md", "/work/a b").shell_line
    assert line == f"cd '/work/a b' && gemini --prompt-interactive '{PROMPT}'"


def test_tmux_window_opens_in_the_folder_and_the_current_one_stays(tmp_path: Path) -> None:
    terminal = Terminal(["cat"], tmp_path, stand_in(tmp_path))
    try:
        env = stand_in(tmp_path)
        env |= {"TMUX": f"{terminal.socket},1,0", "TMUX_PANE": terminal.pane.id}
        opened = open_window(client_command("claude", "/work/my notes.md", str(tmp_path)), env)
        assert opened is not None
        shows = ("capture-pane", "-p", "-J", "-t", opened.id)
        terminal.until(lambda: terminal.tmux(*shows).strip())
        assert "".join(terminal.tmux(*shows).split()) == "".join(f"{tmp_path}|{PROMPT}||".split())
        assert len(terminal.tmux("list-panes", "-a").splitlines()) == 2
    finally:
        terminal.close()


def test_no_window_outside_of_tmux() -> None:
    assert open_window(client_command("claude", "/n", "/"), {}) is None


def test_unresponsive_tmux_is_an_error(tmp_path: Path) -> None:
    env = stand_in(tmp_path) | {"TMUX": f"{tmp_path}/nobody,1,0", "TMUX_PANE": "%0"}
    with pytest.raises(CommandFailed, match="tmux"):
        open_window(client_command("claude", "/n", "/"), env)


def test_client_replaces_the_process_without_the_agents_variables(tmp_path: Path) -> None:
    env = stand_in(tmp_path) | {"CLAUDECODE": "1"}
    new = client_command("claude", "/work/my notes.md", str(tmp_path))
    process, terminal = pty.fork()
    if process == 0:
        exec_client(new, without_agent_variables(env))
        sys.exit(1)
    output = ""
    while output.count("|") < 3:
        output += os.read(terminal, 4096).decode()
    os.kill(process, 9)
    os.waitpid(process, 0)
    os.close(terminal)
    assert output == f"{tmp_path}|{PROMPT}||"


def test_missing_client_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="not found"):
        exec_client(client_command("pi", "/n", str(tmp_path)), {"PATH": str(tmp_path)})


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    """tmux would start the client in another folder."""
    terminal = Terminal(["cat"], tmp_path)
    command = client_command("claude", "/work/my notes.md", str(tmp_path / "gone"))
    try:
        env = stand_in(tmp_path)
        with pytest.raises(CommandFailed, match="does not exist"):
            exec_client(command, env)
        env |= {"TMUX": f"{terminal.socket},1,0", "TMUX_PANE": terminal.pane.id}
        with pytest.raises(CommandFailed, match="does not exist") as raised:
            open_window(command, env)
        assert str(raised.value.hint).endswith(f"claude '{PROMPT}'")
        assert len(terminal.tmux("list-panes", "-a").splitlines()) == 1
    finally:
        terminal.close()


def test_no_variable_of_the_current_agent_is_passed_on() -> None:
    names = ["BRIMLINE_SESSION"]
    for agent in all_agents():
        names += agent.capabilities.session_id_variables + agent.capabilities.marker_variables
    assert without_agent_variables(dict.fromkeys(names, "x")) == {}


def test_users_variables_stay_and_those_of_the_agent_go() -> None:
    env = {
        "HOME": "/h",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "s",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CONFIG_DIR": "/c",
        "CODEX_HOME": "/x",
        "CODEX_THREAD_ID": "t",
        "GEMINI_CLI": "1",
        "GEMINI_CLI_HOME": "/g",
        "PI_CODING_AGENT": "true",
        "PI_CODING_AGENT_DIR": "/p",
    }
    assert set(without_agent_variables(env)) == {
        "HOME",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "PI_CODING_AGENT_DIR",
    }
