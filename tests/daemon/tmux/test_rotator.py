"""At which level sessions are rotated: for all, or by folder."""

import time
from pathlib import Path

import pytest

from brimline.daemon.tmux.clear import SessionClearer
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.daemon.tmux.rotator import SessionRotator
from brimline.daemon.tmux.typist import Typist
from brimline.monitor.monitor import Monitor
from brimline.settings import HandoffSettings
from brimline.store.sqlite import MemoryStore


def rotator(tmp_path: Path, settings: HandoffSettings) -> SessionRotator:
    async def ignore(request: ClearRequest) -> None:
        pass

    store = MemoryStore()
    clearer = SessionClearer(tmp_path, Typist(tmp_path), time.time, ignore)
    monitor = Monitor(store, time.time)
    return SessionRotator(
        settings, tmp_path, tmp_path, store, monitor, clearer, lambda request: None
    )


@pytest.mark.parametrize(
    ("project", "level"),
    [
        (None, 80),
        ("elsewhere", 80),
        ("work", 70),
        ("work/parser", 70),
        ("workshop", 80),
        ("work/private/notes", 0),
    ],
)
async def test_innermost_folder_has_the_level(
    tmp_path: Path, project: str | None, level: float
) -> None:
    by = {"~/work": 70.0, str(tmp_path / "work/private"): 0.0}
    settings = HandoffSettings(rotate_at=80.0, rotate_at_by=by)
    folder = str(tmp_path / project) if project else None
    assert rotator(tmp_path, settings).level_of(folder) == level
