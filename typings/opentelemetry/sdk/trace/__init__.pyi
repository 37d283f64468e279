"""What `brimline.integrations.opentelemetry` uses: the package is not in our environment."""

from collections.abc import Mapping, Sequence

AttributeValue = (
    str | bool | int | float | Sequence[str] | Sequence[bool] | Sequence[int] | Sequence[float]
)

class ReadableSpan:
    @property
    def attributes(self) -> Mapping[str, AttributeValue] | None: ...

class SpanProcessor:
    def on_end(self, span: ReadableSpan) -> None: ...
