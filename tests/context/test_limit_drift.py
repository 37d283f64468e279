"""Clients that compact elsewhere than expected."""

import msgspec
import pytest

from brimline.context.window import (
    LimitDrift,
    ResolveContext,
    SeenCompaction,
    expect_limit,
    find_drifts,
    window_of,
)

MODEL, VERSION = "claude-opus-5", "2.1.330"


def compactions(*tokens: int, expected: int = 167_000) -> list[SeenCompaction]:
    return [
        SeenCompaction("claude", MODEL, VERSION, float(at), each, expected)
        for at, each in enumerate(tokens)
    ]


def test_three_compactions_that_agree_elsewhere_are_a_drift() -> None:
    text = "compacted at 146K three times since 2.1.330, expected 167K"
    drift = LimitDrift("claude", MODEL, VERSION, text)
    assert find_drifts(compactions(146_200, 146_900, 147_800)) == [drift]


def test_drift_is_reported_once_for_a_version_and_model() -> None:
    seen = compactions(120_000, 146_200, 146_900, 147_800, 146_100, 146_300)
    assert len(find_drifts(seen)) == 1


@pytest.mark.parametrize(
    "tokens",
    [
        pytest.param((146_200, 146_900), id="two"),
        pytest.param((130_000, 140_000, 150_000), id="they differ"),
        pytest.param((160_000, 160_500, 161_000), id="near what is expected"),
        pytest.param((146_200, 146_900, 146_500, 167_100), id="as expected again"),
    ],
)
def test_no_drift(tokens: tuple[int, ...]) -> None:
    assert find_drifts(compactions(*tokens)) == []


def test_versions_and_models_are_apart_and_in_the_order_of_time() -> None:
    one, two, three = compactions(146_200, 146_900, 147_800)
    other = msgspec.structs.replace(two, version="2.1.331")
    assert find_drifts([one, other, three]) == []
    late = msgspec.structs.replace(compactions(167_000)[0], at=-1.0)
    assert len(find_drifts([three, late, two, one])) == 1


def test_expected_limit_leaves_out_what_was_seen() -> None:
    known = ResolveContext(
        "claude", "claude-sonnet-4-5", VERSION, compacted_at=(120_000, 120_000), sustained=190_000
    )
    assert expect_limit(known, window_of(known)) == 167_000
    assert expect_limit(ResolveContext("my-agent", "my-model"), None) is None
