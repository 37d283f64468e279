"""The broadcaster and its cache: one encoding for all viewers, bounded memory, no lost change."""

import asyncio
import contextlib
import random

import msgspec
import pytest

from brimline.api.request_limits import Turns
from brimline.api.session_cache import PIECE_BYTES, in_pieces
from brimline.api.views import MAX_SINGLE_READS
from brimline.context.inbox import MESSAGE_LIFETIME_S
from brimline.context.need import ACTIVE_FOR_S
from brimline.errors import StoreFailed
from brimline.store.base import ForgetSessions
from brimline.store.sqlite import MemoryStore

from .viewing import INTERVAL_S, NOW, Server, Viewer, wait_until

DAY_S = 86_400.0


class CountingStore(MemoryStore):
    """Counts the reads of changes; it can fail, and yields before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.fails = False

    async def changes(self, after: int = 0, seen_since: float = 0.0) -> list[tuple[int, str]]:
        self.reads += 1
        changes = await super().changes(after, seen_since)
        await asyncio.sleep(0)
        if self.fails:
            raise StoreFailed("brimline.db", "disk I/O error", "Is that disk full or failing?")
        return changes


async def test_change_is_encoded_once_for_all_viewers() -> None:
    server, viewers = Server(), [Viewer() for _ in range(50)]
    await server.put("s1")
    await server.cache.refresh()
    tasks = [server.start_viewer(viewer) for viewer in viewers]
    await wait_until(lambda: all(viewer.views for viewer in viewers))
    encoded = server.cache.encoded
    await server.put("s1", sent=2)
    await wait_until(lambda: all("change" in viewer.events for viewer in viewers))
    assert server.cache.encoded == encoded + 1
    assert len({id(viewer.frames[-1]) for viewer in viewers}) == 1
    server.stopping = True
    await asyncio.gather(*tasks)


async def test_changes_within_an_interval_are_sent_once() -> None:
    server, viewer = Server(), Viewer()
    await server.put("s1")
    await server.cache.refresh()
    task = server.start_viewer(viewer)
    await wait_until(lambda: viewer.views)
    encoded = server.cache.encoded
    for sent in range(2, 102):
        await server.put("s1", sent=sent)
    await wait_until(lambda: "change" in viewer.events)
    assert (viewer.events, server.cache.encoded - encoded) == (["session", "change"], 1)
    assert viewer.views == await server.current_views()
    task.cancel()


async def test_viewers_have_the_views_of_the_api_after_random_changes() -> None:
    server, viewers, chance = Server(), list[Viewer](), random.Random(5)
    tasks: list[asyncio.Task[None]] = []
    for step in range(2, 60):
        if step % 10 == 0:  # some viewers come later
            await server.cache.refresh()
            viewers.append(Viewer())
            tasks.append(server.start_viewer(viewers[-1]))
        await server.put(*chance.sample("abcdefgh", 3), sent=step, seen_at=NOW + step)
        if chance.random() < 0.3:
            await server.monitor.send(chance.choice("abcdefgh"), f"message {step}")
        await asyncio.sleep(chance.random() * 0.02)
    current = await server.current_views()
    await wait_until(lambda: all(viewer.views == current for viewer in viewers))
    assert all("change" in viewer.events for viewer in viewers)
    for viewer in viewers:  # a connection that was lost at any moment
        lost = Viewer()
        for data in viewer.frames[: chance.randrange(1, len(viewer.frames))]:
            lost.read(data)
        tasks.append(server.start_viewer(lost, lost.marks[-1]))
        await wait_until(lambda lost=lost: lost.views == current)
    server.stopping = True
    await asyncio.gather(*tasks)


async def test_slow_viewer_gets_whole_views_instead_of_unbounded_frames() -> None:
    server, quick, slow = Server(max_backlog_bytes=2_000), Viewer(), Viewer()
    await server.put("a", "b")
    await server.cache.refresh()
    task = server.start_viewer(quick)
    stream = server.broadcaster.follow(0)
    slow.read(await anext(stream))
    for sent in range(2, 40):
        await server.put("a", sent=sent)
        wanted = quick.events.count("change") + 1
        await wait_until(lambda wanted=wanted: quick.events.count("change") >= wanted)
        assert server.broadcaster.backlog_bytes <= 2_000
    reading = asyncio.create_task(slow.follow(stream))
    current = await server.current_views()
    await wait_until(lambda: slow.views == current)
    assert slow.events == ["session", "session", "session"]
    await server.put("b", sent=50)
    await wait_until(lambda: slow.events[-1] == "change")
    assert slow.views == await server.current_views()
    server.stopping = True
    await asyncio.gather(task, reading)


def test_frames_that_all_viewers_have_are_not_kept() -> None:
    async def run() -> None:
        server, viewers = Server(), [Viewer(), Viewer()]

        def changes() -> list[int]:
            return [viewer.events.count("change") for viewer in viewers]

        await server.put("a")
        await server.cache.refresh()
        tasks = [server.start_viewer(viewer) for viewer in viewers]
        await wait_until(lambda: all(viewer.views for viewer in viewers))
        for sent in range(2, 40):
            await server.put("a", sent=sent)
            wanted = [sent - 1] * 2
            await wait_until(lambda wanted=wanted: changes() == wanted)
            assert server.broadcaster.backlog_bytes == len(viewers[0].frames[-1])
        server.stopping = True
        await asyncio.gather(*tasks)

    asyncio.run(run())


async def test_session_not_seen_for_a_day_is_sent_whole() -> None:
    """Later viewers never got it."""

    server, viewer = Server(), Viewer()
    await server.put("old", seen_at=NOW - DAY_S - 1)
    await server.put("new")
    await server.cache.refresh()
    task = server.start_viewer(viewer)
    await wait_until(lambda: viewer.views)
    assert list(viewer.views) == ["new"]
    await server.put("old", sent=2)
    await wait_until(lambda: "old" in viewer.views)
    assert viewer.views == await server.current_views()
    task.cancel()


async def test_cancelled_pass_publishes_what_it_encoded() -> None:
    server, viewer = Server(), Viewer()
    ids = [f"s{number}" for number in range(MAX_SINGLE_READS * 2)]
    await server.put(*ids)
    await server.cache.refresh()
    task = server.start_viewer(viewer)
    await wait_until(lambda: len(viewer.views) == len(ids))
    await server.put(*ids, sent=2)
    asking = asyncio.create_task(server.cache.refresh())
    encoded = server.cache.encoded
    while server.cache.encoded == encoded:
        await asyncio.sleep(0)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    current = await server.current_views()
    await wait_until(lambda: viewer.views == current)
    assert server.cache.encoded == 2 * len(ids)
    task.cancel()


async def test_concurrent_lists_share_three_passes_and_see_every_write() -> None:
    store = CountingStore()
    server = Server(store)
    first = asyncio.create_task(server.cache.refresh())
    await asyncio.sleep(0)
    await server.put("s1")  # after the first pass has read what changed
    await asyncio.gather(first, *(server.cache.refresh() for _ in range(100)))
    assert store.reads <= 3
    assert len(server.cache.seen_since(0.0)) == 1
    assert server.cache.encoded == 1


def test_waiter_of_a_cancelled_pass_makes_another() -> None:
    async def run() -> None:
        store = CountingStore()
        server = Server(store)
        passes = [asyncio.create_task(server.cache.refresh()) for _ in range(3)]
        await asyncio.sleep(0)  # the first has read what changed, the others wait for their turn
        await server.put("s1")
        await until_reads(store, 2)
        passes[1].cancel()
        await passes[2]
        assert len(server.cache.seen_since(0.0)) == 1

    async def until_reads(store: CountingStore, reads: int) -> None:
        while store.reads < reads:
            await asyncio.sleep(0)

    asyncio.run(run())


def test_other_tasks_run_while_a_long_list_is_encoded() -> None:
    async def run() -> int:
        server = Server()
        await server.put(*(f"s{number}" for number in range(2_000)))
        rounds = 0
        refresh = asyncio.create_task(server.cache.refresh())
        while not refresh.done():
            rounds += 1
            await asyncio.sleep(0)
        return rounds

    assert asyncio.run(run()) > 10


async def test_other_tasks_run_between_any_two_viewers() -> None:
    turns, turns_taken = Turns(), list[int]()

    async def take(number: int) -> None:
        await turns.take()
        turns_taken.append(number)

    tasks = [asyncio.create_task(take(number)) for number in range(20)]
    while len(turns_taken) < len(tasks):
        before = len(turns_taken)
        await asyncio.sleep(0)
        assert len(turns_taken) <= before + 1
    assert turns_taken == list(range(20))


async def test_long_replies_are_sent_in_bounded_pieces_without_loss() -> None:
    parts = [b"%d," % number for number in range(50_000)]
    pieces = [piece async for piece in in_pieces(parts, Turns())]
    assert b"".join(pieces) == b"".join(parts)
    assert len(pieces) > 3
    assert max(map(len, pieces)) < PIECE_BYTES + 10


async def test_reading_one_or_many_sessions_gives_the_same_rows() -> None:
    server = Server()
    ids = [f"s{number}" for number in range(MAX_SINGLE_READS + 1)]
    await server.put(*ids)
    await server.monitor.send("s7", "hello")
    many = [rows async for rows in server.views.read_rows([*ids, "unknown"])]
    single = [rows for id in ids async for rows in server.views.read_rows([id])]
    assert many == single
    assert len(many) == len(ids)
    assert [rows async for rows in server.views.read_rows(["unknown"])] == []


async def test_expired_message_leaves_list_and_stream_without_a_write() -> None:
    server, viewer = Server(), Viewer()
    await server.put("s1", seen_at=NOW + MESSAGE_LIFETIME_S)
    await server.monitor.send("s1", "hello")
    await server.cache.refresh()
    task = server.start_viewer(viewer)
    await wait_until(lambda: viewer.views)
    assert viewer.views["s1"]["unread"] == 1
    server.now += MESSAGE_LIFETIME_S
    await wait_until(lambda: viewer.views["s1"]["unread"] == 0)
    encoded = server.cache.encoded
    await asyncio.sleep(5 * INTERVAL_S)
    await server.cache.refresh()
    assert server.cache.encoded == encoded  # the expired message is still stored
    (listed,) = (msgspec.json.decode(each.json) for each in server.cache.seen_since(0.0))
    assert listed == viewer.views["s1"]
    task.cancel()


async def test_session_becomes_idle_in_the_stream_without_a_write() -> None:
    """Also if it was seen many times before: each call moves the time at which it becomes idle."""

    server, viewer = Server(), Viewer()
    for call in range(3_000):
        await server.put("s1", sent=call, seen_at=NOW + call / 1_000)
        await server.cache.refresh()
    task = server.start_viewer(viewer)
    await wait_until(lambda: viewer.views)
    assert viewer.views["s1"]["rank"][0] == 1
    encoded = server.cache.encoded
    server.now += ACTIVE_FOR_S
    await asyncio.sleep(5 * INTERVAL_S)
    assert server.cache.encoded == encoded  # none of the times of the earlier calls counts
    server.now += 3.0
    await wait_until(lambda: viewer.views["s1"]["rank"][0] == 2)
    assert server.cache.encoded == encoded + 1
    task.cancel()


def test_list_is_sorted_by_seen_at_then_id_without_forgotten_sessions() -> None:
    async def run() -> list[str]:
        server = Server()
        await server.put("old", seen_at=NOW - 50)
        await server.put("b", "a", seen_at=NOW - 5)
        await server.put("c", seen_at=NOW)
        await server.put("older", seen_at=NOW - 65)
        await server.put("gone", seen_at=NOW - 100)
        await server.cache.refresh()
        await server.store.write([ForgetSessions(NOW - 70)])
        await server.cache.refresh()
        assert server.cache.seen_since(NOW - 60) == server.cache.seen_since(0.0)[:-1]
        return [each.id for each in server.cache.seen_since(0.0)]

    assert asyncio.run(run()) == ["c", "a", "b", "old", "older"]


def test_failing_store_is_logged_and_streams_continue(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        store = CountingStore()
        server, viewer = Server(store), Viewer()
        await server.put("s1")
        await server.cache.refresh()
        task = server.start_viewer(viewer)
        await wait_until(lambda: viewer.views)
        store.fails, reads = True, store.reads
        await server.put("s1", sent=2)
        await wait_until(lambda: store.reads > reads + 1)
        store.fails = False
        await wait_until(lambda: "change" in viewer.events)
        task.cancel()

    asyncio.run(run())
    assert "cannot read changes for open pages" in caplog.text


async def test_nothing_is_polled_or_kept_without_viewers() -> None:
    """The next viewer starts the poll again."""

    store = CountingStore()
    server, viewer = Server(store), Viewer()
    for sent in (2, 3):
        await server.put("s1", sent=sent)
        await server.cache.refresh()
        task = server.start_viewer(viewer)
        await wait_until(lambda: viewer.views)
        await server.put("s1", sent=sent + 10)
        await wait_until(lambda: viewer.events[-1] == "change")
        task.cancel()
        await wait_until(lambda: server.broadcaster.backlog_bytes == 0)
        reads = store.reads
        await asyncio.sleep(0.05)
        assert store.reads == reads


async def test_idle_stream_sends_comments() -> None:
    server, viewer = Server(), Viewer()
    task = server.start_viewer(viewer)
    await wait_until(lambda: viewer.frames.count(b": alive\n\n") == 2)
    assert viewer.events == []
    server.stopping = True
    await task
