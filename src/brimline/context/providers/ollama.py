"""Ollama's chat and generate: the cache is not reported.

Some versions leave out the count of a prompt that was cached: such an answer is refused.
"""

from brimline.context.providers.rows import CountRow, UsageShape

ANSWER = UsageShape(
    "ollama",
    "disjoint",
    (
        CountRow("input", ("prompt_eval_count",), required=True),
        CountRow("output", ("eval_count",), required=True),
    ),
)
