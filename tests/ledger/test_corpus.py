"""Real transcripts add up, and little of them is unexplained; with BRIMLINE_CORPUS alone."""

import os
from pathlib import Path
from statistics import median, quantiles

import msgspec
import pytest

from brimline.ledger.reader import read_ledger
from brimline.transcripts.source import Transcript

CORPUS = os.environ.get("BRIMLINE_CORPUS")
MEDIAN_SHARE, TENTH_SHARE = 0.03, 0.10

pytestmark = pytest.mark.skipif(not CORPUS, reason="set BRIMLINE_CORPUS to a corpus")


class _Truth(msgspec.Struct):
    agent: str


def transcripts() -> list[Transcript]:
    folder = Path(CORPUS or "")
    truth = msgspec.json.decode((folder / "truth.json").read_bytes(), type=dict[str, _Truth])
    return [Transcript(each.agent, str(folder / file), 0.0, 0) for file, each in truth.items()]


def test_corpus_adds_up_and_little_is_unexplained() -> None:
    shares: list[float] = []
    for transcript in transcripts():
        for ledger in read_ledger(transcript).threads:
            for balance in ledger.balances:
                assert sum(balance.categories) + balance.unexplained == balance.sent
                assert min(*balance.categories, balance.unexplained) >= 0
            if ledger.sent:
                assert sum(entry.tokens for entry in ledger.entries) == (
                    ledger.sent - ledger.unexplained
                )
                shares.append(ledger.unexplained / ledger.sent)
    assert len(shares) > 10
    most = quantiles(shares, n=10)[-1]
    print(f"unexplained: median {median(shares):.1%}, 90th percentile {most:.1%}")
    assert median(shares) <= MEDIAN_SHARE
    assert most <= TENTH_SHARE
