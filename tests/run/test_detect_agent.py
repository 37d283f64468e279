"""Detection of the agent that a command line runs."""

import pytest

from brimline.run.agent_command import detect_agent


@pytest.mark.parametrize(
    ("line", "agent"),
    [
        ("claude -p hi", "claude"),
        ("codex exec --json hi", "codex"),
        ("pi --mode json hi", "pi"),
        ("gemini -p hi", "gemini"),
        ("opencode run hi", "opencode"),
        ("npx @kilocode/cli@7.7.9 run hi", "kilo"),
        ("/usr/local/bin/claude -p hi", "claude"),
        ("./node_modules/.bin/codex exec", "codex"),
        ("claude.exe -p hi", "claude"),
        ("npx claude -p hi", "claude"),
        ("npx -y @anthropic-ai/claude-code@2.1.325 -p hi", "claude"),
        ("npx @openai/codex exec", "codex"),
        ("pnpm dlx @google/gemini-cli -p hi", "gemini"),
        ("bunx opencode-ai@latest run hi", "opencode"),
        ("npx @earendil-works/pi-coding-agent --mode json", "pi"),
        ("env DEBUG=1 claude -p hi", "claude"),
        ("timeout 60 claude -p hi", "claude"),
        ("nice -n 5 timeout 1.5h claude", "claude"),
        ("node /opt/pi.js --mode json", "pi"),
        ("echo claude", None),
        ("sh -c claude", None),
        ("cat claude.jsonl", None),
        ("claude-code-wrapper", None),
        ("npx something claude", None),
        ("npx", None),
        ("", None),
    ],
)
def test_agent_is_detected_from_command(line: str, agent: str | None) -> None:
    """By the program's name, at any path and behind wrappers."""
    assert detect_agent(line.split()) == agent
