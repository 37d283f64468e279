"""The number of hypothesis examples, which is smaller in the quick tests."""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy

ValueT = TypeVar("ValueT")

DEFAULT_EXAMPLES, QUICK_EXAMPLES = 100, 25


def examples(number: int) -> settings:
    """Settings with `number` examples, or a quarter of them in the quick tests."""
    return settings(max_examples=max(1, number * settings().max_examples // DEFAULT_EXAMPLES))


def run_examples(
    values: SearchStrategy[ValueT], number: int, act: Callable[[ValueT], None]
) -> None:
    """Call a function with the same `number` of values in every run, however long that takes."""

    @seed(1)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
            HealthCheck.large_base_example,
        ],
    )
    @given(value=values)
    def run(value: ValueT) -> None:
        act(value)

    run()
