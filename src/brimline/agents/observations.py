"""Observations of a session, and the reply to them; independent of the client."""

from typing import Literal, TypeAlias

import msgspec

from brimline.agents.transcripts.source import Transcript
from brimline.context.client_report import PromptCache, Quotas
from brimline.context.events import MAIN, AnyEvent, Trigger
from brimline.context.usage import Usage
from brimline.context.window import ModelSwitch, SwitchWarning

ObservationKind: TypeAlias = Literal[
    "started",
    "prompt",
    "tool",
    "stopped",
    "compacting",
    "compacted",
    "cleared",
    "ended",
    "switching",
    "status",
    "wrote",
    "pushed",
]
# prompt: a turn begins; tool: results are about to be read; stopped: a turn would end; switching:
# the user asks for another model; status: the client's own figures; wrote: a transcript grew;
# pushed: a program sent events.

WITHOUT_REPLY: frozenset[ObservationKind] = frozenset({"wrote", "pushed"})


UsageSource: TypeAlias = Literal["status line", "hook"]


EnvironmentVariables: TypeAlias = tuple[tuple[str, str], ...]


class Pane(msgspec.Struct, frozen=True):
    """A tmux pane: the socket of its server, and its id, as `%3`."""

    socket: str
    id: str


class Observation(msgspec.Struct, frozen=True):
    """What a hook, a status line, a transcript or a program reports of a session.

    `id` identifies it: a second one of the same id has no effect. `at` is the producer's time.
    `thread` is a subagent if one of its hooks reports. `is_continuation`: the turn continues after
    an earlier stop feedback. `is_interactive`: a user is at the client, which is no headless run;
    None if unknown. `is_late`: it comes from the spool, and gets no reply. `transcript` is
    the path of the session's own file as a hook names it; `file` is one of its files, also a
    subagent's. `pane` is where the agent runs, `host` the machine if it is another one, `env` the
    variables that its client reads, None if unknown. `hook_event` is the client's name of the hook
    that reported it, which the reply repeats. `manager_id` is an orchestrator's id of the session.
    `prompt` is what the user wrote, and stays in memory.
    `added_bytes` is the size of the texts that it adds to the next call: a prompt, tools' results.
    `is_telemetry`: the client's OpenTelemetry reports the events, and not what its files contain;
    `user` and `team` are those of the telemetry; a token's team comes first. `quotas` and
    `prompt_cache` are what a status line reports of them. `switch` is the model that the user asks
    for.
    """

    id: str
    agent: str
    session: str
    kind: ObservationKind
    at: float
    thread: str = MAIN
    transcript: str | None = None
    file: Transcript | None = None
    pane: Pane | None = None
    host: str | None = None
    env: EnvironmentVariables | None = None
    project: str | None = None
    model: str | None = None
    version: str | None = None
    parent: str | None = None
    manager_id: str | None = None
    trigger: Trigger | None = None
    usage: Usage | None = None
    usage_source: UsageSource = "status line"
    window: int | None = None
    events: tuple[AnyEvent, ...] = ()
    is_continuation: bool = False
    is_interactive: bool | None = None
    is_late: bool = False
    hook_event: str = ""
    prompt: str = ""
    added_bytes: int = 0
    is_telemetry: bool = False
    user: str | None = None
    team: str | None = None
    quotas: Quotas | None = None
    prompt_cache: PromptCache | None = None
    switch: ModelSwitch | None = None


class Reply(msgspec.Struct, frozen=True):
    """What the agent gets: text for its context, or feedback with which it continues its turn.

    The messages are delivered when the hook acknowledges the reply. `handoff_id` is the document in
    it, of `session`; `has_pins` if what the user pinned is in it. `client_version` is that of the
    client that gets the feedback, None if unknown. `switch_warning` is for the user, who is asked
    whether to go on if `asks_user`. `is_duplicate`: the observation was processed before.
    """

    context: str | None = None
    stop_feedback: str | None = None
    message_ids: tuple[str, ...] = ()
    handoff_id: str | None = None
    has_pins: bool = False
    session: str = ""
    client_version: str | None = None
    switch_warning: SwitchWarning | None = None
    asks_user: bool = False
    is_duplicate: bool = False


EMPTY_REPLY = Reply()
DUPLICATE = Reply(is_duplicate=True)
