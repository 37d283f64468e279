"""The tables of "Which formula?": what they are made of, and when they are stale."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from brimline.formulas import FORMULAS

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "formulas.py"
PAGE = ROOT / "docs/concepts/which-formula.md"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def script() -> Json:
    """The names of the script."""
    return runpy.run_path(str(SCRIPT))


def call(id: str, input: int, read: int, write: int, output: int) -> Json:
    """A call as Claude Code writes it down."""
    usage = {
        "input_tokens": input,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
    }
    message: Json = {"id": id, "role": "assistant", "model": "m", "content": [], "usage": usage}
    return {"type": "assistant", "sessionId": "s", "version": "2.1.325", "message": message}


BOUNDARY: Json = {"type": "system", "subtype": "compact_boundary", "sessionId": "s"}
# Three calls, one of them written twice, with a compaction before the last.
LONG = (
    call("a", 10, 0, 990, 100),
    call("b", 10, 1_000, 990, 100),
    call("b", 10, 1_000, 990, 100),
    BOUNDARY,
    call("c", 0, 500, 0, 50),
)


def corpus(root: Path, **files: tuple[Json, ...]) -> Path:
    """A corpus of made-up transcripts of Claude Code."""
    folder = root / "corpus"
    folder.mkdir(exist_ok=True)
    truths: Json = {}
    for name, records in files.items():
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in records))
        truths[name] = {"agent": "claude", "subagent_file": name.startswith("agent")}
    (folder / "truth.json").write_text(json.dumps(truths))
    return folder


def page(root: Path, script: Json) -> Path:
    """A page with a place for the tables."""
    path = root / "page.md"
    path.write_text(f"# Before\n\n{script['BEGIN']}\nold\n{script['END']}\n\nAfter.\n")
    return path


def test_errors_of_a_session(tmp_path: Path, script: Json) -> None:
    """Each formula is held against what the call at hand sent, at each of the three moments."""
    measured = script["threads"](corpus(tmp_path, one=LONG))
    errors, rows = script["errors"], script["ROWS"]
    assert {moment: errors(measured, rows["latest"], moment) for moment in measured[0].moments} == {
        "end": [0.0],
        "every": [0.0, 0.0, 0.0],
        "after": [0.0],
    }
    # Call by call: 0 + 10 + 100 of 1,000; 1,000 + 20 + 200 of 2,000; 1,000 + 20 + 250 of 500.
    every = errors(measured, rows["max_cache_read_plus_sums"], "every")
    assert every == [-89.0, -39.0, 154.0]
    # 990 + 10 + 100 of 1,000; 1,980 + 20 + 200 of 2,000; 1,980 + 20 + 250 of 500.
    assert errors(measured, rows["sum_cache_creation"], "every") == [10.0, 10.0, 350.0]
    assert errors(measured, rows["result_sums"], "after") == [600.0]
    assert errors(measured, rows["last_input"], "end") == [-100.0]
    assert errors(measured, rows["effective"], "end") == [-90.0]
    assert errors(measured, rows["held"], "every") == [10.0, 5.0, 10.0]


def test_end_is_held_against_the_corpus(tmp_path: Path, script: Json) -> None:
    """What the last call sent is the corpus's word: a reading of ours that is wrong shows."""
    folder = corpus(tmp_path, one=LONG)
    truth = {"one": {"agent": "claude", "sent": 1_000}}
    (folder / "truth.json").write_text(json.dumps(truth))
    measured = script["threads"](folder)
    assert script["errors"](measured, script["ROWS"]["latest"], "end") == [-50.0]


def test_subagents_and_empty_sessions_are_left_out(tmp_path: Path, script: Json) -> None:
    """A subagent's file, and one without a call, is no session to be measured."""
    folder = corpus(tmp_path, one=LONG, agent=LONG, empty=(BOUNDARY,), nothing=())
    assert len(script["threads"](folder)) == 1


def test_compaction_at_the_end_has_no_call_after_it(tmp_path: Path, script: Json) -> None:
    """A compaction that nothing follows is not measured."""
    (measured,) = script["threads"](corpus(tmp_path, one=(*LONG[:2], BOUNDARY)))
    assert measured.after == frozenset()


def test_every_formula_has_a_row(script: Json) -> None:
    """All of ours are in the tables, and `held` beside the first."""
    assert set(script["ROWS"]) == {*FORMULAS, "held"}
    assert list(script["ROWS"])[:2] == ["latest", "held"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (0.0, "0"),
        (-0.04, "0"),
        (0.4, "+0.4 %"),
        (-9.94, "-9.9 %"),
        (9.96, "+10 %"),
        (-89.4, "-89 %"),
        (207_990.6, "+207,991 %"),
    ],
)
def test_percent(script: Json, error: float, text: str) -> None:
    """An error is as exact as it can be read."""
    assert script["percent"](error) == text


def test_median_and_worst(script: Json) -> None:
    """The worst is the furthest off, either way, with its sign."""
    assert script["shown"]([-100.0, 1.0, 50.0]) == ("+1.0 %", "-100 %")
    assert script["shown"]([]) == ("", "")


def test_written_and_checked(
    tmp_path: Path, script: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was written passes the check; another corpus, or a changed figure, does not."""
    where, folder = page(tmp_path, script), corpus(tmp_path, one=LONG)
    main = script["main"]
    assert main(["--check", str(folder)], where) == 1
    assert "page.md is stale: run `make formulas DIR=...`" in capsys.readouterr().err
    assert main([str(folder)], where) == 0
    assert main(["--check", str(folder)], where) == 0
    text = where.read_text()
    assert text.startswith("# Before\n")
    assert text.endswith("\nAfter.\n")
    assert "Measured on a corpus of 1 real transcript of one agent." in text
    assert "### Claude Code: 1 transcript, 3 calls, 1 compaction\n" in text
    assert "| `result_sums` | +600 % | +600 % | +50 % | +600 % | +600 % | +600 % |" in text
    where.write_text(text.replace("+600 %", "+599 %"))
    assert main(["--check", str(folder)], where) == 1
    assert main(["--check", str(corpus(tmp_path, one=LONG[:2]))], where) == 1


def test_moment_that_nobody_had_is_left_out(tmp_path: Path, script: Json) -> None:
    """Without a compaction there is no column for it."""
    made = script["section"](script["threads"](corpus(tmp_path, one=LONG[:2])))
    assert "after a compaction" not in made
    assert "compaction" not in made


def test_nothing_of_the_corpus_but_figures(tmp_path: Path, script: Json) -> None:
    """No name of a file, a session or a model gets into the page."""
    folder = corpus(tmp_path, secretname=LONG)
    made = script["section"](script["threads"](folder))
    words = set(re.findall(r"[a-z_]{3,}", made.lower()))
    assert not words & {"secretname", "corpus/secretname", "assistant", tmp_path.name}


def test_without_a_corpus(tmp_path: Path, script: Json, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a corpus there is nothing to check, and nothing to write from."""
    where = page(tmp_path, script)
    before = where.read_text()
    assert script["main"](["--check"], where) == 0
    assert script["main"]([str(tmp_path)], where) == 2
    assert capsys.readouterr().out.splitlines() == [
        "no corpus given",
        f"no corpus given: {tmp_path} has no truth.json",
    ]
    assert where.read_text() == before


def test_page_without_its_place(tmp_path: Path, script: Json) -> None:
    """A page whose marks were taken out is an error, and not silently fine."""
    with pytest.raises(ValueError, match="expected <!-- generated by"):
        script["with_section"]("# A page\n", "made")


def test_committed_page_has_its_tables(script: Json) -> None:
    """The page in the docs has a row for every formula in every table."""
    _, begin, rest = PAGE.read_text("utf-8").partition(script["BEGIN"])
    made, end, _ = rest.partition(script["END"])
    assert begin
    assert end
    tables = made.count("### ")
    assert tables == 6
    for name in script["ROWS"]:
        assert made.count(f"| `{name}` |") == tables
