"""The commands of the Makefile on a machine that has only the clone."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_last_steps_of_make_test_fail_without_a_corpus(tmp_path: Path) -> None:
    """Each says in one line that there is no corpus, and succeeds."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for path in ROOT.iterdir():
        (checkout / path.name).symlink_to(path)
    # This test may itself run under make, whose variables would reach the inner one.
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = subprocess.run(
        ["make", "-s", "-o", "setup", f"VENV={sys.prefix}", "corpus", "formulas-check"],
        cwd=checkout, env=env, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "no corpus of transcripts to compare with",
        "no corpus of transcripts to measure the formulas on",
    ]


def test_ci_runs_something_else_than_the_command_of_the_readme() -> None:
    assert (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1] == "exec make test"
    assert "`make test` installs everything" in (ROOT / "README.md").read_text("utf-8")
