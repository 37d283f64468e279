"""Text for the synthetic transcripts: already escaped for JSON, cut at safe places."""

import json
import random
from bisect import bisect_left

_SENTENCES = (
    "the parser keeps an offset for every file and reads what was appended since then "
    "if a test fails look at the fixture first because most of them were recorded with an "
    "older client run make check before you push naïve café → done window token cache prompt "
    "thread branch commit index buffer"
)
_WORDS = _SENTENCES.split()
_CODE = (
    "def read(path: str, start: int = 0) -> bytes:\n    with open(path, 'rb') as file:\n",
    '\tif err != nil {\n\t\treturn fmt.Errorf("open %q: %w", name, err)\n\t}\n',
    "const rows = items.filter((x) => x.size > 0).map((x) => `${x.name}: ${x.size}`);\n",
    "error[E0308]: mismatched types\n  --> src/main.rs:41:9\n   |\n41 |         limit\n",
    "C:\\work\\app\\tests\\test_scan.py::test_offsets PASSED                    [ 61%]\n",
)
_POOL_CHARS = 3_000_000


def _look_alike(rng: random.Random) -> str:
    """A quoted transcript line inside text: once escaped, no reader may count it."""
    sent = rng.randrange(1, 200_000)
    usage = {"input_tokens": sent, "cache_read_input_tokens": 7, "output_tokens": 11}
    record = {
        "type": "assistant",
        "message": {"id": "msg_quoted", "usage": usage},
        "isCompactSummary": True,
    }
    return json.dumps(record, separators=(",", ":")) + "\n"


def _piece(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.03:
        return _look_alike(rng)
    if kind < 0.35:
        return rng.choice(_CODE)
    line = " ".join(rng.choice(_WORDS) for _ in range(rng.randrange(6, 18)))
    return line + (".\n" if kind < 0.6 else ", ")


class Prose:
    """A pool of escaped text from which slices of about a wanted length are cut."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        pieces: list[str] = []
        self._starts: list[int] = [0]
        while self._starts[-1] < _POOL_CHARS:
            pieces.append(json.dumps(_piece(rng), ensure_ascii=False)[1:-1])
            self._starts.append(self._starts[-1] + len(pieces[-1]))
        self._pool = "".join(pieces)

    def take(self, rng: random.Random, length: int) -> str:
        """Return escaped text of at least `length` characters, cut between pieces."""
        last = bisect_left(self._starts, self._starts[-1] - length)
        start = self._starts[int(rng.random() * last)]
        end = self._starts[bisect_left(self._starts, start + length)]
        return self._pool[start:end]
