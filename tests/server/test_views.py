"""Views of sessions."""

import asyncio

import msgspec
import pytest

from brimline.agents import agent_names
from brimline.api.views import SessionView, Views, resume_command
from brimline.context.inbox import MESSAGE_LIFETIME_S, Message
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.store.base import PutSession, PutThread, QueueMessage
from brimline.store.rows import SessionRow, ThreadRow
from brimline.store.sqlite import MemoryStore


def test_level_that_was_not_delivered_is_a_mark_and_not_unread() -> None:
    async def view() -> SessionView:
        store = MemoryStore()
        monitor = Monitor(store, lambda: 1.0)
        row = SessionRow("s1", "claude", 1.0)
        thread = ThreadRow(
            "s1", "main", 0, 1, "transcript", "measured", window=200_000, limit=100_000
        )
        subagent = msgspec.structs.replace(thread, thread="agent-1")
        messages = [
            Message(f"m{level}", "s1", "full", 1.0, thread="main", cycle=0, level=level)
            for level in (50.0, 65.0)
        ]
        puts = [
            PutSession(row),
            PutThread(thread),
            PutThread(subagent),
            *map(QueueMessage, messages),
        ]
        await store.write(puts)
        return await Views(store, monitor, Rules()).view(row)

    shown = asyncio.run(view())
    assert shown.unread == 0
    assert [(each.thread, each.levels, each.pending_level) for each in shown.threads] == [
        ("main", [30.0, 39.0], 39.0),
        ("agent-1", [30.0, 39.0], None),
    ]


def test_expired_message_is_not_unread() -> None:
    async def unread(later: float) -> int:
        store, now = MemoryStore(), [1.0]
        row = SessionRow("s1", "claude", 1.0)
        monitor = Monitor(store, lambda: now[0])
        await store.write([PutSession(row)])
        await monitor.send("s1", "hello")
        now[0] += later
        return (await Views(store, monitor, Rules()).view(row)).unread

    assert asyncio.run(unread(MESSAGE_LIFETIME_S - 1)) == 1
    assert asyncio.run(unread(MESSAGE_LIFETIME_S)) == 0


def test_message_that_nothing_delivers_is_what_its_session_needs_until_it_expires() -> None:
    async def views() -> list[SessionView]:
        store, now = MemoryStore(), [1.0]
        row = SessionRow("s1", "other", 1.0)
        monitor = Monitor(store, lambda: now[0])
        views = Views(store, monitor, Rules())
        await store.write([PutSession(row)])
        shown = [await views.view(row)]
        await monitor.send("s1", "hello")
        shown.append(await views.view(row))
        now[0] += MESSAGE_LIFETIME_S
        return [*shown, await views.view(row)]

    before, waiting, after = asyncio.run(views())
    assert (before.undeliverable, after.undeliverable) == (None, None)
    assert waiting.undeliverable == "Brimline has no hooks for other."
    assert waiting.need is not None
    assert waiting.need.text.endswith(f"nothing will deliver it: {waiting.undeliverable}")


def test_every_agent_resumes_a_session_in_its_project() -> None:
    commands = {name: resume_command(name, "0c-1", "/a b") for name in agent_names()}
    assert commands == {
        "claude": "cd '/a b' && claude --resume 0c-1",
        "cline": "cd '/a b' && cline --id 0c-1",
        "codex": "cd '/a b' && codex resume 0c-1",
        "copilot": "cd '/a b' && copilot --resume 0c-1",
        "gemini": "cd '/a b' && gemini --resume 0c-1",
        "goose": "cd '/a b' && goose session --resume --session-id 0c-1",
        "kilo": "cd '/a b' && kilo --session 0c-1",
        "kimi": "cd '/a b' && kimi -r 0c-1",
        "opencode": "cd '/a b' && opencode --session 0c-1",
        "pi": "cd '/a b' && pi --session 0c-1",
        "qwen": "cd '/a b' && qwen --resume 0c-1",
    }
    for project in (None, "name-only"):
        assert resume_command("claude", "0c-1", project) == "claude --resume 0c-1"


@pytest.mark.parametrize(
    ("agent", "session", "project"),
    [
        ("my-agent", "s", None),
        ("claude", "--dangerous", None),
        ("claude", "a; b", None),
        ("claude", "s", "/a\nb"),
    ],
)
def test_unsafe_or_unknown_sessions_have_no_resume_command(
    agent: str, session: str, project: str | None
) -> None:
    assert resume_command(agent, session, project) is None
