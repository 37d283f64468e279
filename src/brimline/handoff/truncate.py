"""How long a text is for its reader, and its beginning and end up to so much."""

import msgspec

GAPS = 3, 2
"""Of a text with its middle cut out, so many parts are its beginning and its end."""


class TextMeasure(msgspec.Struct, frozen=True):
    """Counts the units of an encoding. A character that would be cut through is left out."""

    encoding: str
    width: int

    def size(self, text: str) -> int:
        """How many units it has."""
        return len(self._data(text)) // self.width

    def first(self, text: str, most: int) -> str:
        """Its beginning, at most so many units."""
        return self._text(self._data(text[: max(0, most)])[: max(0, most) * self.width])

    def last(self, text: str, most: int) -> str:
        """Its end, at most so many units."""
        return self._text(self._data(text[-most:])[-most * self.width :]) if most > 0 else ""

    def without_middle(self, text: str, most: int, gap: str) -> str:
        """The text, or its beginning, the gap and its end, in at most so many units together."""
        if self.size(text) <= most:
            return text
        room = max(0, most - self.size(gap))
        front, back = GAPS
        beginning = room * front // (front + back)
        whole = self.first(text, beginning) + gap + self.last(text, room - beginning)
        return self.first(whole, most)

    def _data(self, text: str) -> bytes:
        return text.encode(self.encoding, "replace")

    def _text(self, data: bytes) -> str:
        return data.decode(self.encoding, "ignore")


UTF8 = TextMeasure("utf-8", 1)
"""What tokens are estimated by."""

UTF16 = TextMeasure("utf-16-le", 2)
"""What the clients, being written in JavaScript, call characters; never fewer than Python's."""
