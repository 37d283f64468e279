"""Why nothing would deliver a message or a document to a session, and how to change that."""

from brimline.agents import agent_names, display_name, get_agent
from brimline.monitor.snapshot import PROGRAM, TELEMETRY


def describe_unreachable(agent: str, source: str, session: str, is_document: bool) -> str:
    """Return why a session gets no messages, or no documents; `source` is that of its events."""
    if source == PROGRAM and is_document:
        return (
            "Nothing puts a document into the context of a program. "
            f"The program can read it from /v1/sessions/{session}/handoff."
        )
    if source == PROGRAM:
        return (
            "Its program takes no messages. It has to call `DaemonSession.messages()`, or to post "
            f"to /v1/sessions/{session}/messages/take."
        )
    name = display_name(agent)
    if agent not in agent_names():
        return f"Brimline has no hooks for {name}."
    setup = f"`brimline setup {agent}`"
    if source == TELEMETRY:
        return (
            f"Only telemetry reports this session. Run {setup} and Brimline's daemon on the "
            "machine on which it runs."
        )
    next_step = get_agent(agent).install_spec.next_step
    hint = f"No hooks of Brimline are installed for {name}. {setup} installs them."
    return f"{hint} {next_step}" if next_step else hint
