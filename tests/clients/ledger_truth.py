"""What a fake model was sent, beside what the ledger makes of the client's files."""

from __future__ import annotations

import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from brimline.agents.transcripts.source import Transcript
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from brimline.testing.fake_model import Billed

MAX_ERROR_SHARE = 0.05
AROUND_TOKENS = 75  # what the wire puts around a few parts: roles, ids, quotes


def words(count: int, word: str) -> str:
    return " ".join(f"{word}{number}" for number in range(count))


def noise_png(side: int) -> bytes:
    """A picture that does not compress, so that its size in the prompt is known."""
    dice = random.Random(1)
    rows = b"".join(b"\0" + dice.randbytes(3 * side) for _ in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def read_main_ledger(agent: str, path: Path) -> ThreadLedger:
    status = path.stat()
    ledger = read_ledger(Transcript(agent, str(path), status.st_mtime, status.st_size))
    (thread,) = (each for each in ledger.threads if each.thread == "main")
    return thread


def assert_totals(billed: Sequence[Billed], ledger: ThreadLedger) -> None:
    """Every call's parts add up to what it was billed."""
    sent = [each.usage.input + each.usage.cache_read + each.usage.cache_write for each in billed]
    assert [balance.sent for balance in ledger.balances] == sent
    for balance in ledger.balances:
        assert sum(balance.categories) + balance.unexplained == balance.sent


def find_errors(
    billed: Sequence[Billed], ledger: ThreadLedger, truth: Callable[[Billed], Counter[str]]
) -> list[tuple[int, str, int, int]]:
    """Every category of a call that is too far off: the call, the category, ours, what was sent."""
    errors: list[tuple[int, str, int, int]] = []
    for number, (call, balance) in enumerate(zip(billed, ledger.balances, strict=True), 1):
        sent = truth(call)
        for name, ours in zip(CATEGORIES, balance.categories, strict=True):
            if abs(ours - sent[name]) > max(MAX_ERROR_SHARE * sent[name], AROUND_TOKENS):
                errors.append((number, name, ours, sent[name]))
        if balance.unexplained > MAX_ERROR_SHARE * balance.sent:
            errors.append((number, "unexplained", balance.unexplained, 0))
    return errors
