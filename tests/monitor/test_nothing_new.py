"""A hook without a change causes no write to the store."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from brimline.agents.observations import Pane
from brimline.context.client_report import PromptCache, Quota, Quotas
from brimline.handoff.document import Document
from brimline.monitor.persistence import SEEN_EVERY_S
from brimline.store.base import Write
from brimline.store.sqlite import MemoryStore

from .agent import MODEL, Agent

Change = Callable[[Agent], Awaitable[object]]


class CountingStore(MemoryStore):
    """Counts its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        self.writes += 1
        return await super().write(writes)


async def stored_agent(folder: Path) -> tuple[Agent, CountingStore]:
    """Return an agent whose state is stored, and its store."""
    store = CountingStore()
    agent = Agent(folder, store)
    agent.call(60_000)
    await agent.observe("tool", model="m", pane=Pane("/tmp/t", "%1"), env=(("A", "1"),))
    store.writes = 0
    return agent, store


async def test_hook_without_a_change_writes_nothing(tmp_path: Path) -> None:
    agent, store = await stored_agent(tmp_path)
    await agent.observe("tool")
    await agent.observe("prompt", model="m")
    await agent.observe("stopped", pane=Pane("/tmp/t", "%1"), env=(("A", "1"),))
    assert store.writes == 0
    assert agent.reading() == (60_000, "measured", 0)


async def test_hook_after_a_repeated_status_line_writes_nothing(tmp_path: Path) -> None:
    agent, store = await stored_agent(tmp_path)
    await agent.status(60_000)
    await agent.observe("tool")
    store.writes = 0
    await agent.status(60_000)
    await agent.observe("tool")
    assert store.writes == 0


async def test_repeated_report_writes_nothing_and_another_is_stored(tmp_path: Path) -> None:
    agent, store = await stored_agent(tmp_path)
    for resets_at, is_written in ((9_000.0, True), (9_000.0, False), (9_500.0, True)):
        store.writes = 0
        quotas = Quotas(agent.time + 1, Quota(50.0, resets_at))
        cache = PromptCache(at=agent.time + 1, warm=True, expires_at=9_000.0)
        await agent.observe("status", quotas=quotas, prompt_cache=cache)
        assert (store.writes > 0) == is_written
        (row,) = await store.sessions()
        assert str(resets_at) in (row.client_report or "")


async def make_call(agent: Agent) -> None:
    agent.call(61_000)
    await agent.observe("tool")
    assert agent.reading() == (61_000, "measured", 0)


async def send_message(agent: Agent) -> None:
    await agent.monitor.send("s1", "look here", "urgent")
    assert (await agent.observe("tool")).context == "[message from user] look here"


async def requeue_message(agent: Agent) -> None:
    await agent.monitor.send("s1", "look here", "urgent")
    await agent.monitor.requeue(await agent.monitor.observe(agent.observation("tool")))
    assert (await agent.observe("tool")).context == "[message from user] look here"


async def wait_for_seen_at(agent: Agent) -> None:
    """The time a session was last seen is stored at intervals."""
    agent.time += SEEN_EVERY_S
    await agent.observe("tool")
    (row,) = await agent.store.sessions()
    assert row.seen_at == agent.time


async def compact(agent: Agent) -> None:
    await agent.monitor.hand_over("s1", Document.of("all of it", "/d", 0.0), "claude")
    await agent.observe("compacting")
    assert agent.reading()[1] == "compacting"
    await agent.observe("tool")
    assert agent.reading()[1] == "measured"
    agent.boundary()
    assert "all of it" in ((await agent.observe("prompt")).context or "")


async def end_and_resume(agent: Agent) -> None:
    await agent.observe("ended")
    await agent.observe("prompt")
    state = agent.monitor.state_of("s1")
    assert state is not None
    assert state.ended_at is None


async def set_parent(agent: Agent) -> None:
    agent.parent = "p"
    await agent.observe("tool")
    (row,) = await agent.store.sessions()
    assert row.parent == "p"


async def set_host(agent: Agent) -> None:
    await agent.observe("tool", host="h")
    (row,) = await agent.store.sessions()
    assert row.host == "h"


async def change_transcript(agent: Agent) -> None:
    agent.path = agent.path.with_name("other.jsonl")
    agent.call(70_000)
    await agent.observe("tool")
    assert agent.reading() == (70_000, "measured", 0)


CHANGES: dict[str, Change] = {
    "another call": make_call,
    "a message": send_message,
    "a message that was lost": requeue_message,
    "later": wait_for_seen_at,
    "a compaction": compact,
    "an end": end_and_resume,
    "a parent": set_parent,
    "a host": set_host,
    "another file": change_transcript,
}


@pytest.mark.parametrize("name", CHANGES)
async def test_change_is_written(tmp_path: Path, name: str) -> None:
    agent, store = await stored_agent(tmp_path)
    await CHANGES[name](agent)
    assert store.writes > 0


@pytest.mark.parametrize("field", ["model", "version"])
async def test_model_and_version_of_a_hook_are_stored_before_the_first_call(
    tmp_path: Path, field: str
) -> None:
    """Later calls decide the model, and the transcript the version."""
    store = CountingStore()
    agent = Agent(tmp_path, store)
    await agent.observe("started", **{field: "one"})
    store.writes = 0
    await agent.observe("prompt", **{field: "one"})
    assert store.writes == 0
    await agent.observe("prompt", **{field: "two"})
    await agent.observe("prompt")
    (row,) = await store.sessions()
    assert getattr(row, field) == "two"
    agent.call(60_000)
    await agent.observe("tool", **{field: "three"})
    (row,) = await store.sessions()
    assert (row.model, row.version) == (MODEL, "2.1.325")


@pytest.mark.parametrize("more", [{"pane": Pane("/tmp/t", "%2")}, {"env": (("A", "2"),)}])
async def test_pane_and_environment_are_updated_without_a_row(
    tmp_path: Path, more: dict[str, object]
) -> None:
    agent, _ = await stored_agent(tmp_path)
    await agent.observe("tool", **more)
    state = agent.monitor.state_of("s1")
    assert state is not None
    assert (state.pane == Pane("/tmp/t", "%2")) == ("pane" in more)
    assert (state.env == (("A", "2"),)) == ("env" in more)
