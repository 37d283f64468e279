"""The monitor: levels once per cycle, messages once, a handoff after a compaction."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from brimline.events import MAIN
from brimline.handoff.document import Document
from brimline.monitor.texts import Texts

from .agent import Agent


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


def test_level_in_a_headless_run(tmp_path: Path) -> None:
    """Without a status line the transcript tells; a warning waits for the next turn, once."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("started")
        agent.call(90_000)
        assert (await agent.tell("tool")).context is None
        agent.call(110_000)
        assert (await agent.tell("tool")).context is None
        assert (await agent.tell("stopped")).go_on is None
        told = await agent.tell("prompt")
        assert told.context is not None
        assert "at 55%" in told.context
        assert "110K of 200K" in told.context
        assert (await agent.tell("prompt")).context is None

    run(go())


def test_urgent_at_the_next_tool(tmp_path: Path) -> None:
    """The last level is urgent: the next tool's result carries it; a jump over two is one."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        told = await agent.tell("tool")
        assert told.context is not None
        assert told.context.count("[brimline]") == 1
        assert "brimline handoff PATH" in told.context
        assert (await agent.tell("tool")).context is None
        assert (await agent.tell("prompt")).context is None
        assert [s.level for s in await agent.store.signals("s1")] == [65.0]

    run(go())


def test_urgent_at_a_stop(tmp_path: Path) -> None:
    """What is urgent, or somebody sent, keeps a turn from ending, once."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        told = await agent.tell("stopped")
        assert told.go_on is not None
        await agent.monitor.send("s1", "look at the tests")
        assert (await agent.tell("stopped", going_on=True)).go_on is None
        assert (await agent.tell("stopped")).go_on == "look at the tests"

    run(go())


def test_lower_level_that_was_not_told(tmp_path: Path) -> None:
    """A warning that waits when the next level is reached is no news any more."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        await agent.tell("tool")
        agent.call(150_000)
        told = await agent.tell("tool")
        assert told.context is not None
        assert "75%" in told.context
        assert (await agent.tell("prompt")).context is None
        states = [m.state for m in await agent.store.messages("s1")]
        assert states == ["cancelled", "delivered"]

    run(go())


def test_neutral(tmp_path: Path) -> None:
    """A neutral tone states the figure and asks for nothing."""

    async def go() -> None:
        agent = Agent(tmp_path, texts=Texts(neutral=True))
        agent.call(150_000)
        told = await agent.tell("tool")
        assert told.context is not None
        assert "75%" in told.context
        assert "handoff" not in told.context

    run(go())


def test_levels_of_a_session(tmp_path: Path) -> None:
    """A session, a model or an agent can have levels of its own, the nearest counts."""

    async def go() -> None:
        agent = Agent(tmp_path, by={"claude": (30.0,), "s1": (40.0,)})
        agent.call(70_000)
        await agent.tell("tool")
        assert await agent.store.signals("s1") == []
        agent.call(90_000)
        await agent.tell("tool")
        assert [s.level for s in await agent.store.signals("s1")] == [40.0]

    run(go())


def test_levels_without_a_window(tmp_path: Path) -> None:
    """Levels in tokens are told where nobody knows the window."""

    async def go() -> None:
        agent = Agent(tmp_path, levels=(50_000.0,), of="tokens")
        usage = {"input_tokens": 60_000, "output_tokens": 10}
        message = {"id": "msg_x", "model": None, "usage": usage}
        agent.line(type="assistant", message=message)
        told = await agent.tell("tool")
        assert told.context is not None
        assert "Your context" in told.context
        assert "60K" in told.context

    run(go())


def test_restart_says_nothing_again(tmp_path: Path) -> None:
    """A monitor that starts anew knows what was said."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        await agent.tell("prompt")
        agent.new_monitor()
        agent.call(111_000)
        assert (await agent.tell("prompt")).context is None
        assert len(await agent.store.signals("s1")) == 1

    run(go())


def test_restart_between_saying_and_delivering(tmp_path: Path) -> None:
    """A message that was queued before a restart is delivered after it, once."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        await agent.tell("tool")
        agent.new_monitor()
        told = await agent.tell("prompt")
        assert told.context is not None
        assert (await agent.tell("prompt")).context is None

    run(go())


def test_hook_that_died(tmp_path: Path) -> None:
    """A message that was handed to a hook which never passed it on is handed out again."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        first = await agent.monitor.hear(agent.heard("prompt"))
        assert first.context is not None
        await agent.monitor.lost(first)
        again = await agent.tell("prompt")
        assert again.context == first.context
        assert (await agent.tell("prompt")).context is None

    run(go())


def test_hook_that_vanished(tmp_path: Path) -> None:
    """One of which nothing more was heard gets it again after a while."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        first = await agent.monitor.hear(agent.heard("prompt"))
        assert first.handed
        assert (await agent.tell("prompt")).context is None
        agent.time += 60
        assert (await agent.tell("prompt")).context == first.context

    run(go())


def test_told_twice(tmp_path: Path) -> None:
    """What is told twice with the same id is heard once."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        heard = agent.heard("prompt")
        assert (await agent.monitor.hear(heard)).context is not None
        assert (await agent.monitor.hear(heard)).context is None

    run(go())


def test_compaction(tmp_path: Path) -> None:
    """Three hooks and the transcript tell one compaction; levels fire again in the new cycle."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        await agent.tell("tool")
        await agent.tell("compacting", trigger="auto")
        assert agent.reading() == (150_000, "compacting", 0)
        await agent.tell("compacted")
        assert agent.reading() == (None, "unknown", 1)
        await agent.tell("compacted")
        agent.boundary()
        await agent.tell("tool")
        assert agent.reading() == (None, "unknown", 1)
        agent.call(120_000)
        await agent.tell("tool")
        assert agent.reading() == (120_000, "measured", 1)
        said = [(s.kind, s.cycle, s.level) for s in await agent.store.signals("s1")]
        assert said == [
            ("level", 0, 65.0),
            ("compacting", 0, 0.0),
            ("compacted", 0, 0.0),
            ("level", 1, 50.0),
        ]

    run(go())


def test_compaction_that_the_transcript_tells_first(tmp_path: Path) -> None:
    """A hook that comes after the record of its compaction ends no second cycle."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        await agent.tell("tool")
        await agent.tell("compacting")
        agent.boundary()
        await agent.tell("compacted")
        await agent.tell("compacted")
        assert agent.reading() == (None, "unknown", 1)

    run(go())


def test_compaction_without_hooks(tmp_path: Path) -> None:
    """A compaction that only the transcript tells counts too."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        await agent.tell("tool")
        agent.boundary()
        agent.call(30_000)
        await agent.tell("tool")
        assert agent.reading() == (30_000, "measured", 1)
        kinds = [s.kind for s in await agent.store.signals("s1")]
        assert kinds == ["level", "compacted"]

    run(go())


def test_compaction_that_does_not_come(tmp_path: Path) -> None:
    """A compaction that was announced and did not come is undone by the next call."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        await agent.tell("compacting")
        agent.call(91_000)
        await agent.tell("tool")
        assert agent.reading() == (91_000, "measured", 0)

    run(go())


def test_two_compactions(tmp_path: Path) -> None:
    """Each compaction ends its own cycle."""

    async def go() -> None:
        agent = Agent(tmp_path)
        for cycle in range(3):
            agent.call(120_000)
            await agent.tell("tool")
            assert agent.reading() == (120_000, "measured", cycle)
            await agent.tell("compacting")
            await agent.tell("compacted")
            agent.boundary()
            await agent.tell("compacted")
        levels = [s.cycle for s in await agent.store.signals("s1") if s.kind == "level"]
        assert levels == [0, 1, 2]

    run(go())


def test_restart_during_a_compaction(tmp_path: Path) -> None:
    """The daemon may die between any two hooks of a compaction."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        await agent.tell("tool")
        agent.new_monitor()
        await agent.tell("compacting")
        agent.new_monitor()
        await agent.tell("compacted")
        agent.new_monitor()
        await agent.tell("compacted")
        agent.boundary()
        agent.new_monitor()
        agent.call(30_000)
        await agent.tell("tool")
        assert agent.reading() == (30_000, "measured", 1)

    run(go())


def test_queued_level_is_cancelled(tmp_path: Path) -> None:
    """A level's message that was not delivered when its cycle ended is never delivered."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        await agent.tell("tool")
        await agent.tell("compacting")
        await agent.tell("compacted")
        assert (await agent.tell("prompt")).context is None
        assert [m.state for m in await agent.store.messages("s1")] == ["cancelled"]

    run(go())


def test_nothing_during_a_compaction(tmp_path: Path) -> None:
    """A message of the user's waits until the compaction is over."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        await agent.monitor.send("s1", "look at the tests", "urgent")
        await agent.tell("compacting")
        await agent.tell("compacted")
        agent.boundary()
        agent.call(20_000)
        assert (await agent.tell("tool")).context == "look at the tests"

    run(go())


def test_handoff_comes_back(tmp_path: Path) -> None:
    """After a compaction the last document that was handed over is what the agent is given."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        await agent.tell("tool")
        for text in ("the first", "the second"):
            document = Document.of(text, "/project/handoff.md", 1_000.0)
            await agent.monitor.hand_over("s1", document, "the agent itself")
        await agent.tell("compacting")
        told = await agent.tell("compacted")
        assert told.context is not None
        assert "the second" in told.context
        assert "the first" not in told.context
        assert len(told.context) <= 9_000
        (last, _) = await agent.store.handoffs("s1")
        assert last.used_at is not None

    run(go())


def test_draft(tmp_path: Path) -> None:
    """Where the agent wrote none, what the transcript tells is given back, marked as a draft."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.line(type="user", message={"role": "user", "content": "Mend the parser."})
        agent.call(110_000)
        await agent.tell("compacting")
        await asyncio.sleep(0.3)
        told = await agent.tell("compacted")
        assert told.context is not None
        assert "Mend the parser." in told.context
        assert "draft" in told.context
        (row,) = await agent.store.handoffs("s1")
        assert (row.draft, row.author) == (True, "brimline")

    run(go())


def test_no_draft_beside_a_document(tmp_path: Path) -> None:
    """What the agent wrote itself is never replaced by a draft."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.line(type="user", message={"role": "user", "content": "Mend the parser."})
        agent.call(110_000)
        await agent.tell("tool")
        document = Document.of("mine", "/project/handoff.md", 1_000.0)
        await agent.monitor.hand_over("s1", document, "the agent itself")
        await agent.tell("compacting")
        await asyncio.sleep(0.1)
        told = await agent.tell("compacted")
        assert told.context is not None
        assert "mine" in told.context
        assert len(await agent.store.handoffs("s1")) == 1

    run(go())


def test_no_handoff(tmp_path: Path) -> None:
    """Without a document, and nothing to draft one from, nothing is said after a compaction."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("prompt")
        await agent.tell("compacting")
        assert (await agent.tell("compacted")).context is None

    run(go())


# The status line.


def test_status_before_the_first_call(tmp_path: Path) -> None:
    """Before the first call the window is known and nothing else."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(None)
        assert agent.reading() == (None, "unknown", 0)
        window = agent.monitor.reading("s1").window
        assert window is not None
        assert window.tokens == 200_000

    run(go())


def test_status_is_ahead_of_the_transcript(tmp_path: Path) -> None:
    """The status line tells a call before the transcript does; then both are one."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.status(110_000)
        assert agent.reading() == (110_000, "measured", 0)
        assert agent.monitor.reading("s1").source == "status line"
        agent.call(110_000)
        told = await agent.tell("prompt")
        assert agent.monitor.reading("s1").source == "transcript"
        assert told.context is not None
        assert len(await agent.store.signals("s1")) == 1

    run(go())


def test_status_after_a_compaction(tmp_path: Path) -> None:
    """All zero after a compaction is unknown, not empty; the next figure is the new cycle's."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(150_000)
        await agent.status(150_000)
        await agent.tell("compacting")
        await agent.tell("compacted")
        await agent.status(0)
        assert agent.reading() == (None, "unknown", 1)
        await agent.status(40_000)
        assert agent.reading() == (40_000, "measured", 1)
        agent.boundary()
        agent.call(40_000)
        await agent.tell("tool")
        assert agent.reading() == (40_000, "measured", 1)

    run(go())


def test_window_of_the_status_line(tmp_path: Path) -> None:
    """A 1M session at 300k is warned by its own window."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(300_000)
        await agent.status(300_000, window=1_000_000)
        assert await agent.store.signals("s1") == []
        assert agent.monitor.reading("s1").percent == 30.0

    run(go())


# Parents.


def test_parent_is_told(tmp_path: Path) -> None:
    """The session that spawned this one is told whose context it is, and that it goes on."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.parent = "p1"
        agent.call(150_000)
        await agent.tell("tool")
        await agent.tell("compacting")
        await agent.tell("compacted")
        texts = [m.text for m in await agent.store.messages("p1")]
        assert len(texts) == 2
        assert "s1" in texts[0]
        assert "75%" in texts[0]
        assert all("still running" in text for text in texts)

    run(go())


def test_thrash(tmp_path: Path) -> None:
    """More than three compactions in ten minutes are a signal."""

    async def go() -> None:
        agent = Agent(tmp_path)
        for _ in range(4):
            agent.call(150_000)
            await agent.tell("tool")
            await agent.tell("compacting")
            await agent.tell("compacted")
            agent.boundary()
        kinds = [s.kind for s in await agent.store.signals("s1")]
        assert kinds.count("thrash") == 1

    run(go())


# What is kept.


def test_rows(tmp_path: Path) -> None:
    """The store has the session, its thread as it is, and every call with its cycle."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        agent.call(110_000)
        agent.boundary()
        agent.call(20_000)
        await agent.tell("stopped")
        await agent.tell("ended")
        row = await agent.store.session("s1")
        assert row is not None
        assert (row.project, row.version, row.model) == ("/project", "2.1.325", "claude-sonnet-4-5")
        assert row.ended_at is not None
        (thread,) = await agent.store.threads("s1")
        assert (thread.thread, thread.cycle, thread.sent, thread.peak_sent) == (
            MAIN,
            1,
            20_000,
            110_000,
        )
        calls = [(c.input, c.cycle) for c in await agent.store.calls("s1")]
        assert calls == [(90_000, 0), (110_000, 0), (20_000, 1)]

    run(go())


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"\0\0\0"])
def test_transcript_that_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    """A transcript that is missing, empty or garbage tells nothing, and breaks nothing."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("prompt")
        agent.path.write_bytes(content)
        await agent.tell("tool")
        assert agent.reading() == (None, "unknown", 0)

    run(go())


def test_late(tmp_path: Path) -> None:
    """What comes out of the spool is taken in; nobody waits for an answer."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(110_000)
        assert (await agent.tell("prompt", late=True)).context is None
        assert (await agent.tell("prompt")).context is not None

    run(go())


def test_handoff_after_a_restart(tmp_path: Path) -> None:
    """A document is kept of a session that this monitor has heard nothing of yet."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(60_000)
        await agent.tell("tool")
        agent.new_monitor()
        kept = await agent.monitor.hand_over("s1", Document.of("all of it", "/d", 0.0), "claude")
        assert (kept.session, kept.cycle) == ("s1", 0)

    asyncio.run(go())
