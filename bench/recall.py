"""`brimline recall` in a transcript of 100 MB, beside `grep -F` on the same file."""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from explain import transcript
from measure import Case, run

ROOT = Path(__file__).parent.parent
ROUNDS = 7
WORDS = ("buffer", "src/main.rs:41:9")  # both are in most passages, which is the slowest search


def main(arguments: list[str]) -> int:
    """Print the time of the first search, and a row for grep and for each later search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=ROOT / "bench" / ".cache")
    parser.add_argument("words", nargs="*", default=WORDS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}
        path = Path(home) / "session.jsonl"
        shutil.copy(transcript(options.cache), path)
        recall = [sys.executable, "-m", "brimline", "recall", "--session", str(path), "--json"]
        recall += ["--", *options.words]
        first = run(recall, environment)
        grep = Case(
            "grep -F",
            [shutil.which("grep") or "grep", "-F", "-c", "-e", options.words[-1], str(path)],
        )
        unchanged, grown = Case("unchanged", recall), Case("grown by 1 MB", recall)
        end = path.read_bytes()[-1_000_000:].partition(b"\n")[2]
        for _ in range(ROUNDS):
            for case in (grep, unchanged):
                case.runs.append(run(case.command, environment))
            with path.open("ab") as file:
                file.write(end)
            grown.runs.append(run(grown.command, environment))
        index = sum(file.stat().st_size for file in Path(home).rglob("*.db"))
    print(f"first search: {first.seconds:.1f} s, an index of {index >> 20} MB")
    print(f"{'100 MB transcript':<20}{'seconds':>10}{'best':>8}{'peak MB':>10}{'ratio':>8}")
    for case in (grep, unchanged, grown):
        ratio = case.median / grep.median
        figures = f"{case.median:>10.2f}{case.best:>8.2f}{case.peak_mb:>10.0f}{ratio:>8.2f}"
        print(f"{case.name:<20}{figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
