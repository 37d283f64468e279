"""Quotas and the prompt cache of a status line: in the API, in commands, and after a restart."""

import json
import time
from pathlib import Path
from typing import Any

from .filled_session import write_filled_session
from .running import Running
from .test_status_line import status_input

Json = dict[str, Any]


def report(session: str, transcript: Path | None = None, **cache: Any) -> Json:
    """A status line of a subscriber, whose quotas and cache last for an hour from now."""
    at = int(time.time())
    quota = {"used_percentage": 62, "resets_at": at + 3_600}
    known = {"warm": True, "caching_observed": True, "ttl": "1h", "expires_at": at + 3_600}
    return {
        **status_input(90_000, 1.25, session),
        "rate_limits": {"five_hour": quota, "seven_day": {"used_percentage": 200_000}},
        "prompt_cache": {**known, "requests": 4, "recache_tokens_if_cold": 82_000, **cache},
        **({"transcript_path": str(transcript)} if transcript else {}),
    }


def view_of(daemon: Running, session: str) -> Json:
    """The view of a session, which the list has too."""
    view = daemon.get(f"/v1/sessions/{session}")
    assert view in daemon.get("/v1/sessions")
    return view


def test_quotas_and_cache_of_a_status_line_survive_a_restart(daemon: Running) -> None:
    sent = report("s")
    line = daemon.hook(sent, "statusline", NO_COLOR="1")
    assert " | 5h 62.0%, resets " in line
    for is_restarted in (False, True):
        if is_restarted:
            daemon.stop()
            daemon.start()
        view = view_of(daemon, "s")
        quotas, cache = view["quotas"], view["prompt_cache"]
        assert quotas["five_hour"] == sent["rate_limits"]["five_hour"]
        assert (quotas["seven_day"], quotas["spend_limit"]) == (None, None)
        assert 0 <= time.time() - quotas["at"] < 60
        assert (cache["origin"], cache["warm"], cache["requests"]) == ("reported", True, 4)
        assert cache["expires_at"] == sent["prompt_cache"]["expires_at"]
        assert view["session"]["client_report"] is None


def test_quota_that_was_reset_and_cache_that_expired_are_shown_so_without_a_report(
    daemon: Running,
) -> None:
    at = time.time()
    sent = report("s", expires_at=at + 1.5)
    sent["rate_limits"] = {"five_hour": {"used_percentage": 99, "resets_at": at + 1.5}}
    daemon.hook(sent, "statusline")
    before = view_of(daemon, "s")
    assert before["quotas"] is None or before["quotas"]["five_hour"]["used_percentage"] == 99
    time.sleep(max(0.0, at + 1.6 - time.time()))
    after = view_of(daemon, "s")
    assert (after["quotas"], after["prompt_cache"]["warm"]) == (None, False)


def test_session_without_reports_has_a_computed_cache_and_unknown_quotas(daemon: Running) -> None:
    path = write_filled_session(daemon.home, "quiet")
    daemon.hook({"session_id": "quiet", "hook_event_name": "Stop", "transcript_path": str(path)})
    view = view_of(daemon, "quiet")
    assert view["quotas"] is None
    last = daemon.get("/v1/sessions/quiet/timeline")["calls"][-1]
    cache = view["prompt_cache"]
    assert (cache["origin"], cache["ttl"]) == ("computed", "5m")
    assert cache["expires_at"] == last["at"] + 300
    sent = last["input"] + last["cache_read"] + last["cache_write"]
    assert cache["recache_tokens_if_cold"] == sent


def test_inspect_shows_what_the_client_reported_if_a_daemon_runs(daemon: Running) -> None:
    path = write_filled_session(daemon.home, "told")
    daemon.hook(report("told", path), "statusline")
    text = daemon.answered("inspect", "told").stdout
    assert "quota  5h 62.0% used, resets " in text
    assert " ago)" in text
    assert "82K tokens to write again if it expires" in text
    known = json.loads(daemon.answered("inspect", "told", "--json").stdout)
    view = view_of(daemon, "told")
    assert (known["quotas"], known["prompt_cache"]) == (view["quotas"], view["prompt_cache"])
    daemon.stop()
    assert "quota" not in daemon.answered("inspect", "told").stdout
    computed = json.loads(daemon.answered("inspect", "told", "--json").stdout)
    assert (computed["quotas"], computed["prompt_cache"]["origin"]) == (None, "computed")


def test_cause_that_the_client_reported_is_that_of_its_miss(daemon: Running) -> None:
    path = write_filled_session(daemon.home, "missed")
    daemon.hook(report("missed", path), "statusline")
    (likely,) = daemon.get("/v1/sessions/missed/timeline")["misses"]
    assert (likely["cause"], likely["reported"]) == ("tools or instructions changed", None)
    (explained,) = daemon.get("/v1/sessions/missed/explanation")["threads"][0]["misses"]
    assert explained["reported"] is None
    causes = {"causes": ["model_changed"], "tools_added": 0}
    sent = report("missed", path, last_miss_at=int(likely["at"]), last_miss_cause=causes)
    daemon.hook(sent, "statusline")
    for is_restarted in (False, True):
        if is_restarted:
            daemon.stop()
            daemon.start()
        (miss,) = daemon.get("/v1/sessions/missed/timeline")["misses"]
        assert (miss["cause"], miss["reported"]) == ("model switch", "model_changed")
        assert miss == {**likely, "cause": "model switch", "reported": "model_changed"}
        (explained,) = daemon.get("/v1/sessions/missed/explanation")["threads"][0]["misses"]
        assert explained["cause"] == "model switch"
        assert (
            "model switch (reported by the client)" in daemon.answered("explain", "missed").stdout
        )
