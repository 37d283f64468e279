"""GitHub Copilot CLI: `copilot -p`, without a login, at a model of one's own."""

from __future__ import annotations

from brimline.testing.fake_model import Reply, ToolCall

MODEL = "claude-sonnet-4.5"
ENVIRONMENT = {
    "COPILOT_OFFLINE": "true",
    "COPILOT_AUTO_UPDATE": "false",
    "COPILOT_PROVIDER_BASE_URL": "{base_url}",
    "COPILOT_PROVIDER_TYPE": "anthropic",
    "COPILOT_PROVIDER_API_KEY": "sk-dummy",
    "COPILOT_MODEL": MODEL,
}


def bash(command: str) -> Reply:
    """A reply that says a line and runs a shell command."""
    tool = ToolCall("bash", {"command": command, "description": "Run a command"})
    return Reply(text=f"I run {command}.", tools=(tool,))


def task(prompt: str) -> Reply:
    """A reply that starts a subagent."""
    arguments = {"agent_type": "task", "name": "look", "description": "Look", "prompt": prompt}
    return Reply(text="I ask an agent.", tools=(ToolCall("task", arguments),))
