"""A client in a real tmux, with the habits that a test wants."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import client
from .terminal import Terminal


class Drawn(Terminal):
    """The client that is drawn as Claude Code is, in a pane."""

    def __init__(self, folder: Path, *habits: str, size: tuple[int, int] = (100, 30)) -> None:
        self.log = folder / "sent.jsonl"
        command = [sys.executable, str(Path(client.__file__)), str(self.log), *habits]
        super().__init__(command, folder, size=size)
        self.begin(lambda: self.until(lambda: self.shown.strip()))

    @property
    def sent(self) -> list[str]:
        """What was sent off, in its order."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]


@pytest.fixture
def drawn(tmp_path: Path) -> Iterator[Callable[..., Drawn]]:
    """Makes such clients, and ends them."""
    made: list[Drawn] = []

    def make(*habits: str, **more: Any) -> Drawn:
        made.append(Drawn(tmp_path, *habits, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()
