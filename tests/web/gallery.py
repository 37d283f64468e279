"""Sessions of every level and state, with everything that a row or a page can show."""

from __future__ import annotations

import time

from server.test_daemon import SESSION, hook_input, status_input

from .story import Json, Story, call, full
from .transcripts import write_past

RICH = "rich"  # the session that uses every part of the page

DOCUMENT = """# Where we are

The parser is **half done**; `src/parse.py` has the rest. See https://example.invalid/a/long/way.

1. finish `numbers`
2. run the tests

> Do not touch the lexer.

```
make check && echo a-very-long-line-that-does-not-fit-into-any-narrow-column-at-all
```
"""


def report_gallery(story: Story) -> None:
    for percent in (0, 49.9, 55, 85, 100, 130):
        story.report(f"at-{percent}", full(percent), project=f"/home/u/work/at-{percent}")
    story.report("unknown", {"type": "SessionSeen"}, project="/home/u/unknown")
    story.report("stale", {**full(30), "at": time.time() - 7_300}, project="/home/u/stale")
    story.daemon.hook(status_input(150_000), "statusline")
    story.daemon.hook(hook_input("PreCompact", trigger="auto"))
    _report_rich(story)
    write_past(story.daemon, "22222222-2222-4222-8222-222222222222", "/home/u/past")


def _report_rich(story: Story) -> None:
    project = "/home/u/a-rather-long-name-of-a-project-that-has-to-be-cut"
    title = "Mend what the last change broke, and tell why it broke at all"
    packed = {"type": "Compacted", "trigger": "auto", "before": 161_000, "after": 20_000}
    calls = [call(f"m{at}", 20_000 + 4_000 * at) for at in range(30)]
    more = [call(f"n{at}", 25_000 + 5_000 * at, model="claude-opus-4-5") for at in range(20)]
    scouts = [call(f"s{at}", 9_000 + at * 30_000, thread=f"agent-scout-{at}") for at in range(6)]
    now = time.time()
    quotas: Json = {"at": now, "five_hour": {"used_percentage": 62.0, "resets_at": now + 7_200}}
    quotas["seven_day"] = {"used_percentage": 41.5, "resets_at": now + 4 * 86_400}
    seen = {"type": "SessionSeen", "title": title, "version": "2.1.325", "quotas": quotas}
    events = [seen, *calls, packed, *more]
    story.report(RICH, *_spread([*events, *scouts]), agent="claude", project=project)
    path = story.daemon.folder / "handoff.md"
    path.write_text(DOCUMENT)
    story.daemon.hand_over(RICH, path)
    for urgent in (False, True):
        text = {"text": "Look at the tests first.", "urgent": urgent}
        story.daemon.post(f"/v1/sessions/{RICH}/messages", text)


def _spread(events: list[Json]) -> list[Json]:
    """A few seconds between two events, up to now."""
    begun = time.time() - 5 * len(events)
    return [{**event, "at": begun + 5 * place} for place, event in enumerate(events)]


__all__ = ["RICH", "SESSION", "report_gallery"]
