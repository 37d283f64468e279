"""The place of the prompt in a headless command, and the command with another prompt."""

import shlex

import pytest

from brimline.errors import InvalidRequest
from brimline.run.agent_command import find_prompt_place

REPLACED = [
    ("claude -p 'Do it.'", "claude -p NEW", "Do it."),
    ("claude 'Do it.' --print --verbose", "claude NEW --print --verbose", "Do it."),
    (
        "claude -p --output-format stream-json --verbose 'Do it.' --model opus",
        "claude -p --output-format stream-json --verbose NEW --model opus",
        "Do it.",
    ),
    ("claude -p 'Do it.' --allowedTools Bash Read", "claude -p NEW --allowedTools Bash Read",
     "Do it."),
    ("claude -p --add-dir a b --verbose -- -x", "claude -p --add-dir a b --verbose -- NEW", "-x"),
    ("claude -p --model=opus", "claude NEW -p --model=opus", None),
    ("claude --resume 1234 -p 'Do it.'", "claude -p NEW", "Do it."),
    ("claude -c -p 'Do it.' --session-id 1234", "claude -p NEW", "Do it."),
    ("claude --resume=1234 -p 'Do it.' --fork-session", "claude -p NEW", "Do it."),
    ("timeout 60 npx -y @anthropic-ai/claude-code@2 -p Go",
     "timeout 60 npx -y @anthropic-ai/claude-code@2 -p NEW", "Go"),
    ("codex exec --json 'Do it.'", "codex exec --json NEW", "Do it."),
    ("codex -m gpt-5.5 exec -c a=b -C sub 'Do it.' -o out.md",
     "codex -m gpt-5.5 exec -c a=b -C sub NEW -o out.md", "Do it."),
    ("codex exec --json", "codex exec NEW --json", None),
    ("codex exec -", "codex exec NEW", None),
    ("codex exec resume --last 'Do it.'", "codex exec NEW", "Do it."),
    ("codex exec --json resume 1234 'Do it.'", "codex exec --json NEW", "Do it."),
    ("codex exec exec", "codex exec NEW", "exec"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "replaced", "prompt"), REPLACED)
def test_prompt_is_replaced_and_older_sessions_are_not_resumed(
    command: str, replaced: str, prompt: str | None
) -> None:
    place = find_prompt_place(shlex.split(command))
    assert shlex.join(place.with_prompt("NEW")) == shlex.join(shlex.split(replaced))
    assert place.prompt == prompt


@pytest.mark.parametrize(
    ("command", "reason", "hint"),
    [
        ("./agent.sh Go", "cannot find the prompt of './agent.sh'", "Claude Code or Codex itself"),
        ("claude Go", "expected -p or --print", "Only a headless run"),
        ("codex Go", "expected exec or e", "Only a headless run"),
        ("claude -p one two", "which of these words is the prompt: 'one', 'two'", "Quote"),
        ("claude -p --input-format stream-json", "cannot be replaced with --input-format", "Drop"),
        ("codex exec review", "cannot be replaced with review", "Drop"),
        ("pi -p Go", "the prompt of Pi cannot be replaced", "--stop-at"),
    ],
)
def test_command_whose_prompt_cannot_be_replaced_is_refused(
    command: str, reason: str, hint: str
) -> None:
    """The error says what was expected, and what to do."""
    with pytest.raises(InvalidRequest) as caught:
        find_prompt_place(shlex.split(command))
    assert reason in str(caught.value)
    assert hint in (caught.value.hint or "")
