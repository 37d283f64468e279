"""Measure and cut texts in bytes or UTF-16 units."""

import msgspec

# How much of an elided text is its beginning and its end.
FRONT_BACK_RATIO = 3, 2


class TextMeasure(msgspec.Struct, frozen=True):
    """Counts units of an encoding; characters are never split."""

    encoding: str
    width: int

    def size(self, text: str) -> int:
        return len(self._encode(text)) // self.width

    def first(self, text: str, most: int) -> str:
        """Return the beginning, of at most `most` units."""
        return self._decode(self._encode(text[: max(0, most)])[: max(0, most) * self.width])

    def last(self, text: str, most: int) -> str:
        """Return the end, of at most `most` units."""
        return self._decode(self._encode(text[-most:])[-most * self.width :]) if most > 0 else ""

    def elide(self, text: str, most: int, gap: str) -> str:
        """Return the text in at most `most` units, with a gap in the middle if it is longer."""
        if self.size(text) <= most:
            return text
        room = max(0, most - self.size(gap))
        front, back = FRONT_BACK_RATIO
        beginning = room * front // (front + back)
        whole = self.first(text, beginning) + gap + self.last(text, room - beginning)
        return self.first(whole, most)

    def _encode(self, text: str) -> bytes:
        return text.encode(self.encoding, "replace")

    def _decode(self, data: bytes) -> str:
        return data.decode(self.encoding, "ignore")


UTF8 = TextMeasure("utf-8", 1)  # what tokens are estimated by

# Characters as the clients count them, in JavaScript; never fewer than Python's.
UTF16 = TextMeasure("utf-16-le", 2)
