"""Clients that compact elsewhere than expected: as the daemon knows, or else the agents' files."""

import msgspec

from brimline.agents import agents_present
from brimline.cli.context import Context
from brimline.cli.daemon_requests import request
from brimline.context.window import LimitDrift, find_drifts
from brimline.errors import BrimlineError
from brimline.sessions.status import survey_sessions
from brimline.settings import seconds

LIMITS_PATH = "/v1/limits"


class _Limit(msgspec.Struct, frozen=True):
    agent: str
    model: str | None
    version: str | None
    drift: str | None


def find_limit_drifts(context: Context) -> list[LimitDrift]:
    try:
        limits = msgspec.convert(request(context, "GET", LIMITS_PATH), list[_Limit])
    except (BrimlineError, msgspec.ValidationError):  # no daemon, or one of another version
        since = context.now - seconds(context.settings.since)
        agents, overrides = agents_present(context.places), context.settings.overrides
        survey = survey_sessions(context.places, agents, since, overrides, context.cache)
        return find_drifts(each for session in survey.sessions for each in session.compactions)
    return [
        LimitDrift(each.agent, each.model, each.version or "", each.drift)
        for each in limits
        if each.drift
    ]
