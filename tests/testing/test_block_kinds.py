"""The blocks of a prompt by kind, in the shapes of the four APIs."""

from typing import Any

import pytest

from brimline.testing.fake_model.billed import BilledBlock
from brimline.testing.fake_model.block_kinds import BlockKind, kind_of, tokens_by_kind

CASES: list[tuple[Any, BlockKind]] = [
    (["", {"name": "Bash", "input_schema": {}}], "tools"),
    (["", {"type": "text", "text": "You are"}], "system"),
    (["user", {"type": "text", "text": "Hi"}], "user"),
    (["user", {"type": "tool_result", "content": "x"}], "tool result"),
    (["assistant", {"type": "thinking", "thinking": "x"}], "reasoning"),
    (["assistant", {"type": "text", "text": "x"}], "reply"),
    ({"type": "function", "name": "shell", "parameters": {}}, "tools"),
    ("You are", "system"),
    ({"type": "message", "role": "developer", "content": "x"}, "system"),
    ({"type": "message", "role": "assistant", "content": "x"}, "reply"),
    ({"type": "function_call_output", "output": "x"}, "tool result"),
    ({"role": "assistant", "content": "x", "tool_calls": [{}]}, "tool call"),
    ({"role": "tool", "content": "x"}, "tool result"),
    ({"functionDeclarations": []}, "tools"),
    (["model", {"functionCall": {}}], "tool call"),
    (["user", {"functionResponse": {}}], "tool result"),
    (["model", {"text": "x", "thought": True}], "reasoning"),
    (["model", {"text": "x"}], "reply"),
]


@pytest.mark.parametrize(("content", "kind"), CASES)
def test_kind_of_a_block(content: Any, kind: BlockKind) -> None:
    assert kind_of(content) == kind


def test_tokens_by_kind() -> None:
    blocks = [BilledBlock(3, "You are"), BilledBlock(4, ["user", {"text": "Hi"}])]
    assert tokens_by_kind([*blocks, BilledBlock(5, "Be brief")]) == {"system": 8, "user": 4}
