"""The tables of "Which formula?": how they are made, and when they are stale."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from brimline.context.formulas import FORMULAS

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "formulas.py"
PAGE = ROOT / "docs/concepts/which-formula.md"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def script() -> Json:
    return runpy.run_path(str(SCRIPT))


def call(id: str, input: int, read: int, write: int, output: int) -> Json:
    """A call as Claude Code writes it."""
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
    """A corpus of generated transcripts of Claude Code."""
    folder = root / "corpus"
    folder.mkdir(exist_ok=True)
    truths: Json = {}
    for name, records in files.items():
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
        truths[name] = {"agent": "claude", "subagent_file": name.startswith("agent")}
    (folder / "truth.json").write_text(json.dumps(truths))
    return folder


def page(root: Path, script: Json) -> Path:
    """A page with a place for the tables."""
    path = root / "page.md"
    path.write_text(f"# Before\n\n{script['BEGIN']}\nold\n{script['END']}\n\nAfter.\n")
    return path


def test_formulas_are_compared_with_the_prompt_at_three_moments(
    tmp_path: Path, script: Json
) -> None:
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


def test_last_prompt_comes_from_the_corpus(tmp_path: Path, script: Json) -> None:
    """A wrong reading of ours would show."""
    folder = corpus(tmp_path, one=LONG)
    truth = {"one": {"agent": "claude", "sent": 1_000}}
    (folder / "truth.json").write_text(json.dumps(truth))
    measured = script["threads"](folder)
    assert script["errors"](measured, script["ROWS"]["latest"], "end") == [-50.0]


def test_subagents_and_empty_sessions_are_left_out(tmp_path: Path, script: Json) -> None:
    folder = corpus(tmp_path, one=LONG, agent=LONG, empty=(BOUNDARY,), nothing=())
    assert len(script["threads"](folder)) == 1


def test_compaction_at_the_end_is_not_measured(tmp_path: Path, script: Json) -> None:
    (measured,) = script["threads"](corpus(tmp_path, one=(*LONG[:2], BOUNDARY)))
    assert measured.after == frozenset()


def test_every_formula_has_a_row(script: Json) -> None:
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
def test_percent_is_rounded_by_its_size(script: Json, error: float, text: str) -> None:
    assert script["percent"](error) == text


def test_worst_error_is_the_furthest_with_its_sign(script: Json) -> None:
    assert script["shown"]([-100.0, 1.0, 50.0]) == ("+1.0 %", "-100 %")
    assert script["shown"]([]) == ("", "")


def test_check_fails_for_another_corpus_or_a_changed_figure(
    tmp_path: Path, script: Json, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_table_without_compactions_has_no_column_for_them(tmp_path: Path, script: Json) -> None:
    section = script["section"](script["threads"](corpus(tmp_path, one=LONG[:2])))
    assert "after a compaction" not in section
    assert "compaction" not in section


def test_page_gets_no_names_from_the_corpus(tmp_path: Path, script: Json) -> None:
    folder = corpus(tmp_path, secretname=LONG)
    section = script["section"](script["threads"](folder))
    words = set(re.findall(r"[a-z_]{3,}", section.lower()))
    assert not words & {"secretname", "corpus/secretname", "assistant", tmp_path.name}


def test_missing_corpus_checks_and_writes_nothing(
    tmp_path: Path, script: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    where = page(tmp_path, script)
    before = where.read_text()
    assert script["main"](["--check"], where) == 0
    assert script["main"]([str(tmp_path)], where) == 2
    printed = capsys.readouterr()
    assert printed.out == "no corpus of transcripts to measure the formulas on\n"
    assert printed.err == f"{tmp_path} is no corpus: it has no truth.json\n"
    assert where.read_text() == before


def test_page_without_markers_is_an_error(tmp_path: Path, script: Json) -> None:
    with pytest.raises(ValueError, match="expected <!-- generated by"):
        script["with_section"]("# A page\n", "tables")


def test_committed_page_has_every_formula_in_every_table(script: Json) -> None:
    _, begin, rest = PAGE.read_text("utf-8").partition(script["BEGIN"])
    section, end, _ = rest.partition(script["END"])
    assert begin
    assert end
    tables = section.count("### ")
    assert tables == 6
    for name in script["ROWS"]:
        assert section.count(f"| `{name}` |") == tables
