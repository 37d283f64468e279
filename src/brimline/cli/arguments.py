"""Arguments that several commands have, and the types of their values."""

import argparse
import sys

from brimline.agents import agent_names, all_agents, get_agent

ALL_ROWS = sys.maxsize


def add_flag(to: argparse.ArgumentParser, name: str, help_text: str) -> None:
    to.add_argument(name, action="store_true", help=help_text)


def add_json(to: argparse.ArgumentParser, instead_of: str = "text") -> None:
    add_flag(to, "--json", f"print JSON instead of {instead_of}")


def add_agent(to: argparse.ArgumentParser, default: str | None = None) -> None:
    help_text = f"only this agent: {', '.join(agent_names())}"
    to.add_argument("--agent", type=parse_agent, metavar="A", default=default, help=help_text)


def parse_agent(text: str) -> str:
    """An agent's name in any case, or its client's, such as `claude-code`.

    Other text is returned as it is: the command then raises UnknownAgent.
    """
    name = text.lower()
    for agent in all_agents():
        if name in (agent.name, agent.capabilities.display_name.lower().replace(" ", "-")):
            return agent.name
    return text


def chosen_agents(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the agent of --agent, else all; raises UnknownAgent."""
    return (get_agent(options.agent).name,) if options.agent else agent_names()


def add_since(to: argparse.ArgumentParser, default: str | None = None) -> None:
    help_text = "how far to look back: 90m, 24h, 7d, 2w"
    to.add_argument("--since", metavar="SPAN", default=default, help=help_text)


def add_status_arguments(
    to: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS
) -> None:
    """Add what chooses sessions; `brimline` without a command is `status`, and has them too."""
    help_text = "include older sessions"
    to.add_argument("--all", action="store_true", default=default, help=help_text)
    add_agent(to, default)
    add_since(to, default)
    help_text = "print JSON instead of a table"
    to.add_argument("--json", action="store_true", default=default, help=help_text)


def add_rows(to: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS) -> None:
    help_text = "how many rows to show: a number, or all (default: as many as the terminal has)"
    to.add_argument("--rows", type=parse_rows, metavar="N", default=default, help=help_text)


def parse_rows(text: str) -> int:
    if text == "all":
        return ALL_ROWS
    if text.isdecimal() and text.isascii() and 0 < int(text) < ALL_ROWS:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a number of rows, or all: got {text!r}")


def check_utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        reason = f"expected UTF-8: invalid from character {error.start + 1}"
        raise argparse.ArgumentTypeError(reason) from error
    return text


def check_session(text: str) -> str:
    if not text.strip():
        reason = "expected a session id or prefix: got nothing (`brimline status` lists sessions)"
        raise argparse.ArgumentTypeError(reason)
    return check_utf8(text)
