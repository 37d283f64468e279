"""Elements that a client puts into a text: what stands between an opening and a closing mark."""

import re
from collections import defaultdict, deque


class Elements:
    """Elements by the regular expressions of their marks, each with the element's name in group 1.

    The first closing mark of its name ends an element. Anyone can write such marks into a file or a
    prompt, so the time is linear in the text, also if nothing closes them.
    """

    def __init__(self, opening: str, closing: str) -> None:
        self._opening = re.compile(opening, re.MULTILINE)
        self._closing = re.compile(closing, re.MULTILINE)

    def split(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the text outside of the elements, and each element after its name."""
        closings = defaultdict[str, deque[tuple[int, int]]](deque)
        for mark in self._closing.finditer(text):
            closings[mark[1]].append(mark.span())
        outside: list[str] = []
        elements: list[tuple[str, str]] = []
        place = 0
        for mark in self._opening.finditer(text):
            later = closings[mark[1]]
            while later and later[0][0] < mark.end():
                later.popleft()
            if later and place <= mark.start():
                end = later[0][1]
                outside.append(text[place : mark.start()])
                elements.append((mark[1], text[mark.start() : end]))
                place = end
        return "".join((*outside, text[place:])), elements
