"""Agents into which we put a file of ours, beside the user's own."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from ..run import ClientRun, Place
from .base import Monitored


class Extended(Monitored):
    """An agent that loads every file of a folder; `-c` continues its last session."""

    path: ClassVar[str]
    """Where our file is, below the home folder."""
    theirs: ClassVar[str]
    """A file of the same kind that the user had before."""

    @property
    def file(self) -> Path:
        """Where ours is."""
        return Place(self.folder).home / self.path

    def write_settings(self) -> Path:
        """The user's own file."""
        file = self.file.with_name("own.js")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.theirs)
        return file

    @abstractmethod
    def complaints(self, run: ClientRun) -> list[str]:
        """What it told people of that went wrong."""
