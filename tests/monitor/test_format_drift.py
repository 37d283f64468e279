"""A session whose file is not understood is stored with the reason, also without a call."""

from pathlib import Path

import pytest

from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Places
from brimline.api.views import Views
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.sessions.files import find_transcripts
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore
from drifted_homes import CHANGES, RECORDED, Change, write_home


class Watched:
    """A monitor that observes the one transcript of a home."""

    def __init__(self, agent: str, home: Path) -> None:
        self.agent, self.home = agent, home
        self.store = MemoryStore()
        self.monitor = Monitor(self.store, lambda: 1.0)
        self.session = ""
        self._observed = 0

    async def observe(self, version: str | None = None) -> SessionRow | None:
        """Report the file as it is; return the session's row in the API, if there is one."""
        (transcript,) = find_transcripts(Places(home=self.home, env={}), [self.agent])
        self.session, self._observed = transcript.session or "", self._observed + 1
        await self.monitor.observe(
            Observation(
                id=str(self._observed),
                agent=self.agent,
                session=self.session,
                kind="wrote",
                at=float(self._observed),
                file=transcript,
                version=version,
            )
        )
        row = await self.store.session(self.session)
        return (await Views(self.store, self.monitor, Rules()).view(row)).session if row else None


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("agent", RECORDED)
async def test_session_names_the_file_that_is_not_understood(
    agent: str, change: Change, tmp_path: Path
) -> None:
    path = write_home(agent, tmp_path, change)
    row = await Watched(agent, tmp_path).observe()
    assert row is not None
    assert row.problem is not None
    assert row.problem.startswith("Brimline does not understand this version of ")
    assert str(path) in row.problem


@pytest.mark.parametrize("agent", RECORDED)
async def test_session_with_a_known_format_has_no_problem(agent: str, tmp_path: Path) -> None:
    write_home(agent, tmp_path, None)
    row = await Watched(agent, tmp_path).observe()
    assert row is not None
    assert row.problem is None


async def test_problem_ends_when_the_file_is_understood_again(tmp_path: Path) -> None:
    path = write_home("claude", tmp_path, "usage renamed")
    watched = Watched("claude", tmp_path)
    row = await watched.observe()
    assert row is not None
    assert row.problem
    calls = write_home("claude", tmp_path / "other", None).read_bytes()
    with path.open("ab") as file:
        file.write(calls)
    row = await watched.observe()
    assert row is not None
    assert row.problem is None


async def test_version_that_only_the_hooks_know_is_named(tmp_path: Path) -> None:
    write_home("pi", tmp_path, "usage renamed")
    row = await Watched("pi", tmp_path).observe(version="9.8.7")
    assert row is not None
    assert "this version of Pi (9.8.7): " in (row.problem or "")


async def test_unknown_kinds_add_up_over_small_reads(tmp_path: Path) -> None:
    path = write_home("claude", tmp_path, None)
    watched, problems = Watched("claude", tmp_path), list[str | None]()
    for _ in range(20):
        with path.open("ab") as file:
            file.write(b'{"type":"new-kind"}\n')
        row = await watched.observe()
        assert row is not None
        problems.append(row.problem)
    assert problems[8] is None
    assert problems[-1]
