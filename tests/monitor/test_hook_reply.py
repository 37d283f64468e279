"""What a hook reply contains: current figures, no more than a client accepts, each message once."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.context.events import Call
from brimline.context.inbox import MAX_CONTEXT_CHARS, utf16_length
from brimline.context.usage import Usage
from brimline.errors import StoreFailed
from brimline.files.bounded_reads import ReadThreads
from brimline.handoff.document import Document
from brimline.monitor import handoffs
from brimline.monitor.user_rules import Texts
from brimline.store.rows import HandoffRow
from brimline.store.sqlite import MemoryStore

from .agent import MODEL, Agent


def document(agent: Agent, text: str = "Next: the parser.") -> Document:
    return Document.of(text, "/project/handoff.md", agent.time)


async def test_messages_beyond_the_reply_limit_come_with_the_next_replies_in_order(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    texts = [f"{number} " + "x" * 3_900 for number in range(5)]
    for text in texts:
        await agent.monitor.send("s1", text, "urgent")
    answers = [(await agent.observe("tool")).context or "" for _ in range(4)]
    assert [answer.count("x" * 3_900) for answer in answers] == [2, 2, 1, 0]
    assert all(utf16_length(answer) <= MAX_CONTEXT_CHARS for answer in answers)
    assert "\n\n".join(filter(None, answers)) == "\n\n".join(
        f"[message from user] {text}" for text in texts
    )


async def test_handoff_leaves_only_its_spare_room_to_messages(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(90_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", document(agent, "x" * 7_000), "agent")
    agent.boundary()
    agent.call(20_000)
    await agent.observe("wrote")
    for text in ("short", "y" * 3_000):
        await agent.monitor.send("s1", text, "urgent")
    first = (await agent.observe("tool")).context or ""
    assert "x" * 7_000 in first
    assert first.endswith("\n\n[message from user] short")
    assert utf16_length(first) <= MAX_CONTEXT_CHARS
    assert (await agent.observe("tool")).context == "[message from user] " + "y" * 3_000


async def test_document_waits_for_a_prompt_or_tool_result_of_the_main_thread(
    tmp_path: Path,
) -> None:
    """A subagent does not get it, and it keeps no turn from ending."""
    agent = Agent(tmp_path)
    agent.call(90_000)
    await agent.observe("tool", is_interactive=True)
    await agent.monitor.hand_over("s1", document(agent), "agent")
    agent.boundary()
    agent.call(20_000)
    await agent.observe("wrote")
    for kind in ("tool", "compacted"):
        assert (await agent.observe(kind, thread="a1")).context is None
    stopped = await agent.observe("stopped")
    assert (stopped.context, stopped.stop_feedback) == (None, None)
    assert "the parser" in ((await agent.observe("prompt")).context or "")
    assert (await agent.observe("prompt")).context is None


async def test_queued_warning_shows_the_figure_at_delivery(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(105_000)
    await agent.observe("wrote")
    agent.call(125_000)
    context = (await agent.observe("prompt")).context or ""
    assert "is at 62.5% (125K of 200K tokens)" in context
    assert "52.5%" not in context
    (message,) = await agent.store.messages("s1")
    assert (message.state, message.text) == ("delivered", context)


async def test_queued_warning_in_tokens_shows_the_figure_at_delivery(tmp_path: Path) -> None:
    agent = Agent(tmp_path, levels=(50_000.0, 80_000.0), of="tokens")
    mine = {"agent": "mine", "transcript": None}
    for sent in (55_000, 70_000):
        call = Call(id=f"c{sent}", usage=Usage(sent, 0, 0, 1), model="nobody-knows")
        observation = agent.observation("pushed", events=(call,))
        await agent.monitor.observe(msgspec.structs.replace(observation, **mine))
    prompt = msgspec.structs.replace(agent.observation("prompt"), **mine)
    assert "holds 70K tokens" in ((await agent.monitor.observe(prompt)).context or "")


async def test_typed_warning_shows_the_figure_at_delivery(tmp_path: Path) -> None:
    """After a restart it stays as queued until the session is seen again."""
    agent = Agent(tmp_path)
    agent.call(105_000)
    await agent.observe("wrote")
    agent.call(125_000)
    await agent.observe("wrote")
    (waiting,) = await agent.store.pending_messages("s1")
    assert "is at 62.5%" in agent.monitor.refresh_message(waiting).text
    assert agent.new_monitor().refresh_message(waiting) == waiting


async def test_queued_warning_is_cancelled_by_a_handoff(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(105_000)
    await agent.observe("wrote")
    await agent.monitor.hand_over("s1", document(agent), "agent")
    assert (await agent.observe("prompt")).context is None
    assert [m.state for m in await agent.store.messages("s1")] == ["cancelled"]


async def test_handoff_written_after_a_compaction_is_not_returned_before_the_next_one(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    await agent.status(90_000)
    await agent.observe("compacting")
    assert (await agent.observe("compacted")).context is None
    await agent.status(20_000)
    agent.time += 1
    await agent.monitor.hand_over("s1", document(agent), "agent")
    assert (await agent.observe("tool")).context is None
    assert [row.used_at for row in await agent.store.handoffs("s1")] == [None]
    await agent.observe("compacting")
    assert "Next: the parser." in ((await agent.observe("compacted")).context or "")


class LookupCounter(MemoryStore):
    """Counts how often documents are looked up."""

    lookups = 0

    async def handoffs(self, session: str) -> list[HandoffRow]:
        self.lookups += 1
        return await super().handoffs(session)


async def test_missing_handoff_is_looked_up_once_and_not_by_every_hook(tmp_path: Path) -> None:
    store = LookupCounter()
    agent = Agent(tmp_path, store)
    await agent.status(90_000)
    await agent.observe("compacting")
    await agent.observe("compacted")
    await agent.observe("prompt")
    lookups = store.lookups
    for _ in range(3):
        await agent.observe("prompt")
    assert store.lookups == lookups


async def test_repeated_compacted_hook_does_not_make_a_delivered_handoff_pending(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    await agent.status(90_000)
    await agent.monitor.hand_over("s1", document(agent), "agent")
    await agent.observe("compacting")
    assert "Next: the parser." in ((await agent.observe("compacted")).context or "")
    await agent.monitor.observe(agent.observation("compacted"))
    assert (await agent.observe("prompt")).context is None


async def test_restart_returns_the_handoff_from_before_the_compaction(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(90_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", document(agent, "before"), "agent")
    agent.boundary()
    agent.call(20_000)
    await agent.observe("wrote")
    agent.time += 1
    await agent.monitor.hand_over("s1", document(agent, "after"), "agent")
    agent.new_monitor()
    context = (await agent.observe("prompt")).context or ""
    assert "before\n-----" in context


async def test_slow_draft_comes_with_a_later_hook_and_no_older_draft_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, drafts = asyncio.Event(), iter(["old draft", "new draft"])

    async def slowly(threads: ReadThreads, read: Any, timeout_s: float) -> str:
        await ready.wait()
        return next(drafts)

    monkeypatch.setattr(ReadThreads, "run", slowly)
    monkeypatch.setattr(handoffs, "READY_WAIT_S", 0.01)
    agent = Agent(tmp_path)
    agent.call(90_000)
    ready.set()
    await agent.observe("compacting")
    assert "old draft" in ((await agent.observe("compacted")).context or "")
    agent.boundary()
    agent.call(95_000)
    await agent.observe("tool")
    ready.clear()
    await agent.observe("compacting")
    assert (await agent.observe("compacted")).context is None
    agent.boundary()
    agent.call(20_000)
    assert (await agent.observe("prompt")).context is None
    ready.set()
    context = (await agent.observe("tool")).context or ""
    assert "new draft" in context
    assert "0 calls before the compaction" in context
    assert (await agent.observe("tool")).context is None


async def test_returned_handoff_says_how_many_files_changed_since(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(90_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", document(agent), "agent")
    for number in range(6):
        tool_input = {"file_path": f"/project/{number}.py", "content": "x"}
        use = {"type": "tool_use", "id": f"t{number}", "name": "Write", "input": tool_input}
        agent.write_record(type="assistant", message={"id": f"w{number}", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
        agent.write_record(type="user", message={"content": [result]})
    await agent.observe("compacting")
    context = (await agent.observe("compacted")).context or ""
    assert "It is outdated" in context
    assert "6 files changed" in context


async def test_handoff_of_an_unseen_session_has_an_unknown_age(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    handoff = await agent.monitor.hand_over("s1", document(agent), "user")
    assert handoff.calls is None
    for sent in range(30_000, 60_000, 1_000):
        agent.call(sent)
    await agent.observe("compacting")
    context = (await agent.observe("compacted")).context or ""
    assert "an unknown number of calls before the compaction" in context
    assert "It is outdated" not in context


async def test_handoff_after_a_restart_has_the_stored_call_count(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    for sent in (30_000, 31_000, 32_000):
        agent.call(sent)
    await agent.observe("tool")
    agent.new_monitor()
    assert (await agent.monitor.hand_over("s1", document(agent), "agent")).calls == 3


async def test_model_levels_apply_when_only_the_transcript_names_the_model(tmp_path: Path) -> None:
    agent = Agent(tmp_path, by={MODEL: (30.0,)})
    agent.call(70_000)
    assert "at 35%" in ((await agent.observe("tool")).context or "")


async def test_model_levels_apply_to_pushed_calls(tmp_path: Path) -> None:
    agent = Agent(tmp_path, of="tokens", levels=(50_000.0,), by={"my-model": (20_000.0,)})
    event = Call(id="c", usage=Usage(25_000, 0, 0, 1), model="my-model")
    observation = msgspec.structs.replace(
        agent.observation("pushed", events=(event,)), transcript=None
    )
    await agent.monitor.observe(observation)
    assert [signal.level for signal in await agent.store.signals("s1")] == [20_000.0]


async def test_pending_level_for_a_parent_is_cancelled_by_a_compaction(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.parent = "p"
    agent.call(140_000)
    await agent.observe("tool")
    agent.boundary()
    agent.call(20_000)
    await agent.observe("tool")
    level, compacted = await agent.store.messages("p")
    assert (level.state, compacted.state) == ("cancelled", "queued")
    assert "was compacted" in compacted.text


async def test_thrash_is_signalled_once_per_series_of_compactions(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.parent = "p"

    async def compact() -> None:
        agent.call(100_000)
        await agent.observe("tool")
        agent.boundary()
        agent.call(20_000)
        await agent.observe("tool")

    for _ in range(8):
        await compact()
    assert [s.kind for s in agent.environment.signals].count("thrash") == 1
    agent.time += 3_600
    for _ in range(4):
        await compact()
    assert [s.kind for s in agent.environment.signals].count("thrash") == 2


async def test_empty_text_sends_no_message_but_keeps_the_signal(tmp_path: Path) -> None:
    agent = Agent(tmp_path, texts=Texts(own={"critical": "", "parent": " "}))
    agent.parent = "p"
    agent.call(150_000)
    assert (await agent.observe("tool")).context is None
    assert await agent.store.messages() == []
    assert [signal.level for signal in await agent.store.signals("s1")] == [65.0]


async def test_lower_status_line_after_an_announced_compaction_ends_the_cycle(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    await agent.status(140_000)
    await agent.observe("compacting")
    await agent.status(40_000)
    assert agent.reading() == (40_000, "measured", 1)
    await agent.status(150_000)
    levels = [(s.cycle, s.level) for s in await agent.store.signals("s1") if s.kind == "level"]
    assert levels == [(0, 65.0), (1, 65.0)]


async def test_late_compaction_hooks_keep_the_status_line_of_the_new_cycle(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(140_000)
    begins, ends = (
        agent.observation("compacting", is_late=True),
        agent.observation("compacted", is_late=True),
    )
    await agent.status(40_000)
    await agent.monitor.observe(begins)
    await agent.monitor.observe(ends)
    assert agent.reading() == (40_000, "measured", 1)


async def test_restart_during_a_compaction_ends_the_cycle_at_its_end(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(140_000)
    await agent.observe("compacting")
    agent.new_monitor()
    await agent.observe("compacted")
    assert agent.reading()[2] == 1


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("{}/pipe", id="a pipe"),
        pytest.param("/dev/zero", id="a device"),
        pytest.param("a\0b", id="no path"),
    ],
)
async def test_transcript_path_that_is_no_regular_file_blocks_no_hook(
    tmp_path: Path, path: str
) -> None:
    agent = Agent(tmp_path)
    agent.path = Path(path.format(tmp_path))
    if agent.path.name == "pipe":
        os.mkfifo(agent.path)
    await agent.status(90_000)
    await agent.observe("tool")
    await agent.observe("compacting")
    assert (await agent.observe("compacted")).context is None
    assert agent.reading()[2] == 1


async def test_repeated_status_line_stays_compacting_for_five_minutes(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(140_000)
    await agent.observe("compacting")
    await agent.status(140_000)
    assert agent.reading()[1] == "compacting"
    agent.time += 301
    await agent.status(140_000)
    assert agent.reading() == (140_000, "measured", 0)
    await agent.observe("compacting")
    await agent.status(141_000)
    assert agent.reading() == (141_000, "measured", 0)


async def test_session_above_its_reported_window_gets_the_larger_window(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(300_000)
    await agent.observe("compacting")
    await agent.observe("compacted")
    await agent.status(120_000)
    reading = agent.monitor.reading("s1")
    assert reading.window is not None
    assert (reading.window.tokens, reading.percent) == (1_000_000, 12.0)
    assert (await agent.observe("prompt")).context is None


async def test_observation_is_processed_again_after_the_store_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path)
    await agent.status(90_000)
    begins = agent.observation("compacting")
    with monkeypatch.context() as broken:
        broken.setattr(agent.store, "write", _failing_write)
        with pytest.raises(StoreFailed):
            await agent.monitor.observe(begins)
    await agent.monitor.observe(begins)
    await agent.observe("compacted")
    assert [s.kind for s in await agent.store.signals("s1")] == ["compacting", "compacted"]


async def _failing_write(*_: object) -> list[bool]:
    raise StoreFailed("store", "disk full")


async def test_restart_does_not_return_a_handoff_a_third_time(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(90_000)
    await agent.monitor.hand_over("s1", document(agent), "agent")
    for _ in range(2):
        await agent.observe("compacting")
        assert "Next: the parser." in ((await agent.observe("compacted")).context or "")
        await agent.status(90_000)
    agent.new_monitor()
    assert (await agent.observe("prompt")).context is None


async def test_delivered_message_is_not_sent_again_when_it_could_not_be_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path)
    await agent.observe("started")
    await agent.monitor.send("s1", "once", "urgent")
    reply = await agent.monitor.observe(agent.observation("tool"))
    with monkeypatch.context() as broken:
        broken.setattr(agent.store, "write", _failing_write)
        with pytest.raises(StoreFailed):
            await agent.monitor.mark_delivered(reply)
    agent.time += 60
    assert (await agent.observe("tool")).context is None
    await agent.monitor.mark_delivered(reply)
    assert [m.state for m in await agent.store.messages("s1")] == ["delivered"]


async def test_restart_keeps_the_reading_and_window_of_the_status_line(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(120_000, window=1_000_000)
    agent.new_monitor()
    assert (await agent.observe("prompt")).context is None
    reading = agent.monitor.reading("s1")
    assert (reading.sent, reading.percent, reading.state) == (120_000, 12.0, "measured")


async def test_repeated_status_line_stays_compacting_after_a_restart(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.status(140_000)
    await agent.observe("compacting")
    agent.new_monitor()
    await agent.status(140_000)
    assert agent.reading()[1] == "compacting"


async def test_cancelled_observation_is_processed_when_it_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path)
    await agent.status(90_000)
    ends = agent.observation("compacted")
    with monkeypatch.context() as slow:
        slow.setattr(agent.store, "write", _hanging_write)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.monitor.observe(ends), 0.05)
    await agent.monitor.observe(ends)
    assert [s.kind for s in await agent.store.signals("s1")] == ["compacted"]


async def _hanging_write(*_: object) -> list[bool]:
    await asyncio.Event().wait()
    return []


async def test_changed_files_of_an_earlier_compaction_are_not_reported_at_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([7, None])

    def changed(*_: object) -> int | None:
        return next(counts)

    monkeypatch.setattr(handoffs, "_count_changed_files", changed)
    agent = Agent(tmp_path)
    agent.call(90_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", document(agent), "agent")
    texts: list[str] = []
    for _ in range(2):
        await agent.observe("compacting")
        texts.append((await agent.observe("compacted")).context or "")
        agent.boundary()
        agent.call(90_000)
        await agent.observe("tool")
    assert ["7 files changed" in text for text in texts] == [True, False]


async def test_draft_finished_during_its_lookup_comes_with_the_next_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path)
    agent.write_record(type="user", message={"role": "user", "content": "Mend the parser."})
    agent.call(90_000)
    await agent.observe("compacting")
    look, hook = agent.store.handoffs, asyncio.current_task()

    async def slow(session: str) -> list[HandoffRow]:
        rows = await look(session)
        while asyncio.current_task() is hook and not await look(session):
            await asyncio.sleep(0.01)
        return rows

    with monkeypatch.context() as looking:
        looking.setattr(handoffs, "READY_WAIT_S", 0.0)
        looking.setattr(agent.store, "handoffs", slow)
        first = (await agent.observe("compacted")).context
    context = first or (await agent.observe("prompt")).context or ""
    assert "Mend the parser." in context
