"""Clients that compact elsewhere than expected: as the daemon knows, or else the agents' files."""

import msgspec

from brimline.agents import agents_present
from brimline.cli.context import Context
from brimline.cli.daemon_requests import request
from brimline.errors import BrimlineError
from brimline.settings import seconds
from brimline.survey.status import survey_sessions
from brimline.windows import LimitDrift, find_drifts

LIMITS_PATH = "/v1/limits"


def find_limit_drifts(context: Context) -> list[LimitDrift]:
    try:
        rows = request(context, "GET", LIMITS_PATH)
    except BrimlineError:  # no daemon, or an older one
        since = context.now - seconds(context.settings.since)
        agents, overrides = agents_present(context.places), context.settings.overrides
        survey = survey_sessions(context.places, agents, since, overrides, context.cache)
        return find_drifts(each for session in survey.sessions for each in session.compactions)
    drifted = [{**row, "text": row["drift"]} for row in rows if row["drift"]]
    return msgspec.convert(drifted, list[LimitDrift])
