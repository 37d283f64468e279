"""Pins: one file with bounds, and the block that is injected."""

import multiprocessing
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.inbox import utf16_length
from brimline.errors import InvalidRequest
from brimline.handoff.pins import (
    MAX_BLOCK_CHARS,
    MAX_PIN_CHARS,
    MAX_PINS,
    Author,
    Pin,
    PinFile,
    find_pin_lines,
    make_pin,
    render_pins,
)

NEVER = "Never touch the README."


@pytest.fixture
def pins(tmp_path: Path) -> PinFile:
    return PinFile(tmp_path / "state")


def pin(text: str = NEVER, by: Author = "user", session: str = "s1", at: float = 1e9) -> Pin:
    return make_pin(text, at, by, session=session)


def test_pin_is_readable_by_others(pins: PinFile) -> None:
    added = pins.add(pin())
    assert pins.load() == (added,)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in pins.path.parent.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(pins.path.parent.stat().st_mode) == 0o700


def test_same_pin_is_added_twice(pins: PinFile) -> None:
    assert pins.add(pin()) == pins.add(pin(at=2e9))
    assert len(pins.load()) == 1


@pytest.mark.parametrize("text", ["", " \n", "\x1b\x07", "x" * (MAX_PIN_CHARS + 1)])
def test_pin_without_text_or_bounds_is_accepted(pins: PinFile, text: str) -> None:
    with pytest.raises(InvalidRequest):
        pins.add(pin(text))
    assert pins.load() == ()


def test_pins_of_a_session_take_more_than_their_room(pins: PinFile) -> None:
    for n in range(3):
        pins.add(pin(f"{n} {'x' * 250}"))
    with pytest.raises(InvalidRequest, match="more than 1,000 characters"):
        pins.add(pin("y" * 250))
    assert len(pins.load()) == 3
    assert pins.add(pin("y" * 250, session="s2")).session == "s2"


def test_proposals_fill_the_file_without_end(pins: PinFile) -> None:
    for n in range(MAX_PINS):
        pins.add(pin(f"proposal {n}", "agent"))
    with pytest.raises(InvalidRequest, match=f"{MAX_PINS} pins"):
        pins.add(pin("one more", "agent"))


def test_proposal_counts_as_the_users_word(pins: PinFile) -> None:
    proposal = pins.add(pin(by="agent"))
    assert pins.load_for("s1", None) == ()
    accepted = pins.accept(proposal.id, 2e9)
    assert (accepted.by, accepted.at) == ("user", 2e9)
    assert pins.load_for("s1", None) == (accepted,)
    with pytest.raises(InvalidRequest, match="already"):
        pins.accept(proposal.id, 3e9)


def test_agent_removes_a_pin_of_the_user(pins: PinFile) -> None:
    pins.add(pin())
    pins.add(pin("a proposal", "agent"))
    with pytest.raises(InvalidRequest, match="only the user removes it"):
        pins.remove("1", lambda each: each.by == "agent")
    assert pins.remove("2", lambda each: each.by == "agent").text == "a proposal"
    assert [each.text for each in pins.load()] == [NEVER]


@pytest.mark.parametrize("name", ["0", "2", "-1", "", "zzzz", "²"])
def test_unknown_name_removes_a_pin(pins: PinFile, name: str) -> None:
    pins.add(pin())
    with pytest.raises(InvalidRequest, match="no pin"):
        pins.remove(name, lambda _: True)


def test_pin_of_a_project_counts_elsewhere(pins: PinFile, tmp_path: Path) -> None:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    pins.add(make_pin(NEVER, 1e9, "user", project=str(folder)))
    places = [str(folder), str(folder / "src"), str(tmp_path), str(tmp_path / "app2"), None]
    assert [len(pins.load_for("s", place)) for place in places] == [1, 1, 0, 0, 0]


def test_pins_of_a_cleared_session_are_lost(pins: PinFile) -> None:
    pins.add(pin())
    pins.continue_session("s1", "s2")
    assert [each.text for each in pins.load_for("s2", None)] == [NEVER]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"version": 9}', b"\xff", b'{"pins": [{"id": 1}]}'])
def test_damaged_file_is_no_clear_error(pins: PinFile, data: bytes) -> None:
    pins.path.parent.mkdir()
    pins.path.write_bytes(data)
    with pytest.raises(InvalidRequest) as caught:
        pins.add(pin())
    assert str(pins.path) in str(caught.value)
    assert pins.path.read_bytes() == data


def _add_some(state: Path, name: str) -> None:
    for n in range(20):
        PinFile(state).add(pin(f"{name} {n}", "agent"))


def test_two_processes_lose_a_pin(pins: PinFile) -> None:
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=_add_some, args=(pins.path.parent, name)) for name in "ab"]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert len(pins.load()) == 40


def test_block_hides_who_pinned_what_and_when() -> None:
    block = render_pins([pin(), make_pin("Use port 5433.", 1e9, "user", project="/p")])
    assert block == (
        "[brimline] The user pinned what follows; it holds until the user removes it:\n"
        "- Never touch the README. (pinned 2001-09-09 01:46 UTC)\n"
        "- Use port 5433. (pinned 2001-09-09 01:46 UTC for this project)"
    )


@given(st.lists(st.text(min_size=1, max_size=MAX_PIN_CHARS), max_size=12))
def test_block_is_longer_than_its_bound(texts: list[str]) -> None:
    """Each pin is one line without control characters, and what does not fit is counted."""
    made: list[Pin] = []
    for text in texts:
        try:
            made.append(pin(text))
        except InvalidRequest:
            continue
    block = render_pins(made)
    assert utf16_length(block) <= MAX_BLOCK_CHARS
    lines = block.split("\n")[1:]
    assert all(line.isprintable() and line.startswith("- ") for line in lines)
    left_out = len(made) - len(lines)
    assert left_out <= 0 or f"- and {left_out + 1} more" in lines[-1]


@pytest.mark.parametrize(
    ("prompt", "lines"),
    [
        ("PIN: Never touch the README.", ["Never touch the README."]),
        ("Do it.\n\nPIN:  a b \r\nPIN: c", ["a b", "c"]),
        ("PIN:\nPIN: \n PIN: indented\n> PIN: quoted\npin: small", []),
        ("```\nPIN: a log\n```\nPIN: mine\n~~~\nPIN: open", ["mine"]),
        ("My PIN: 1234", []),
        ("\n".join(f"PIN: {n}" for n in range(9)), list("01234")),
    ],
)
def test_line_of_a_prompt_is_read_wrongly(prompt: str, lines: list[str]) -> None:
    assert find_pin_lines(prompt) == lines
