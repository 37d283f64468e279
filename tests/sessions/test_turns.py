"""Whether the next turn fits into what is left, by the turns before."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents.transcripts.source import Transcript
from brimline.context.tracker import Reading, Thread, read
from brimline.context.window import Limit
from brimline.sessions.compaction_effects import content_of
from brimline.sessions.files import SessionFiles, load_session
from brimline.sessions.turns import (
    MAX_TURNS,
    NextTurn,
    predict_next_turn,
    turn_growths,
)

RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "result"}


class Writer:
    """Writes a transcript of Claude Code."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s1.jsonl"
        self.lines: list[str] = []
        self.calls = 0

    def user(self, content: object, **more: Any) -> None:
        message = {"role": "user", "content": content}
        self._add({"type": "user", "message": message, **more})

    def turn(self, *sents: int) -> None:
        """A prompt and the calls until its end, with the results of tools between."""
        self.user("go on")
        for sent in sents:
            self.calls += 1
            usage = {"input_tokens": sent, "output_tokens": 0}
            message = {"id": f"m{self.calls}", "model": "claude-sonnet-4-5", "usage": usage}
            self._add({"type": "assistant", "message": message})
            self.user([RESULT])

    def _add(self, record: dict[str, object]) -> None:
        self.lines.append(json.dumps({"sessionId": "s1", "version": "2.1.325", **record}))

    def load(self) -> tuple[list[int], Thread, Reading]:
        """Write the transcript; returns how many calls came before each turn."""
        self.path.write_text("".join(f"{line}\n" for line in self.lines))
        transcript = Transcript("claude", str(self.path), 0.0, self.path.stat().st_size, "s1")
        loaded = load_session(SessionFiles("claude", "s1", (transcript,)))
        thread = loaded.session.threads["main"]
        content = content_of(loaded)
        assert content is not None
        return content.turn_starts, thread, read(loaded.session, thread, "transcript")


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def test_turn_begins_with_a_text_of_the_user_only(writer: Writer) -> None:
    writer.turn(10_000, 12_000)
    writer.user("added by the client", isMeta=True)
    writer.user("  ")
    writer.turn(15_000)
    writer.lines.append("{ broken")
    starts, thread, _ = writer.load()
    assert starts == [0, 2]
    assert turn_growths(thread, starts) == [2_000, 3_000]


def test_turn_without_a_call_and_the_fall_at_a_compaction_do_not_count(writer: Writer) -> None:
    writer.turn(100_000)
    writer.user("wait")
    writer.turn(150_000, 40_000, 41_000)
    starts, thread, _ = writer.load()
    assert starts == [0, 1, 1]
    assert turn_growths(thread, starts) == [0, 51_000]


def test_next_turn_is_judged_by_the_last_turns(writer: Writer) -> None:
    for number in range(MAX_TURNS + 5):
        writer.turn(10_000 + 6_000 * number)
    starts, thread, reading = writer.load()
    assert reading.left == 167_000 - 154_000
    turn = predict_next_turn(thread, reading, starts)
    assert turn == NextTurn(MAX_TURNS, MAX_TURNS, 6_000)
    unknown = msgspec.structs.replace(reading, limit=None)
    assert predict_next_turn(thread, unknown, starts) is None
    near = msgspec.structs.replace(reading, limit=Limit(157_000, "set", ""))
    assert predict_next_turn(thread, near, starts) == NextTurn(MAX_TURNS, 0, 6_000)


def test_next_turn_is_unknown_without_turns(writer: Writer) -> None:
    writer.turn(10_000)
    writer.turn(20_000)
    starts, thread, reading = writer.load()
    assert predict_next_turn(thread, reading, starts) is None
    for sent in (30_000, 40_000):
        writer.turn(sent)
    starts, thread, reading = writer.load()
    assert predict_next_turn(thread, reading, starts) is not None


def test_deleted_transcript_has_no_content(writer: Writer) -> None:
    writer.turn(10_000)
    writer.path.write_text("".join(f"{line}\n" for line in writer.lines))
    transcript = Transcript("claude", str(writer.path), 0.0, writer.path.stat().st_size, "s1")
    loaded = load_session(SessionFiles("claude", "s1", (transcript,)))
    writer.path.unlink()
    assert content_of(loaded) is None
    assert content_of(msgspec.structs.replace(loaded, main=None)) is None


@pytest.mark.parametrize(
    ("fitting", "verdict"),
    [(10, "probably fits"), (8, "probably fits"), (7, "may not fit"), (4, "probably does not fit")],
)
def test_next_turn_is_a_sentence(fitting: int, verdict: str) -> None:
    assert str(NextTurn(10, fitting, 12_345)) == (
        f"the next turn {verdict}: {fitting} of the last 10 would, their median added 12K"
    )
