"""Transcripts and settings on a file system that hangs."""

import asyncio
import threading
from pathlib import Path

import pytest

from brimline.agents.observations import EnvironmentVariables
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN
from brimline.context.window import NO_CLIENT_SETTINGS, ClientSettings
from brimline.files.bounded_reads import CachedReads
from brimline.monitor.transcript_follower import Progress, TranscriptFollower, read_on_from

from .agent import Agent, RecordingEnvironment

PATIENCE_S = 20.0

pytestmark = pytest.mark.timeout(PATIENCE_S)
SHORT_WAIT_S = 0.01


class HangingDisk:
    """Reads transcripts only after it is released."""

    def __init__(self) -> None:
        self.reads = 0
        self.released = threading.Event()

    def read_on(self, transcript: Transcript, before: Progress) -> Progress | None:
        self.reads += 1
        assert self.released.wait(PATIENCE_S)
        return read_on_from(transcript, before)


def count_calls(follower: TranscriptFollower) -> int:
    main = follower.session.threads.get(MAIN)
    return len(main.calls) if main else 0


async def test_hanging_transcript_is_read_once_and_later_taken_in(tmp_path: Path) -> None:
    agent, disk = Agent(tmp_path), HangingDisk()
    agent.call(90_000)
    transcript = Transcript("claude", str(agent.path), 0.0, 0)
    follower = TranscriptFollower(transcript, disk.read_on, SHORT_WAIT_S)
    assert [await follower.catch_up() for _ in range(5)] == [False] * 5
    while not disk.reads:  # a busy machine may start the thread later
        await asyncio.sleep(0.001)
    assert (disk.reads, count_calls(follower), follower.is_behind) == (1, 0, True)
    disk.released.set()
    while not await follower.catch_up():
        await asyncio.sleep(0.001)
    assert count_calls(follower) == 1


async def test_records_written_during_a_hanging_read_are_read_afterwards(tmp_path: Path) -> None:
    agent, disk = Agent(tmp_path), HangingDisk()
    agent.call(90_000)
    begun = threading.Event()

    def read_then_hang(transcript: Transcript, before: Progress) -> Progress | None:
        progress = read_on_from(transcript, before)
        begun.set()
        assert disk.released.wait(PATIENCE_S)
        return progress

    transcript = Transcript("claude", str(agent.path), 0.0, 0)
    follower = TranscriptFollower(transcript, read_then_hang, 2 * SHORT_WAIT_S)
    assert not await follower.catch_up()
    while not begun.is_set():
        await asyncio.sleep(0.001)
    agent.call(95_000)
    disk.released.set()
    while not await follower.catch_up():
        await asyncio.sleep(0.001)
    assert count_calls(follower) == 2


class SlowEnvironment(RecordingEnvironment):
    """Client settings hang."""

    def __init__(self, disk: HangingDisk) -> None:
        super().__init__()

        def read(key: tuple[str, str | None]) -> ClientSettings:
            disk.reads += 1
            assert disk.released.wait(PATIENCE_S)
            return ClientSettings(limit=123_456, place="the settings")

        self.cached = CachedReads(read, NO_CLIENT_SETTINGS, wait_s=SHORT_WAIT_S)

    async def refresh(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> None:
        await self.cached.refresh((agent, project))

    def settings(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> ClientSettings:
        return self.cached.get((agent, project))


async def test_hooks_are_answered_while_settings_hang(tmp_path: Path) -> None:
    """Hooks use the defaults, then the settings once they are read."""
    agent, disk = Agent(tmp_path), HangingDisk()
    agent.environment = environment = SlowEnvironment(disk)
    agent.new_monitor()
    agent.call(90_000)
    for _ in range(3):
        await agent.observe("prompt")
    assert agent.reading()[0] == 90_000
    assert agent.monitor.reading("s1").limit != 123_456
    assert disk.reads <= 2  # before and after the project is known from the transcript
    disk.released.set()
    while environment.settings("claude", "/project", None) is NO_CLIENT_SETTINGS:
        await asyncio.sleep(0.001)
    await agent.observe("stopped")
    limit = agent.monitor.reading("s1").limit
    assert limit is not None
    assert limit.tokens == 123_456
