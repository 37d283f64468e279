"""Agents that load an extension of ours next to the user's own."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from ..run import ClientRun, Place
from .base import MonitoredClient


class ExtensionClient(MonitoredClient):
    """An agent that loads every file of a folder; `-c` continues its last session."""

    path: ClassVar[str]
    """The path of our file below the home folder."""
    user_extension: ClassVar[str]
    """The text of the user's own extension."""

    @property
    def file(self) -> Path:
        """The path of our file."""
        return Place(self.folder).home / self.path

    def write_settings(self) -> Path:
        """Write the user's own extension."""
        file = self.file.with_name("own.js")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.user_extension)
        return file

    @abstractmethod
    def errors_shown(self, run: ClientRun) -> list[str]:
        """The errors that the client showed to the user."""
