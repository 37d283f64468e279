"""A home with sample sessions, whose contents account for their tokens: those that the docs show.

The sessions are invented, and so is what is in them; the records are those of the clients.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

TOKENS_PER_BYTE = 0.3
SYSTEM_TOKENS = 17_400  # Claude Code's system prompt and tools
STEP_S = 20.0  # between two calls
CART = "3f1a9c02-5a0e-4b7c-9d13-6e0b7a9c2f11"
CODE = "def total(cart: Cart, discount: Discount | None = None) -> Money:\n"
LOG = "tests/test_cart.py::test_discount_is_applied_once[{number}] PASSED\n"

Step = tuple[str, dict[str, str], int]
"""A tool, its input, and the bytes of its result."""


def read(path: str, size: int) -> Step:
    return "Read", {"file_path": path}, size


def bash(command: str, size: int) -> Step:
    return "Bash", {"command": command}, size


def edit(path: str) -> Step:
    return "Edit", {"file_path": path, "old_string": CODE, "new_string": CODE.upper()}, 200


CART_STEPS = (
    bash("pytest -q tests", 26_000),
    read("/home/dev/shop/src/cart.py", 31_000),
    read("/home/dev/shop/tests/test_cart.py", 44_000),
    bash("git log -5 --stat", 4_000),
    read("/home/dev/shop/src/prices.py", 38_000),
    edit("/home/dev/shop/src/cart.py"),
    bash("pytest -q tests", 24_000),
    read("/home/dev/shop/src/cart.py", 31_000),
    bash("grep -rn discount src", 21_000),
    edit("/home/dev/shop/src/cart.py"),
    read("/home/dev/shop/docs/discounts.md", 27_000),
    bash("pytest -q tests", 24_000),
    read("/home/dev/shop/src/orders.py", 46_000),
    edit("/home/dev/shop/src/orders.py"),
    bash("pytest -q tests/test_orders.py", 9_000),
    read("/home/dev/shop/src/invoice.py", 22_000),
    edit("/home/dev/shop/src/invoice.py"),
    bash("pytest -q tests", 24_000),
    read("/home/dev/shop/src/money.py", 33_000),
    bash("git diff", 19_000),
    edit("/home/dev/shop/src/money.py"),
    bash("ruff check .", 1_000),
)
SEARCH_STEPS = (
    read("/home/dev/search/index.py", 52_000),
    bash("python -m cProfile index.py", 61_000),
    edit("/home/dev/search/index.py"),
    bash("pytest -q", 12_000),
)


def write_sample_home(home: Path, now: float | None = None) -> None:
    """Write the transcripts of two sessions of Claude Code and one of Codex.

    Their ages are those that stay the same, as rounded, for the longest time.
    """
    now = time.time() if now is None else now
    projects = home / ".claude/projects"
    cart = ClaudeSession(CART, "/home/dev/shop", "Apply discounts once", now - 100)
    search = ClaudeSession(
        "b80e6d15-13c2-4f7e-8a61-0d4c5be7a930",
        "/home/dev/search",
        "Speed up the index",
        now - 4_000,
    )
    for session, steps in ((cart, CART_STEPS), (search, SEARCH_STEPS)):
        file = projects / session.project.replace("/", "-") / f"{session.id}.jsonl"
        _write(file, session.records(steps))
    id = "019a8b3c-77e2-7a10-9d53-2c41f08be6a4"
    folder = datetime.fromtimestamp(now, UTC).strftime(".codex/sessions/%Y/%m/%d")
    _write(home / folder / f"rollout-2026-11-18T00-00-00-{id}.jsonl", codex_records(id, now - 215))


def _write(path: Path, records: Iterator[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(size: int) -> str:
    """A text of about this many bytes, as of a file or of a command's output."""
    lines = (LOG.format(number=number) for number in count())
    return "".join(next(lines) for _ in range(size // len(LOG) + 1))


class ClaudeSession:
    """A session of Claude Code whose last call was at `end`."""

    def __init__(self, id: str, project: str, prompt: str, end: float) -> None:
        self.id, self.project, self._prompt, self._end = id, project, prompt, end
        self._numbers = count(1)

    def records(self, steps: tuple[Step, ...]) -> Iterator[dict[str, Any]]:
        """A prompt, a call with a tool for each step, and what the tools returned."""
        at = self._end - len(steps) * STEP_S
        cached, fresh = 0, SYSTEM_TOKENS + int(len(self._prompt) * TOKENS_PER_BYTE)
        yield self._framed("user", at, message={"role": "user", "content": self._prompt})
        for number, (tool, given, size) in enumerate(steps):
            at += STEP_S
            use = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given}
            output = 60 + int(len(json.dumps(given)) * TOKENS_PER_BYTE)
            yield self._framed("assistant", at, message=self._call(use, cached, fresh, output))
            result = _text(size)
            block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": result}
            yield self._framed("user", at + 2, message={"role": "user", "content": [block]})
            cached += fresh
            fresh = output + int(len(result) * TOKENS_PER_BYTE)

    def _call(self, use: dict[str, Any], cached: int, fresh: int, output: int) -> dict[str, Any]:
        usage = {
            "input_tokens": 0,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": fresh,
            "output_tokens": output,
        }
        return {
            "id": f"msg_{self.id[:8]}_{use['id']}",
            "model": "claude-sonnet-4-5",
            "role": "assistant",
            "type": "message",
            "content": [use],
            "stop_reason": "tool_use",
            "usage": usage,
        }

    def _framed(self, kind: str, at: float, **record: Any) -> dict[str, Any]:
        uuid = f"{next(self._numbers):08x}-0000-4000-8000-000000000000"
        frame = {"sessionId": self.id, "cwd": self.project, "version": "2.1.325"}
        return {
            "type": kind,
            "uuid": uuid,
            "timestamp": _moment(at),
            "isSidechain": False,
            "gitBranch": "main",
            **frame,
            **record,
        }


def codex_records(id: str, end: float) -> Iterator[dict[str, Any]]:
    """A session of Codex that grows by 14,000 tokens with each call."""
    total, sents = 0, range(22_000, 150_000, 14_000)
    at = end - len(sents) * STEP_S
    meta = {"id": id, "cwd": "/home/dev/parser", "cli_version": "0.166.0", "originator": "codex"}
    content = [{"type": "input_text", "text": "Parse dates without a year"}]
    for kind, payload in (
        ("session_meta", {**meta, "timestamp": _moment(at)}),
        ("turn_context", {"model": "gpt-5.5", "cwd": "/home/dev/parser"}),
        ("response_item", {"type": "message", "role": "user", "content": content}),
    ):
        yield {"timestamp": _moment(at), "type": kind, "payload": payload}
    for sent in sents:
        at, total = at + STEP_S, total + sent
        last = {"input_tokens": sent, "cached_input_tokens": sent - 9_000, "output_tokens": 300}
        totals = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": 300}
        info = {"total_token_usage": totals, "last_token_usage": last}
        payload = {"type": "token_count", "info": info | {"model_context_window": 258_400}}
        yield {"timestamp": _moment(at), "type": "event_msg", "payload": payload}


def status_input(home: Path) -> dict[str, Any]:
    """What Claude Code hands to a status line after the last call of the session `CART`."""
    transcript = home / f".claude/projects/-home-dev-shop/{CART}.jsonl"
    records = [json.loads(line) for line in transcript.read_text().splitlines()]
    usage = [one["message"]["usage"] for one in records if one["type"] == "assistant"][-1]
    model = {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"}
    return {
        "session_id": CART,
        "transcript_path": str(transcript),
        "cwd": "/home/dev/shop",
        "model": model,
        "workspace": {"current_dir": "/home/dev/shop", "project_dir": "/home/dev/shop"},
        "version": "2.1.325",
        "cost": {"total_cost_usd": 1.05},
        "context_window": {"context_window_size": 200_000, "current_usage": usage},
    }
