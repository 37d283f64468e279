"""A fake client in a real tmux, with the habits that a test needs."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import client
from .terminal import Terminal


class FakeClient(Terminal):
    """The program of client.py in a pane."""

    def __init__(self, folder: Path, *habits: str, size: tuple[int, int] = (100, 30)) -> None:
        self.log = folder / "sent.jsonl"
        command = [sys.executable, str(Path(client.__file__)), str(self.log), *habits]
        super().__init__(command, folder, size=size)
        self.begin(lambda: self.until(lambda: self.text.strip()))

    @property
    def sent(self) -> list[str]:
        """The submitted texts in order."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]


@pytest.fixture
def start_client(tmp_path: Path) -> Iterator[Callable[..., FakeClient]]:
    """Starts fake clients and ends them after the test."""
    clients: list[FakeClient] = []

    def make(*habits: str, **more: Any) -> FakeClient:
        clients.append(FakeClient(tmp_path, *habits, **more))
        return clients[-1]

    yield make
    for fake in clients:
        fake.close()
