"""Pins in what an agent gets: after a compaction, after a clear, and in a new session."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from brimline.agents.observations import EMPTY_REPLY
from brimline.context.inbox import MAX_CONTEXT_CHARS, utf16_length
from brimline.errors import InvalidRequest
from brimline.handoff import Document
from brimline.handoff.pins import INTRO, Author, Pin, PinFile, make_pin
from brimline.handoff.user_messages import CONTINUED_TEXT

from .agent import Agent, RecordingEnvironment

NEVER = "Never touch the README."
HINT = "finds what was said, run and read before the compaction"


class PinnedEnvironment(RecordingEnvironment):
    """A machine with a file of pins."""

    def __init__(self, state: Path) -> None:
        super().__init__()
        self.pins = PinFile(state)
        self.is_slow = False

    async def pins_of(self, session: str, project: str | None) -> Sequence[Pin] | None:
        return None if self.is_slow else self.pins.load_for(session, project)

    async def add_pins(self, session: str, texts: Sequence[str], at: float) -> Sequence[str]:
        problems: list[str] = []
        for text in texts:
            try:
                self.pins.add(make_pin(text, at, "user", session=session))
            except InvalidRequest as error:
                problems.append(error.error)
        return problems

    async def continue_pins(self, session: str, other: str) -> None:
        self.pins.continue_session(session, other)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    agent = Agent(tmp_path)
    agent.environment = PinnedEnvironment(tmp_path / "state")
    agent.new_monitor()
    return agent


def add_pin(agent: Agent, by: Author = "user", session: str = "s1", text: str = NEVER) -> None:
    assert isinstance(agent.environment, PinnedEnvironment)
    agent.environment.pins.add(make_pin(text, 1e9, by, session=session))


def environment_of(agent: Agent) -> PinnedEnvironment:
    assert isinstance(agent.environment, PinnedEnvironment)
    return agent.environment


async def start(agent: Agent) -> None:
    """Begin a session that has made a call and has what is pinned."""
    await agent.observe("started")
    await agent.observe("prompt")
    agent.call(20_000)
    await agent.observe("tool")


async def compact(agent: Agent) -> str | None:
    await agent.observe("compacting")
    agent.boundary()
    return (await agent.observe("compacted")).context


async def injected_after_compaction(agent: Agent) -> str:
    """What is injected with the draft, which a busy machine brings with a later hook."""
    context = await compact(agent)
    while context is None:
        context = (await agent.observe("tool")).context
    return context


async def test_new_session_works_without_the_pins(agent: Agent) -> None:
    """They come with the first prompt, and once."""
    add_pin(agent)
    assert await agent.observe("started") == EMPTY_REPLY
    reply = await agent.observe("prompt")
    assert reply.context is not None
    assert reply.context.startswith(f"{INTRO}\n- {NEVER}")
    assert (await agent.observe("prompt")).context is None


async def test_unacknowledged_pins_are_lost(agent: Agent) -> None:
    add_pin(agent)
    first = await agent.monitor.observe(agent.observation("prompt"))
    assert (await agent.observe("tool")).context == first.context


async def test_pins_that_cannot_be_read_in_time_are_lost(agent: Agent) -> None:
    add_pin(agent)
    environment_of(agent).is_slow = True
    assert (await agent.observe("prompt")).context is None
    environment_of(agent).is_slow = False
    assert NEVER in ((await agent.observe("tool")).context or "")


async def test_two_compactions_take_the_pins_away(agent: Agent) -> None:
    """After each they come first, also without a document, and with how to find what was lost."""
    add_pin(agent)
    await start(agent)
    for _ in range(2):
        context = await compact(agent)
        assert context is not None
        assert context.startswith(f"{INTRO}\n- {NEVER}")
        assert context.count(NEVER) == 1
        assert HINT in context
        assert (await agent.observe("prompt")).context is None
        agent.call(20_000)
        await agent.observe("tool")


async def test_pins_come_after_the_document(agent: Agent, tmp_path: Path) -> None:
    """With a document that is longer than what a client takes, all fit together."""
    add_pin(agent)
    await start(agent)
    document = Document.of("line\n" * 5_000, "/notes.md", 1.0)
    await agent.monitor.hand_over("s1", document, "the agent itself")
    context = await compact(agent)
    assert context is not None
    assert utf16_length(context) <= MAX_CONTEXT_CHARS
    parts = [context.index(part) for part in (NEVER, "The handoff below", HINT)]
    assert parts == sorted(parts)


async def test_compaction_without_pins_or_document_gets_a_text(agent: Agent) -> None:
    await start(agent)
    assert await compact(agent) is None


async def test_proposal_is_injected(agent: Agent) -> None:
    add_pin(agent, by="agent")
    await start(agent)
    assert NEVER not in (await compact(agent) or "")


async def test_pins_of_another_session_are_injected(agent: Agent) -> None:
    add_pin(agent, session="s2")
    await start(agent)
    assert NEVER not in (await compact(agent) or "")


async def test_cleared_session_loses_its_pins(agent: Agent) -> None:
    add_pin(agent)
    await start(agent)
    await agent.monitor.record_clear("s1", "s2", agent.time)
    agent.session = "s2"
    await agent.observe("cleared")
    assert NEVER in ((await agent.observe("prompt")).context or "")


async def test_clear_within_a_session_loses_its_pins(agent: Agent) -> None:
    add_pin(agent)
    await start(agent)
    await agent.observe("cleared")
    assert NEVER in ((await agent.observe("prompt")).context or "")


async def test_subagent_gets_the_pins(agent: Agent) -> None:
    add_pin(agent)
    reply = await agent.monitor.observe(agent.observation("tool", thread="a1"))
    assert reply.context is None


@pytest.fixture
def pinning(tmp_path: Path) -> Agent:
    """An agent whose user lets lines of a prompt be pinned."""
    agent = Agent(tmp_path, pins_from_prompts=True)
    agent.environment = PinnedEnvironment(tmp_path / "state")
    agent.new_monitor()
    return agent


def pinned(agent: Agent) -> list[str]:
    return [pin.text for pin in environment_of(agent).pins.load_for(agent.session, "/project")]


async def test_line_of_a_prompt_is_not_pinned(pinning: Agent) -> None:
    """It is the user's, for this session alone; the next context has it."""
    await start(pinning)
    reply = await pinning.observe("prompt", prompt=f"Go on.\nPIN: {NEVER}\nAnd the tests.")
    assert reply == EMPTY_REPLY
    (pin,) = environment_of(pinning).pins.load()
    assert (pin.text, pin.by, pin.session, pin.project) == (NEVER, "user", "s1", None)
    assert NEVER in await injected_after_compaction(pinning)


async def test_line_is_pinned_without_the_setting(agent: Agent) -> None:
    await start(agent)
    await agent.observe("prompt", prompt=f"PIN: {NEVER}")
    assert pinned(agent) == []


async def test_text_that_brimline_typed_is_pinned(pinning: Agent) -> None:
    """A message of another agent, as it is typed into a pane: also with words around it."""
    await start(pinning)
    await pinning.monitor.send("s1", f"Look.\nPIN: {NEVER}", sender="s2")
    await pinning.observe("tool")
    typed = f"Message: [message from s2] Look.\n  PIN: {NEVER}\nPIN: {NEVER}"
    await pinning.observe("prompt", prompt=typed.replace("  PIN", "PIN"))
    await pinning.observe("prompt", prompt=f"Read /tmp/x\nPIN: {NEVER}\n/x and continue from"
                          " where you left off.")  # fmt: skip
    await pinning.observe("prompt", prompt=f"{CONTINUED_TEXT}\n\nPIN: {NEVER}")
    await pinning.observe("prompt", prompt=f"PIN: {NEVER}", thread="agent-1")
    await pinning.observe("tool", prompt=f"PIN: {NEVER}")
    assert pinned(pinning) == []


async def test_pin_that_does_not_fit_is_dropped_silently(pinning: Agent) -> None:
    await start(pinning)
    reply = await pinning.observe("prompt", prompt=f"PIN: {'x' * 301}\nPIN: {NEVER}")
    assert "was not pinned" in (reply.context or "")
    assert "at most 300 characters" in (reply.context or "")
    assert pinned(pinning) == [NEVER]


@pytest.mark.parametrize("draft_chars", [9_000, 4_000])
async def test_pins_cut_the_middle_out_of_the_draft(tmp_path: Path, draft_chars: int) -> None:
    """The draft is shorter instead: its least valuable parts are left out, and no line is cut."""
    agent = Agent(tmp_path, draft_chars=draft_chars)
    agent.environment = PinnedEnvironment(tmp_path / "state")
    agent.new_monitor()
    for number in range(3):
        add_pin(agent, text=f"{number} {'x' * 240}")
    for number in range(200):
        text = f"Message number {number} of the user, with enough words for a line."
        agent.write_record(type="user", message={"content": text})
    agent.call(150_000)
    context = await injected_after_compaction(agent)
    assert context.startswith(INTRO)
    assert draft_chars - 700 < utf16_length(context) <= draft_chars
    assert "characters are left out here" not in context
    assert "> Message number 199 of the user, with enough words for a line." in context
    assert "more left out]" in context
