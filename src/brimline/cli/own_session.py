"""The status of the session that a command runs in, from the daemon, else from files."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from brimline.agents import agent_names
from brimline.api.client.request import request
from brimline.cli.context import CommandContext
from brimline.cli.session_choice import find_current_session, find_session
from brimline.context.need import ACTIVE_FOR_S, assess
from brimline.context.short_status import ShortStatus
from brimline.daemon.calling_session import CallingProcess
from brimline.daemon.tmux.pane import pane_from_environment
from brimline.errors import InvalidRequest, NotRunning

if TYPE_CHECKING:
    from brimline.monitor.user_rules import Rules
    from brimline.sessions.status import SessionStatus

ANSWER_WAIT_S = 1.0
# Claude Code 2.1.326 writes the call that runs a tool some 0.1 s after the tool has begun. Without
# this wait about half of the figures were those of the call before.
RECORD_WAIT_S = 0.3
NONE_HINT = "Run it inside an agent, or name one: `brimline status` lists the sessions."
AMBIGUOUS_HINT = "Name the one that is meant."


class _Found(msgspec.Struct, frozen=True):
    """The answer of `/v1/here`, whose own module needs Starlette."""

    sessions: list[ShortStatus]


def find_own_status(
    context: CommandContext, pid: int | None = None, agent: str | None = None
) -> ShortStatus:
    """Return the status of the session that a process belongs to, by default this one.

    `agent` is the one that runs it, if that is known. Raises InvalidRequest if there is no such
    session, or more than one.
    """
    sessions = find_own_statuses(context, pid, agent)
    if len(sessions) == 1:
        return sessions[0]
    if not sessions:
        raise InvalidRequest("no session found here", NONE_HINT)
    listed = ", ".join(f"{each.session} ({each.agent})" for each in sessions)
    raise InvalidRequest(f"this may be any of {len(sessions)} sessions: {listed}", AMBIGUOUS_HINT)


def find_own_statuses(
    context: CommandContext, pid: int | None = None, agent: str | None = None
) -> list[ShortStatus]:
    """Return the sessions that a process may belong to.

    If an agent runs it, its client first gets the time to write what it was billed.
    """
    here = find_current_session(context.places.env)
    if here is not None or agent is not None:
        time.sleep(RECORD_WAIT_S)
    named, agent = here and here.session, (here and here.agent) or agent
    caller = CallingProcess(
        pid=pid or os.getpid(),
        named=named,
        agent=agent,
        pane=pane_from_environment(context.places.env),
        folder=str(Path.cwd()),
    )
    return _from_daemon(context, caller) or _from_files(context, named, agent)


def find_status(context: CommandContext, name: str) -> ShortStatus:
    """Return the status of any session, by its id or title; raises UnknownSession."""
    files, known = find_session(context, name, None)
    if known is not None:
        id, agent = known.session.id, known.session.agent
    else:
        assert files is not None
        id, agent = files.session, files.agent
    statuses = _from_daemon(context, CallingProcess(pid=0, named=id)) if known else []
    statuses = statuses or _from_files(context, id, agent)
    if not statuses:  # its files have no call yet
        return ShortStatus(agent=agent, session=id)
    return statuses[0]


def _from_daemon(context: CommandContext, caller: CallingProcess) -> list[ShortStatus]:
    """Return the sessions that the daemon finds; none without a daemon."""
    try:
        body = msgspec.to_builtins(caller)
        answer = request(context.state, "POST", "/v1/here", body, ANSWER_WAIT_S)
        return msgspec.convert(answer, _Found).sessions
    except (NotRunning, InvalidRequest, msgspec.ValidationError):  # it may be an older version
        return []


def _from_files(
    context: CommandContext, session: str | None, agent: str | None
) -> list[ShortStatus]:
    """Return the session of this id, else those that were active in this folder within an hour."""
    # Imported here: with a daemon they are not needed.
    from brimline.monitor.user_rules import Rules
    from brimline.sessions.status import survey_sessions

    settings, rules = context.settings, Rules.of_settings(context.settings)
    agents: Sequence[str] = [agent] if agent in agent_names() else agent_names()
    since = None if session else context.now - ACTIVE_FOR_S
    survey = survey_sessions(
        context.places, agents, since, settings.overrides, context.cache, settings.budget
    )
    folder = str(Path.cwd())
    return [
        _short_status(rules, each, context.now)
        for each in survey.sessions
        if (each.session == session if session else each.project == folder)
    ]


def _short_status(rules: "Rules", status: "SessionStatus", now: float) -> ShortStatus:
    main, reading = status.main, status.main.reading
    fullness = rules.fullness_of(reading, status.session, status.agent, main.model)
    assessed = assess(status.need_facts(fullness), now)
    return ShortStatus(
        agent=status.agent,
        session=status.session,
        title=status.title,
        state=reading.state,
        sent=reading.sent,
        window=reading.window and reading.window.tokens,
        limit=reading.limit and reading.limit.tokens,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        calls_left=status.calls_left,
        need=assessed.need,
        is_near_limit=assessed.is_near_limit,
    )
