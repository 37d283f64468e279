"""Prometheus' text format, version 0.0.4."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    """A value with its labels; `suffix` is that of a histogram's parts."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class Metric(NamedTuple):
    """Samples of one name; a counter's name ends with `_total`."""

    name: str
    kind: MetricKind
    help: str
    samples: Sequence[Sample]


def histogram_samples(bounds: Sequence[float], counts: Sequence[int], total: float) -> list[Sample]:
    """Return the samples of a histogram; `counts` has one more than `bounds`, for all above."""
    samples: list[Sample] = []
    seen = 0
    for bound, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
        seen += count
        samples.append(Sample(seen, {"le": bound}, "_bucket"))
    return [*samples, Sample(total, suffix="_sum"), Sample(seen, suffix="_count")]


def render(metrics: Iterable[Metric]) -> str:
    """Return the metrics as text."""
    lines: list[str] = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for sample in metric.samples:
            lines.append(f"{metric.name}{sample.suffix}{_labels(sample)} {sample.value!r}")
    return "\n".join(lines) + "\n"


def _labels(sample: Sample) -> str:
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in sample.labels.items())
    return f"{{{','.join(pairs)}}}" if sample.labels else ""
