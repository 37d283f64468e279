"""The metrics for Prometheus: of a running daemon, and as text."""

import re
from pathlib import Path

import pytest

from brimline.server.prometheus_text import Metric, Sample, histogram_samples, render

from .running import Running
from .test_daemon import SESSION, status_input

ROOT = Path(__file__).parents[2]

slow = pytest.mark.slow


def values(text: str) -> dict[str, float]:
    """The samples of a text by name and labels."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def fetch(daemon: Running) -> str:
    content_type, text = daemon.get_text("/metrics")
    assert content_type.startswith("text/plain; version=0.0.4")
    return text


@slow
def test_live_session_has_its_figures(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    found = values(fetch(daemon))
    labels = next(name for name in found if name.startswith("brimline_context_fill_ratio"))
    assert f'session="{SESSION}"' in labels
    assert 'agent="claude"' in labels
    assert 'project="project"' in labels
    assert found[labels] == 0.6
    assert found['brimline_sessions{agent="claude"}'] == 1
    assert found['brimline_signals_total{agent="claude",kind="level",level="50"}'] == 1
    assert found['brimline_messages_total{state="queued"}'] == 2
    assert found["brimline_messages_pending"] == 2
    assert found["brimline_hooks_total"] >= 1
    assert found["brimline_store_write_seconds_count"] >= 2
    assert found['brimline_store_write_seconds_bucket{le="+Inf"}'] >= 2


@slow
def test_guide_and_alert_rules_name_the_metrics_that_exist(daemon: Running) -> None:
    """The guide has all of them; a rule with a name that does not exist would never fire."""
    served = set(re.findall(r"^# TYPE (\w+)", fetch(daemon), re.MULTILINE))
    guide = (ROOT / "docs" / "guides" / "metrics.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)`", guide, re.MULTILINE)) == served
    rules = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text("utf-8")
    named = set(re.findall(r"\bbrimline_\w+", rules))
    assert named
    assert named <= served


def test_text_escapes_labels() -> None:
    sample = Sample(1.5, {"project": 'a"b\\c\nd'})
    assert render([Metric("x", "gauge", "About x.", [sample, Sample(2)])]) == (
        '# HELP x About x.\n# TYPE x gauge\nx{project="a\\"b\\\\c\\nd"} 1.5\nx 2\n'
    )


def test_histogram_is_cumulative() -> None:
    samples = histogram_samples((0.1, 1.0), [3, 2, 1], 4.5)
    assert [(each.suffix, each.labels, each.value) for each in samples] == [
        ("_bucket", {"le": "0.1"}, 3),
        ("_bucket", {"le": "1.0"}, 5),
        ("_bucket", {"le": "+Inf"}, 6),
        ("_sum", {}, 4.5),
        ("_count", {}, 6),
    ]
