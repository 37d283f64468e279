"""What a hook is answered: as it is by then, no more than a client takes, each thing once."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.bounded_reads import ReadThreads
from brimline.events import Call
from brimline.handoff.document import Document
from brimline.inbox import MAX_CONTEXT_CHARS, utf16_length
from brimline.monitor import handoffs
from brimline.monitor.texts import Texts
from brimline.store.failures import StoreFailed
from brimline.store.rows import HandoffRow
from brimline.usage import Usage

from .agent import MODEL, Agent


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


def document(agent: Agent, text: str = "Next: the parser.") -> Document:
    """A document that an agent wrote now."""
    return Document.of(text, "/project/handoff.md", agent.time)


def test_no_more_than_a_client_takes(tmp_path: Path) -> None:
    """What is too much for one answer comes with the next ones, in order, all of it once."""

    async def go() -> None:
        agent = Agent(tmp_path)
        texts = [f"{number} " + "x" * 3_900 for number in range(5)]
        for text in texts:
            await agent.monitor.send("s1", text, "urgent")
        answers = [(await agent.tell("tool")).context or "" for _ in range(4)]
        assert [answer.count("x" * 3_900) for answer in answers] == [2, 2, 1, 0]
        assert all(utf16_length(answer) <= MAX_CONTEXT_CHARS for answer in answers)
        assert "\n\n".join(filter(None, answers)) == "\n\n".join(texts)

    run(go())


def test_document_before_messages(tmp_path: Path) -> None:
    """A document leaves messages the room that it does not need; the others wait."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", document(agent, "x" * 7_000), "agent")
        agent.boundary()
        agent.call(20_000)
        await agent.tell("wrote")
        for text in ("short", "y" * 3_000):
            await agent.monitor.send("s1", text, "urgent")
        first = (await agent.tell("tool")).context or ""
        assert "x" * 7_000 in first
        assert first.endswith("\n\nshort")
        assert utf16_length(first) <= MAX_CONTEXT_CHARS
        assert (await agent.tell("tool")).context == "y" * 3_000

    run(go())


def test_level_is_told_as_it_is_by_then(tmp_path: Path) -> None:
    """A warning that waited for the next turn tells how full the context is at that time."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(105_000)
        await agent.tell("tool")
        agent.call(125_000)
        told = (await agent.tell("prompt")).context or ""
        assert "is at 62.5% (125K of 200K tokens)" in told
        assert "52.5%" not in told

    run(go())


def test_level_without_a_window(tmp_path: Path) -> None:
    """So does a level in tokens of a window that nobody knows."""

    async def go() -> None:
        agent = Agent(tmp_path, levels=(50_000.0, 80_000.0), of="tokens")
        mine = {"agent": "mine", "transcript": None}
        for sent in (55_000, 70_000):
            call = Call(id=f"c{sent}", usage=Usage(sent, 0, 0, 1), model="nobody-knows")
            heard = agent.heard("pushed", events=(call,))
            await agent.monitor.observe(msgspec.structs.replace(heard, **mine))
        asked = msgspec.structs.replace(agent.heard("prompt"), **mine)
        assert "holds 70K tokens" in ((await agent.monitor.observe(asked)).context or "")

    run(go())


def test_level_that_is_typed(tmp_path: Path) -> None:
    """What is given by another way than a hook's answer tells the figure of then, too; of a
    session that was not heard of since a restart it is as it was."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(105_000)
        await agent.tell("tool")
        agent.call(125_000)
        await agent.tell("wrote")
        (waiting,) = await agent.store.pending_messages("s1")
        assert "is at 62.5%" in agent.monitor.refresh_message(waiting).text
        assert agent.new_monitor().refresh_message(waiting) == waiting

    run(go())


def test_nobody_is_asked_for_what_they_have_done(tmp_path: Path) -> None:
    """A level's text that waits when the document is handed over is not told any more."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(105_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", document(agent), "agent")
        assert (await agent.tell("prompt")).context is None
        assert [m.state for m in await agent.store.messages("s1")] == ["cancelled"]

    run(go())


def test_document_of_after_the_compaction(tmp_path: Path) -> None:
    """What was written after a compaction is not given back to the context that wrote it."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(90_000)
        await agent.tell("compacting")
        assert (await agent.tell("compacted")).context is None
        await agent.status(20_000)
        agent.time += 1
        await agent.monitor.hand_over("s1", document(agent), "agent")
        assert (await agent.tell("tool")).context is None
        assert [row.used_at for row in await agent.store.handoffs("s1")] == [None]
        await agent.tell("compacting")
        assert "Next: the parser." in ((await agent.tell("compacted")).context or "")

    run(go())


def test_older_document_than_the_last(tmp_path: Path) -> None:
    """A monitor that starts anew still owes the document from before the compaction."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", document(agent, "before"), "agent")
        agent.boundary()
        agent.call(20_000)
        await agent.tell("wrote")
        agent.time += 1
        await agent.monitor.hand_over("s1", document(agent, "after"), "agent")
        agent.new_monitor()
        told = (await agent.tell("prompt")).context or ""
        assert "before\n-----" in told

    run(go())


def test_draft_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that is not ready in time comes with a later hook; an older one never before it."""
    ready, drafts = asyncio.Event(), iter(["old draft", "new draft"])

    async def slowly(threads: ReadThreads, read: Any, timeout_s: float) -> str:
        await ready.wait()
        return next(drafts)

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        ready.set()
        await agent.tell("compacting")
        assert "old draft" in ((await agent.tell("compacted")).context or "")
        agent.boundary()
        agent.call(95_000)
        await agent.tell("tool")
        ready.clear()
        await agent.tell("compacting")
        assert (await agent.tell("compacted")).context is None
        agent.boundary()
        agent.call(20_000)
        assert (await agent.tell("prompt")).context is None
        ready.set()
        told = (await agent.tell("tool")).context or ""
        assert "new draft" in told
        assert "0 calls before the compaction" in told
        assert (await agent.tell("tool")).context is None

    monkeypatch.setattr(ReadThreads, "run", slowly)
    monkeypatch.setattr(handoffs, "READY_WAIT_S", 0.01)
    run(go())


def test_files_changed_since_the_document(tmp_path: Path) -> None:
    """What is brought back says how many files the agent changed after it was written."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", document(agent), "agent")
        for number in range(6):
            given = {"file_path": f"/project/{number}.py", "content": "x"}
            use = {"type": "tool_use", "id": f"t{number}", "name": "Write", "input": given}
            agent.line(type="assistant", message={"id": f"w{number}", "content": [use]})
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
            agent.line(type="user", message={"content": [result]})
        await agent.tell("compacting")
        told = (await agent.tell("compacted")).context or ""
        assert "It is outdated" in told
        assert "6 files changed" in told

    run(go())


def test_calls_that_nobody_counted(tmp_path: Path) -> None:
    """Of a session that was not heard of yet it is not claimed how many calls came after."""

    async def go() -> None:
        agent = Agent(tmp_path)
        kept = await agent.monitor.hand_over("s1", document(agent), "user")
        assert kept.calls is None
        for sent in range(30_000, 60_000, 1_000):
            agent.call(sent)
        await agent.tell("compacting")
        told = (await agent.tell("compacted")).context or ""
        assert "an unknown number of calls before the compaction" in told
        assert "It is outdated" not in told

    run(go())


def test_calls_after_a_restart(tmp_path: Path) -> None:
    """A monitor that has not read the files again yet knows the calls that were counted."""

    async def go() -> None:
        agent = Agent(tmp_path)
        for sent in (30_000, 31_000, 32_000):
            agent.call(sent)
        await agent.tell("tool")
        agent.new_monitor()
        assert (await agent.monitor.hand_over("s1", document(agent), "agent")).calls == 3

    run(go())


def test_levels_of_the_model_in_the_transcript(tmp_path: Path) -> None:
    """A model's levels count where no hook names the model."""

    async def go() -> None:
        agent = Agent(tmp_path, by={MODEL: (30.0,)})
        agent.call(70_000)
        assert "at 35%" in ((await agent.tell("tool")).context or "")

    run(go())


def test_levels_of_the_model_of_a_program(tmp_path: Path) -> None:
    """They count for an agent that tells its calls itself, too."""

    async def go() -> None:
        agent = Agent(tmp_path, of="tokens", levels=(50_000.0,), by={"my-model": (20_000.0,)})
        event = Call(id="c", usage=Usage(25_000, 0, 0, 1), model="my-model")
        heard = msgspec.structs.replace(agent.heard("pushed", events=(event,)), transcript=None)
        await agent.monitor.observe(heard)
        assert [signal.level for signal in await agent.store.signals("s1")] == [20_000.0]

    run(go())


def test_parent_is_not_told_of_a_cycle_that_is_over(tmp_path: Path) -> None:
    """A level that the parent was not told of yet is no news when the cycle has ended."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.parent = "p"
        agent.call(140_000)
        await agent.tell("tool")
        agent.boundary()
        agent.call(20_000)
        await agent.tell("tool")
        level, compacted = await agent.store.messages("p")
        assert (level.state, compacted.state) == ("cancelled", "queued")
        assert "was compacted" in compacted.text

    run(go())


def test_thrash_is_told_once(tmp_path: Path) -> None:
    """Compactions that go on and on are one story; a later one is another."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.parent = "p"

        async def compact() -> None:
            agent.call(100_000)
            await agent.tell("tool")
            agent.boundary()
            agent.call(20_000)
            await agent.tell("tool")

        for _ in range(8):
            await compact()
        assert [s.kind for s in agent.around.signals].count("thrash") == 1
        agent.time += 3_600
        for _ in range(4):
            await compact()
        assert [s.kind for s in agent.around.signals].count("thrash") == 2

    run(go())


def test_text_that_is_empty(tmp_path: Path) -> None:
    """A user who wants nothing to be said sets an empty text."""

    async def go() -> None:
        agent = Agent(tmp_path, texts=Texts(own={"critical": "", "parent": " "}))
        agent.parent = "p"
        agent.call(150_000)
        assert (await agent.tell("tool")).context is None
        assert await agent.store.messages() == []
        assert [signal.level for signal in await agent.store.signals("s1")] == [65.0]

    run(go())


def test_compaction_that_only_a_fall_tells(tmp_path: Path) -> None:
    """Without a transcript, less than before after a compaction began is the end of its cycle."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(140_000)
        await agent.tell("compacting")
        await agent.status(40_000)
        assert agent.reading() == (40_000, "measured", 1)
        await agent.status(150_000)
        levels = [(s.cycle, s.level) for s in await agent.store.signals("s1") if s.kind == "level"]
        assert levels == [(0, 65.0), (1, 65.0)]

    run(go())


def test_late_word_of_a_compaction(tmp_path: Path) -> None:
    """What a client told since is of the new cycle, and stays known."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(140_000)
        begins, ends = (
            agent.heard("compacting", is_late=True),
            agent.heard("compacted", is_late=True),
        )
        await agent.status(40_000)
        await agent.monitor.observe(begins)
        await agent.monitor.observe(ends)
        assert agent.reading() == (40_000, "measured", 1)

    run(go())


def test_killed_during_a_compaction(tmp_path: Path) -> None:
    """A monitor that starts anew during a compaction knows that one is on; its end ends a cycle."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(140_000)
        await agent.tell("compacting")
        agent.new_monitor()
        await agent.tell("compacted")
        assert agent.reading()[2] == 1

    run(go())


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("{}/pipe", id="a pipe"),
        pytest.param("/dev/zero", id="a device"),
        pytest.param("a\0b", id="no path"),
    ],
)
def test_transcript_that_is_no_file(tmp_path: Path, path: str) -> None:
    """A path that leads to something without an end, or is none, tells nothing and holds nobody."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.path = Path(path.format(tmp_path))
        if agent.path.name == "pipe":
            os.mkfifo(agent.path)
        await agent.status(90_000)
        await agent.tell("tool")
        await agent.tell("compacting")
        assert (await agent.tell("compacted")).context is None
        assert agent.reading()[2] == 1

    run(go())


def test_status_during_a_compaction(tmp_path: Path) -> None:
    """A client that compacts tells its last figure again; one that does so for long does not."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(140_000)
        await agent.tell("compacting")
        await agent.status(140_000)
        assert agent.reading()[1] == "compacting"
        agent.time += 301
        await agent.status(140_000)
        assert agent.reading() == (140_000, "measured", 0)
        await agent.tell("compacting")
        await agent.status(141_000)
        assert agent.reading() == (141_000, "measured", 0)

    run(go())


def test_window_that_was_put_right(tmp_path: Path) -> None:
    """A session that held more than the window that it tells has a larger one from then on."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(300_000)
        await agent.tell("compacting")
        await agent.tell("compacted")
        await agent.status(120_000)
        reading = agent.monitor.reading("s1")
        assert reading.window is not None
        assert (reading.window.tokens, reading.percent) == (1_000_000, 12.0)
        assert (await agent.tell("prompt")).context is None

    run(go())


def test_store_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be kept is as new when it is told again."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(90_000)
        begins = agent.heard("compacting")
        with monkeypatch.context() as broken:
            broken.setattr(agent.store, "write", _failing)
            with pytest.raises(StoreFailed):
                await agent.monitor.observe(begins)
        await agent.monitor.observe(begins)
        await agent.tell("compacted")
        assert [s.kind for s in await agent.store.signals("s1")] == ["compacting", "compacted"]

    run(go())


async def _failing(*_: object) -> list[bool]:
    raise StoreFailed("store", "disk full")


def test_document_that_came_back_twice(tmp_path: Path) -> None:
    """One document may be brought back after each compaction; a restart brings it no third time."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(90_000)
        await agent.monitor.hand_over("s1", document(agent), "agent")
        for _ in range(2):
            await agent.tell("compacting")
            assert "Next: the parser." in ((await agent.tell("compacted")).context or "")
            await agent.status(90_000)
        agent.new_monitor()
        assert (await agent.tell("prompt")).context is None

    run(go())


def test_passed_on_while_the_store_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that an agent has is not given to it again, though nobody could mark it yet."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.tell("started")
        await agent.monitor.send("s1", "once", "urgent")
        reply = await agent.monitor.observe(agent.heard("tool"))
        with monkeypatch.context() as broken:
            broken.setattr(agent.store, "write", _failing)
            with pytest.raises(StoreFailed):
                await agent.monitor.mark_delivered(reply)
        agent.time += 60
        assert (await agent.tell("tool")).context is None
        await agent.monitor.mark_delivered(reply)
        assert [m.state for m in await agent.store.messages("s1")] == ["delivered"]

    run(go())


def test_restart_with_a_status_line_alone(tmp_path: Path) -> None:
    """What only the status line told is known after a restart, against the same window."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(120_000, window=1_000_000)
        agent.new_monitor()
        assert (await agent.tell("prompt")).context is None
        reading = agent.monitor.reading("s1")
        assert (reading.sent, reading.percent, reading.state) == (120_000, 12.0, "measured")

    run(go())


def test_restart_while_it_compacts(tmp_path: Path) -> None:
    """A client that tells its last figure again compacts still, after a restart too."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(140_000)
        await agent.tell("compacting")
        agent.new_monitor()
        await agent.status(140_000)
        assert agent.reading()[1] == "compacting"

    run(go())


def test_hearing_that_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gives up waiting may tell the same again, and it is as new."""

    async def go() -> None:
        agent = Agent(tmp_path)
        await agent.status(90_000)
        ends = agent.heard("compacted")
        with monkeypatch.context() as slow:
            slow.setattr(agent.store, "write", _waiting)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(agent.monitor.observe(ends), 0.05)
        await agent.monitor.observe(ends)
        assert [s.kind for s in await agent.store.signals("s1")] == ["compacted"]

    run(go())


async def _waiting(*_: object) -> list[bool]:
    await asyncio.Event().wait()
    return []


def test_changes_that_could_not_be_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many files changed before an earlier compaction is not told at the next."""
    counts = iter([7, None])

    def changed(*_: object) -> int | None:
        return next(counts)

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.call(90_000)
        await agent.tell("tool")
        await agent.monitor.hand_over("s1", document(agent), "agent")
        texts: list[str] = []
        for _ in range(2):
            await agent.tell("compacting")
            texts.append((await agent.tell("compacted")).context or "")
            agent.boundary()
            agent.call(90_000)
            await agent.tell("tool")
        assert ["7 files changed" in text for text in texts] == [True, False]

    monkeypatch.setattr(handoffs, "_count_changed_files", changed)
    run(go())


def test_draft_that_is_ready_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draft that is finished while it is looked for comes with the next hook, at the latest."""

    async def go() -> None:
        agent = Agent(tmp_path)
        agent.line(type="user", message={"role": "user", "content": "Mend the parser."})
        agent.call(90_000)
        await agent.tell("compacting")
        look = agent.store.handoffs

        async def slow(session: str) -> list[HandoffRow]:
            found = await look(session)
            await asyncio.sleep(0.3)
            return found

        with monkeypatch.context() as looking:
            looking.setattr(handoffs, "READY_WAIT_S", 0.0)
            looking.setattr(agent.store, "handoffs", slow)
            first = (await agent.tell("compacted")).context
        told = first or (await agent.tell("prompt")).context or ""
        assert "Mend the parser." in told

    run(go())
