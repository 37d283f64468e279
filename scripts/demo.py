"""Record the session that `brimline demo` replays: `python scripts/demo.py`.

The real Claude Code works through two cycles against the fake model, with a compaction between. Of
its transcript only the records that the demo needs are kept, anonymized.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import msgspec  # noqa: E402

from brimline.testing.fake_model import Reply, Scenario  # noqa: E402
from clients.anonymizer import Anonymizer  # noqa: E402
from clients.claude import bash, run_claude  # noqa: E402
from clients.run import Place  # noqa: E402

TARGET = ROOT / "src/brimline/data/demo.jsonl"
WINDOW = "200000"
FULL = 144_000
"""What is billed beyond the prompt when the client's own threshold is passed."""

MARGIN = 4_000
"""Of the last step, so that it crosses the threshold."""

STEPS = (900, 1_400, 2_100, 2_800, 3_600, 5_200, 9_500)


def growth(start: int, until: int, chance: random.Random) -> list[int]:
    """Uneven growth, as tool results make it."""
    steps = (chance.choice(STEPS) for _ in range(200))
    grown = list(accumulate(steps, initial=start))
    return [tokens for tokens in grown if tokens < until - MARGIN] + [until]


def scenario() -> Scenario:
    """A cycle up to the compaction, and a part of the next."""
    chance = random.Random(8420)
    added = [*growth(4_000, FULL, chance), *growth(22_000, 70_000, chance)]
    replies = [msgspec.structs.replace(bash(f"echo {n}"), added=a) for n, a in enumerate(added)]
    return Scenario(main=(*replies, Reply(text="All done.", added=added[-1] + 500)))


def wanted(line: str) -> bool:
    """Whether a record is of a call or a compaction."""
    record = json.loads(line)
    boundary = record.get("subtype") == "compact_boundary"
    return record["type"] == "assistant" or boundary or bool(record.get("isCompactSummary"))


def main() -> int:
    """Record it."""
    with tempfile.TemporaryDirectory(prefix="brimline-") as scratch:
        folder = Path(scratch).resolve()
        place = Place(folder)
        run = run_claude(
            scenario(),
            folder,
            "Go.",
            model="claude-sonnet-4-5",
            environment={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": WINDOW},
        )
        transcript = next(path for path in run.transcripts if path.suffix == ".jsonl")
        text = transcript.read_text(encoding="utf-8")
        anonymizer = Anonymizer(
            {str(place.project): "/home/dev/project", str(place.home): "/home/dev"}
        )
        anonymizer.learn(transcript.name, text)
        kept = [line for line in anonymizer.text(text).splitlines() if wanted(line)]
    TARGET.write_text("\n".join(kept) + "\n", encoding="utf-8")
    print(f"{len(kept)} records in {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
