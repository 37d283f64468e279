"""The number of hypothesis examples, which is smaller in the quick tests."""

from hypothesis import settings

DEFAULT_EXAMPLES, QUICK_EXAMPLES = 100, 25


def examples(number: int) -> settings:
    """Settings with `number` examples, or a quarter of them in the quick tests."""
    return settings(max_examples=max(1, number * settings().max_examples // DEFAULT_EXAMPLES))
