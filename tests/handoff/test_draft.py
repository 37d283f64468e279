"""A draft is made from what was said and done, fits its room, and survives any transcript."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import AGENTS
from brimline.errors import UnknownAgent
from brimline.handoff import TOKENS, draft, files_changed_since, redact
from brimline.handoff.digest import MAX_TEXT_BYTES, digest_transcript, shorten
from brimline.usage import estimate
from hypothesis_examples import examples

from .made import EPOCH, FIXTURES, VALUES, Json, answers, asked, broken, runs, said, uses

SCENE = [
    asked("Fix the parser.\nIt fails on empty input."),
    uses("1", "TodoWrite", todos=[{"content": "Write a test", "status": "completed"}]),
    uses(
        "2",
        "TodoWrite",
        todos=[
            {"content": "Write a test", "status": "completed"},
            {"content": "Update the docs", "status": "pending"},
            {"content": "Fix parse()", "status": "in_progress"},
        ],
    ),
    uses("3", "Edit", file_path="/home/dev/project/src/parse.py", old_string="a", new_string="b"),
    answers("3", "The file was updated."),
    uses("4", "Write", file_path="/etc/other.toml", content="x"),
    answers("4", "Written."),
    *runs("pytest -q", "E   IndexError\n2 failed in 0.1s", failed=True),
    *runs("git add -A", ""),
    asked("Also look at lists."),
    uses("5", "ExitPlanMode", plan="1. Guard the loop.\n2. Test it."),
    said("I will guard the loop first."),
]

WHOLE = """\
# Draft handoff

Made by Brimline from the transcript, without a model. It lists what was said and done; nobody has \
judged it. What looked like a credential is `***`.

## The task, in the user's first words
> Fix the parser.
> It fails on empty input.

## The user's latest words
> Also look at lists.

## Open to-dos
- [begun] Fix parse()
- Update the docs

## The last plan
> 1. Guard the loop.
> 2. Test it.

## The agent's last words
> I will guard the loop first.

## Errors that no later success took back
- `pytest -q`:
    E IndexError
    2 failed in 0.1s

## Tests and other commands, with their last result
- failed: `pytest -q`: 2 failed in 0.1s
- ok: `git add -A`

## Files changed, the last one first
- /etc/other.toml
- src/parse.py

## Where to look
- transcript: /home/dev/.claude/x.jsonl
- agent: claude
- session: abc
- folder: /home/dev/project
- branch: main
"""


def test_whole() -> None:
    """Everything that a session was about is in its draft."""
    assert draft(SCENE, "claude", where="/home/dev/.claude/x.jsonl", session="abc") == WHOLE


def test_nothing_to_tell() -> None:
    """A transcript in which nothing was said or done gives no draft."""
    assert draft([], "claude") == ""
    assert draft([b'{"type":"mode"}', b"", b"no JSON"], "claude") == ""


def test_unknown_agent() -> None:
    """An agent that we do not know has no drafts."""
    with pytest.raises(UnknownAgent):
        draft([], "emacs")


def test_secrets() -> None:
    """Credentials are masked wherever they stand: words, commands, outputs, errors."""
    key = "sk-ant-" + "0123456789abcdef"
    records = [
        asked(f"Use {key}."),
        asked(f"No, use {key}!"),
        *runs(f"curl -H 'x-api-key: {key}' h", f"refused {key}", failed=True),
        *runs(f"KEY={key} make test", f"used {key}"),
        uses("9", "TodoWrite", todos=[{"content": f"Revoke {key}"}]),
        said(f"I used {key}"),
    ]
    text = draft(records, "claude")
    assert "0123456789" not in text
    assert text.count("***") >= 8


@pytest.mark.parametrize("side", [0, 1])
def test_a_secret_at_the_edge_of_what_is_kept(side: int) -> None:
    """Of a credential in a text that is too long to be kept whole neither end is kept."""
    key = "sk-ant-0123456789abcdef"
    for length in range(8_165, 8_195):
        padding = "x " * (length // 2) + "y" * (length % 2)
        filler = " z" * 20_000
        words = f"{padding} {key} {filler}" if side else f"{filler} {key} {padding}"
        text = redact(digest_transcript([asked(words)], "claude").first_prompt)
        assert "0123" not in text
        assert "cdef" not in text


@given(st.text("a é\n", max_size=40).map(lambda part: part * 900))
def test_what_is_kept(text: str) -> None:
    """What is kept of a text is bounded, and is kept when it is kept again."""
    once = shorten(text)
    assert len(once.encode()) <= MAX_TEXT_BYTES
    assert shorten(once) == once


def test_what_matters_comes_first() -> None:
    """Checks stand before other commands, the last ones first, and the rest is counted."""
    records = [asked("Go.")]
    for number in range(30):
        records += runs(f"git tag v{number}", "")
    records += [*runs("make check", "all well"), *runs("git push", "")]
    text = draft(records, "claude")
    shown = [line for line in text.split("\n") if line.startswith("- ok")]
    assert shown[:3] == ["- ok: `make check`: all well", "- ok: `git push`", "- ok: `git tag v29`"]
    assert len(shown) == 12
    assert "- and 20 more" in text


@pytest.mark.parametrize("middle", ["So and so. " * 900, "So and so. " * 9_000, "é" * 90_000])
def test_long_words_keep_both_ends(middle: str) -> None:
    """Of words that are too long the beginning and the end are shown, and the gap is."""
    text = draft([asked(f"Begin here. {middle} End there.")], "claude")
    assert "> Begin here." in text
    assert "> [...]\n" in text
    assert "End there.\n" in text


def test_room_is_used() -> None:
    """What one part does not need another may take."""
    text = draft([asked("First. " * 2_000)], "claude")
    assert estimate(text) > TOKENS // 2


def test_changed_since() -> None:
    """The files changed after a time are told, and those of which no time is known."""
    untimed = answers("7", "ok", timestamp=None)
    records = [*SCENE, uses("7", "Write", file_path="/untimed"), untimed]
    before = ("/home/dev/project/src/parse.py", "/etc/other.toml", "/untimed")
    assert files_changed_since(records, "claude", EPOCH - 1) == before
    assert files_changed_since(records, "claude", EPOCH) == ("/untimed",)


def recorded() -> list[Json]:
    """Every recorded transcript in lines, and every scene that was made up."""
    found: list[Json] = [json.loads(line) for line in SCENE]
    for path in sorted(FIXTURES.glob("*/tool-loop/home/**/*.jsonl")):
        found += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return found


RECORDS = recorded()


def bounded(records: Iterable[bytes], agent: str = "claude") -> None:
    """Check that a draft of these is bounded, and that nothing is raised."""
    assert estimate(draft(records, agent, where="x" * 900, session="y" * 900)) < TOKENS


@given(st.lists(broken(RECORDS), max_size=8))
def test_garbage(records: list[bytes]) -> None:
    """Whatever a transcript holds, its draft is bounded and nothing is raised."""
    for agent in AGENTS:
        bounded(records, agent)


TEXTS = st.text("ab é😀\n`>#-'\"|", max_size=30).map(lambda part: part * 60)
RECORD = st.one_of(
    TEXTS.map(asked),
    TEXTS.map(said),
    st.tuples(TEXTS, VALUES).map(lambda pair: uses(pair[0], "Bash", command=pair[0], more=pair[1])),
    TEXTS.map(lambda word: uses("x", "Write", file_path=word)),
    TEXTS.map(lambda word: uses("x", "ExitPlanMode", plan=word)),
    TEXTS.map(lambda word: uses("x", "TodoWrite", todos=[{"content": word}] * 9)),
    st.tuples(TEXTS, TEXTS, st.booleans()).map(lambda told: answers(*told)),
)


@given(st.lists(RECORD, max_size=30))
def test_bounded(records: list[bytes]) -> None:
    """However much was said and done, a draft is bounded."""
    bounded(records)


@examples(20)
@given(st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), min_size=12, max_size=14))
def test_bounded_with_every_part_full(commands: list[tuple[str, str, bool]]) -> None:
    """A draft in which every part is full is bounded, and ends with where to look."""
    records = [asked("a\n" * 9_000), asked("b" * 9_000), said("é" * 9_000)]
    records += [uses("p", "ExitPlanMode", plan="c\n\n" * 900)]
    for number, (command, output, failed) in enumerate(commands):
        records += runs(f"make check {number} {command}", output + "\n" + "z" * 300, failed)
        file = f"/home/dev/project/{'d' * 200}{number}"
        records += [uses("w", "Write", file_path=file), answers("w", "")]
    bounded(records)
    assert "## Where to look\n- transcript: here" in draft(records, "claude", where="here")
