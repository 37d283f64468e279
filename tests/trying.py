"""How many examples a property is tried with: all of them, or in the quick tests a part."""

from hypothesis import settings

USUAL, QUICK = 100, 25
"""What a property is tried with that asks for nothing else, in all tests and in the quick ones."""


def examples(number: int) -> settings:
    """So many, and in the quick tests as much fewer as those have of the usual."""
    return settings(max_examples=max(1, number * settings().max_examples // USUAL))
