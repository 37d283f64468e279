"""Elements that a client puts into a text: what stands between an opening and a closing tag."""

import re

_SPACE = re.compile(r"\s*")


class Elements:
    """Elements of some names, which are a regular expression; the first closing tag ends one.

    Anyone can write such tags into a file or a prompt, so the time is linear in the text, also if
    none is closed. With `and_space` the space after an element belongs to it.
    """

    def __init__(self, names: str, *, and_space: bool = False) -> None:
        self._opening = re.compile(f"<({names})>")
        self._closing = re.compile(f"</({names})>")
        self._and_space = and_space

    def split(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the text outside of the elements, and each element with its name."""
        last_closings = {tag[1]: tag.start() for tag in self._closing.finditer(text)}
        outside: list[str] = []
        elements: list[tuple[str, str]] = []
        place = 0
        for tag in self._opening.finditer(text):
            if place <= tag.start() < last_closings.get(tag[1], 0):
                closing = f"</{tag[1]}>"
                end = text.index(closing, tag.end()) + len(closing)
                if self._and_space and (space := _SPACE.match(text, end)):
                    end = space.end()
                outside.append(text[place : tag.start()])
                elements.append((tag[1], text[tag.start() : end]))
                place = end
        return "".join((*outside, text[place:])), elements
