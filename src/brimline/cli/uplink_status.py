"""The daemon's uplink to a fleet's server, for `serve --status` and `doctor`."""

from collections.abc import Iterator
from typing import Any

from brimline.cli.doctor_checks import RESTART, Check, DaemonReport
from brimline.settings import UplinkSettings, describe_receive
from brimline.terminal.text import count_of, format_age

KEPT = "Nothing is lost: the daemon sends it when the server takes it."


def describe_uplink(uplink: dict[str, Any]) -> str:
    """Return the state of an uplink in a line, without the server's address."""
    # A daemon of an earlier version reports nothing about it, and receives all.
    parts = [_describe_reports(uplink), describe_receive(uplink.get("receive", "all"))]
    if uplink.get("refused"):
        parts.append(f"{uplink['refused']:,} refused, the last: {uplink['refusal']}")
    return "; ".join(parts)


def _describe_reports(uplink: dict[str, Any]) -> str:
    lag = f"{count_of(uplink['behind'], 'session')} behind for {format_age(uplink['lag_s'])}"
    if problem := uplink["problem"]:
        return f"{problem}; {lag}" if uplink["behind"] else problem
    if uplink["last_success_at"] is None:
        return "not connected yet"
    return lag if uplink["behind"] else "up to date"


def check_uplink(settings: UplinkSettings, report: DaemonReport) -> Iterator[Check]:
    """Check that the server takes what the daemon sends, if there is an uplink."""
    uplink = report.status.get("uplink")
    if uplink is not None:
        finding = f"{uplink['url']}: {describe_uplink(uplink)}"
        yield Check("uplink", uplink["problem"] is None, finding, KEPT)
    elif settings.url is not None and report.runs:
        yield Check("uplink", False, "the daemon does not use uplink.url", RESTART)
    elif settings.url is not None:
        yield Check("uplink", True, f"{settings.url}: {describe_receive(settings.receive)}")
