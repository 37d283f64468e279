"""Starting a client anew: in a window of tmux, or in this terminal."""

import os
import pty
import sys
from pathlib import Path

import pytest

from brimline.agents import agent_names, all_agents
from brimline.errors import CommandFailed, UnknownAgent
from brimline.tmux.spawn import (
    client_command,
    exec_client,
    open_window,
    without_agent_variables,
)

from .terminal import Terminal

PROMPT = "Read /work/my notes.md and continue from where you left off."


def stand_in(folder: Path) -> dict[str, str]:
    """An environment whose `claude` says where it was started, and with what."""
    program = folder / "claude"
    program.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@" "$CLAUDECODE"\nsleep 600\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_every_agent_can_be_started() -> None:
    """Each agent's client is started with the prompt as one word, the last."""
    for agent in agent_names():
        assert client_command(agent, "/work/my notes.md", "/work").arguments[-1] == PROMPT
    with pytest.raises(UnknownAgent):
        client_command("somebody", "/x", "/")


def test_line_for_a_shell() -> None:
    """What the user is told to type means the same to a shell."""
    line = client_command("gemini", "/work/my notes.md", "/work/a b").shell_line
    assert line == f"cd '/work/a b' && gemini --prompt-interactive '{PROMPT}'"


def test_window(tmp_path: Path) -> None:
    """Inside tmux it gets a window of its own, in its folder, and the present one stays."""
    terminal = Terminal(["cat"], tmp_path, stand_in(tmp_path))
    try:
        env = stand_in(tmp_path)
        env |= {"TMUX": f"{terminal.socket},1,0", "TMUX_PANE": terminal.pane.id}
        made = open_window(client_command("claude", "/work/my notes.md", str(tmp_path)), env)
        assert made is not None
        shows = ("capture-pane", "-p", "-J", "-t", made.id)
        terminal.until(lambda: terminal.tmux(*shows).strip())
        assert "".join(terminal.tmux(*shows).split()) == "".join(f"{tmp_path}|{PROMPT}||".split())
        assert len(terminal.tmux("list-panes", "-a").splitlines()) == 2
    finally:
        terminal.close()


def test_outside_of_tmux() -> None:
    """Outside of tmux there is no window."""
    assert open_window(client_command("claude", "/n", "/"), {}) is None


def test_tmux_that_is_gone(tmp_path: Path) -> None:
    """A tmux that does not answer is an error that says so."""
    env = stand_in(tmp_path) | {"TMUX": f"{tmp_path}/nobody,1,0", "TMUX_PANE": "%0"}
    with pytest.raises(CommandFailed, match="tmux"):
        open_window(client_command("claude", "/n", "/"), env)


def test_in_this_terminal(tmp_path: Path) -> None:
    """The client takes the place of our process, and does not believe to run inside an agent."""
    env = stand_in(tmp_path) | {"CLAUDECODE": "1"}
    new = client_command("claude", "/work/my notes.md", str(tmp_path))
    process, terminal = pty.fork()
    if process == 0:
        exec_client(new, without_agent_variables(env))
        sys.exit(1)
    said = ""
    while said.count("|") < 3:
        said += os.read(terminal, 4096).decode()
    os.kill(process, 9)
    os.waitpid(process, 0)
    os.close(terminal)
    assert said == f"{tmp_path}|{PROMPT}||"


def test_client_that_is_not_there(tmp_path: Path) -> None:
    """A client that is not installed is an error that says so."""
    with pytest.raises(CommandFailed, match="not found"):
        exec_client(client_command("pi", "/n", str(tmp_path)), {"PATH": str(tmp_path)})


def test_folder_that_is_gone(tmp_path: Path) -> None:
    """A client is not started in another folder than its session's: tmux would do so."""
    terminal = Terminal(["cat"], tmp_path)
    gone = client_command("claude", "/work/my notes.md", str(tmp_path / "gone"))
    try:
        env = stand_in(tmp_path)
        with pytest.raises(CommandFailed, match="does not exist"):
            exec_client(gone, env)
        env |= {"TMUX": f"{terminal.socket},1,0", "TMUX_PANE": terminal.pane.id}
        with pytest.raises(CommandFailed, match="does not exist") as told:
            open_window(gone, env)
        assert str(told.value.hint).endswith(f"claude '{PROMPT}'")
        assert len(terminal.tmux("list-panes", "-a").splitlines()) == 1
    finally:
        terminal.close()


def test_nothing_of_the_agent() -> None:
    """Nothing that tells inside which agent a command runs is handed on to the next one."""
    names = ["BRIMLINE_SESSION"]
    for agent in all_agents():
        names += agent.capabilities.session_id_variables + agent.capabilities.marker_variables
    assert without_agent_variables(dict.fromkeys(names, "x")) == {}


def test_environment_of_the_user() -> None:
    """What the user set stays; what an agent told its children does not."""
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
